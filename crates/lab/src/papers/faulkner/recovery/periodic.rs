//! A channel that is blocked for 5 s after every 10 s: who leads, how fast each recovers, and when the link is back.

use std::io;

use base::Duration;
use base::config::ConfigError;

use super::trace::{Trace, after};
use super::{BLOCKED, JITTERED, Window, pictures, setup};
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, RATE, Scheme};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::statistics::{Bootstrap, Interval, Spread, quantile};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-5", "4-6"],
    claims: &[LEAD, FIRST_SLOWER, TWICE, RECONNECTION, super::idle::CLAIM],
    cases,
    measure,
};

pub(super) const NAME: &str = "periodic blockages";
pub(super) const LEAD: &str = "faulkner-periodic-lead-grows";
pub(super) const FIRST_SLOWER: &str = "faulkner-first-recovery-slower";
pub(super) const TWICE: &str = "faulkner-recovery-twice-as-fast";
pub(super) const RECONNECTION: &str = "faulkner-immediate-reconnection";

/// Seconds between blockages and until the first one (the thesis gives neither), and of a run.
const OPEN: f64 = 10.0;
const SECONDS: f64 = 90.0;
/// Blockages after which the channel is open for as long as between others.
pub(super) const RECOVERIES: usize = 5;

const CHANNEL: Channel = Channel::Periodic { blocked: BLOCKED, open: OPEN, first: OPEN };
const SCHEMES: [Scheme; 2] = [Scheme::Tcp, Scheme::TcpLl];
const WINDOWS: [Window; 2] = [Window::Baseline, Window::Small];

/// The transfer that opens as the run starts.
fn single(scheme: Scheme, window: Window) -> String {
    format!("{}, {}", scheme.name(), window.name())
}

/// Those that open within the first second.
pub(super) fn jittered(scheme: Scheme, window: Window) -> String {
    format!("{}, {}, jittered", scheme.name(), window.name())
}

/// The case of which figures 4-5 and 4-6 are drawn.
pub(super) fn drawn(scheme: Scheme) -> String {
    single(scheme, Window::Baseline)
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for &window in effort.choose(&WINDOWS[..1], &WINDOWS) {
        for scheme in SCHEMES {
            let scenario = |is_jittered| setup(scheme, window, is_jittered, &CHANNEL, SECONDS);
            cases.push(Case::new(single(scheme, window), scenario(false)?, 1));
            let realisations = effort.choose(5, JITTERED);
            cases.push(Case::new(jittered(scheme, window), scenario(true)?, realisations));
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let trace = Trace::of(scheme, scenario, seed)?;
    let cycle = Duration::from_secs_f64(BLOCKED + OPEN);
    let second = (RATE / 8.0) as u64;
    let mut measured = Measurements::new();
    for (k, blockage) in trace.blockages().into_iter().take(RECOVERIES).enumerate() {
        if k == 0 {
            measured.note("dropped", trace.dropped(blockage.start) as f64);
            measured.note("received 0", trace.received(blockage.start) as f64);
        }
        let next = blockage.start + cycle;
        let mut note = |what: &str, value: Option<f64>| measured.note(&format!("{what} {}", k + 1), value);
        note("received", Some(trace.received(next) as f64));
        note("first byte", trace.until_received(blockage.end, 1));
        // What takes longer than until the next blockage is that one's recovery.
        let recovered = trace.until_received(blockage.end, second).filter(|&seconds| seconds < OPEN);
        note("second of data", recovered);
        note("resent", Some(trace.resent(blockage.start..next) as f64));
        note("flight", Some(trace.flight(blockage.start)));
        note("rto", trace.state(blockage.start).map(|state| state.rto.as_secs_f64()));
        note("data", trace.until_data(blockage.end));
        let is_outstanding = trace.is_outstanding(blockage.end);
        // Where none ever comes, it takes longer than the run goes on.
        let frame = trace.until_frame(&blockage).unwrap_or_else(|| trace.left(blockage.end));
        note("frame", is_outstanding.then_some(frame));
        let state = trace.state(after(blockage.end, OPEN));
        note("timeouts", state.map(|state| f64::from(state.timeouts)));
    }
    if SCHEMES.into_iter().any(|scheme| case.name == drawn(scheme)) {
        pictures::keep_progress(&trace, &mut measured);
    }
    Ok(measured)
}

/// The values of a quantity at every blockage of every run of a case.
pub(super) fn at_all(samples: &Samples, case: &str, quantity: &str) -> Vec<f64> {
    (1..=RECOVERIES).flat_map(|k| samples.values(NAME, case, &format!("{quantity} {k}"))).collect()
}

/// The leads at the ends of the cycles of paired runs, in kB.
fn leads(samples: &Samples, cases: [&str; 2]) -> Vec<Option<f64>> {
    let lead = |k: usize| {
        let pairs = samples.pairs(NAME, cases, &format!("received {k}"));
        let spread = Spread::of(pairs.into_iter().map(|(ll, tcp)| (ll - tcp) / 1e3));
        spread.map(|spread| spread.mean)
    };
    (1..=RECOVERIES).map(lead).collect()
}

pub(super) fn lead_grows(samples: &Samples) -> Ruling {
    let cases = |window| [single(Scheme::TcpLl, window), single(Scheme::Tcp, window)];
    let ratio = |window| {
        let [ll, tcp] = cases(window);
        let pairs = samples.pairs(NAME, [&ll, &tcp], "received 0");
        pairs.first().map(|(ll, tcp)| ll / tcp)
    };
    let of = |window| {
        let [ll, tcp] = cases(window);
        leads(samples, [&ll, &tcp])
    };
    let growth = |leads: &[Option<f64>]| -> Option<f64> {
        let steps: Option<Vec<f64>> = leads.windows(2).map(|pair| Some(pair[1]? - pair[0]?)).collect();
        steps?.into_iter().min_by(f64::total_cmp)
    };
    let before = ratio(Window::Baseline);
    let baseline = of(Window::Baseline);
    let least = growth(&baseline);
    let mut criteria = vec![
        Criterion::new(
            "bytes(TCP-LL) / bytes(TCP) before the first blockage",
            "0.95 to below 1",
            before,
            before.map(|ratio| (0.95..1.0).contains(&ratio)),
        ),
        Criterion::new(
            "lead at the end of the first cycle, kB",
            "above 0",
            baseline[0],
            baseline[0].map(|lead| lead > 0.0),
        ),
        Criterion::new(
            "least growth of the lead over a further cycle, kB",
            "above 0",
            least,
            least.map(|growth| growth > 0.0),
        ),
    ];
    for (k, lead) in baseline.iter().enumerate() {
        criteria.push(Criterion::told(format!("lead at the end of cycle {}, kB", k + 1), *lead));
    }
    let pair = [Scheme::TcpLl, Scheme::Tcp].map(|scheme| jittered(scheme, Window::Baseline));
    let all = leads(samples, pair.each_ref().map(String::as_str));
    criteria.push(Criterion::told("least growth, mean of the jittered runs, kB", growth(&all)));
    for window in WINDOWS {
        for case in cases(window) {
            let dropped = samples.mean(NAME, &case, "dropped");
            let what = format!("packets that the queue dropped before the first blockage, {case}");
            criteria.push(Criterion::told(what, dropped));
        }
    }
    criteria.push(Criterion::told("bytes before the first blockage with 64 KiB", ratio(Window::Small)));
    let small = of(Window::Small);
    criteria.push(Criterion::told("lead after the first cycle with 64 KiB, kB", small[0]));
    criteria.push(Criterion::told("least growth with 64 KiB, kB", growth(&small)));
    Ruling::all(criteria)
}

/// Of every jittered run a value, where it has all that it takes.
fn of_runs(
    samples: &Samples,
    case: &str,
    value: impl Fn(&dyn Fn(&str, usize) -> Option<f64>) -> Option<f64>,
) -> Vec<f64> {
    let runs = samples.runs(NAME, case).iter();
    runs.filter_map(|run| value(&|what, k| run.quantity(&format!("{what} {k}")))).collect()
}

/// How much longer the first recovery takes than the median of the later ones, in seconds. One that the next blockage
/// interrupts counts as the time until then: leaving it out would leave out the slowest.
fn slower(samples: &Samples, case: &str) -> Option<Interval> {
    let differences = of_runs(samples, case, |at| {
        let recovery = |k| at("second of data", k).unwrap_or(OPEN);
        Some(recovery(1) - Spread::of((2..=RECOVERIES).map(recovery))?.median)
    });
    Interval::of(differences, 0.95)
}

/// `what` has to be above zero in the mean.
fn above_zero(what: &str, value: Option<Interval>) -> Criterion {
    Criterion::new(what, "above 0", value, value.map(|value| value.mean > 0.0))
}

pub(super) fn first_is_slower(samples: &Samples) -> Ruling {
    let case = jittered(Scheme::TcpLl, Window::Baseline);
    let resent = Interval::of(of_runs(samples, &case, |at| Some(at("resent", 1)? / at("flight", 1)?)), 0.95);
    let later: Vec<f64> =
        (2..=RECOVERIES).flat_map(|k| samples.values(NAME, &case, &format!("resent {k}"))).collect();
    let rto = of_runs(samples, &case, |at| Some(at("rto", 2)? - at("rto", 1)?));
    let mut criteria = vec![
        above_zero(
            "first second of data after the first blockage, less the median later, s",
            slower(samples, &case),
        ),
        Criterion::at_least("segments resent in the first recovery over the flight", resent, 0.5),
        Criterion::at_most(
            "most segments resent in a later one",
            Spread::of(later.iter().copied()).map(|spread| spread.max),
            3.0,
        ),
        above_zero("RTO before the second blockage less that before the first, s", Interval::of(rto, 0.95)),
        Criterion::told(
            "share of later recoveries with at most 3 segments resent",
            share_within(&later, 3.0),
        ),
    ];
    let mut tell = |what: &str, window: Window, quantity: &str| {
        let case = jittered(Scheme::TcpLl, window);
        let what = format!("{what}, {}", window.name());
        criteria.push(Criterion::told(what, samples.interval(NAME, &case, quantity)));
    };
    for window in WINDOWS {
        tell("first recovery, s", window, "second of data 1");
        tell("RTO before the first blockage, s", window, "rto 1");
        tell("RTO before the second, s", window, "rto 2");
        tell("RTO before the fifth, s", window, "rto 5");
        tell("time-outs by the end of the first cycle", window, "timeouts 1");
        tell("time-outs by the end of the last", window, "timeouts 5");
    }
    let small = jittered(Scheme::TcpLl, Window::Small);
    let resent = of_runs(samples, &small, |at| Some(at("resent", 1)? / at("flight", 1)?));
    criteria.push(Criterion::told("resent in the first over the flight, 64 KiB", Interval::of(resent, 0.95)));
    let later: Vec<f64> =
        (2..=RECOVERIES).flat_map(|k| samples.values(NAME, &small, &format!("resent {k}"))).collect();
    criteria
        .push(Criterion::told("at most 3 resent in later ones, share, 64 KiB", share_within(&later, 3.0)));
    criteria.push(Criterion::told("first less later recoveries, 64 KiB, s", slower(samples, &small)));
    Ruling::all(criteria)
}

fn share_within(values: &[f64], most: f64) -> Option<f64> {
    let within = values.iter().filter(|&&value| value <= most).count();
    (!values.is_empty()).then(|| within as f64 / values.len() as f64)
}

fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values.iter().copied()).map(|spread| spread.median)
}

/// Reopening of the first blockage to the first new byte, of TCP over that of TCP-LL, run by run.
fn speedups(samples: &Samples, window: Window) -> Vec<f64> {
    let pair = [Scheme::Tcp, Scheme::TcpLl].map(|scheme| jittered(scheme, window));
    let pairs = samples.pairs(NAME, pair.each_ref().map(String::as_str), "first byte 1");
    pairs.into_iter().map(|(tcp, ll)| tcp / ll).collect()
}

pub(super) fn twice_as_fast(samples: &Samples) -> Ruling {
    let speedups = |window| speedups(samples, window);
    let baseline = speedups(Window::Baseline);
    let interval =
        Bootstrap::named(FIRST_SEED, NAME).with_resamples(2000).interval(&baseline, 0.95, |drawn| {
            let mut values: Vec<f64> = drawn.iter().map(|value| **value).collect();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5)
        });
    let spread = Spread::of(baseline);
    let mut criteria = vec![
        Criterion::within("reopening to the first new byte, TCP over TCP-LL, median", interval, 1.5, 4.0),
        Criterion::told("least ratio", spread.map(|spread| spread.min)),
        Criterion::told("greatest ratio", spread.map(|spread| spread.max)),
    ];
    for window in WINDOWS {
        for scheme in SCHEMES {
            let waits = samples.values(NAME, &jittered(scheme, window), "first byte 1");
            let what = format!("{} until the first new byte, {}, median, s", scheme.name(), window.name());
            criteria.push(Criterion::told(what, median(&waits)));
        }
    }
    let small = Spread::of(speedups(Window::Small));
    criteria.push(Criterion::told("median ratio with 64 KiB", small.map(|spread| spread.median)));
    for scheme in SCHEMES {
        let waits = samples.values(NAME, &jittered(scheme, Window::Baseline), "second of data 1");
        let what = format!("{} until a second's worth of new data, median, s", scheme.name());
        criteria.push(Criterion::told(what, median(&waits)));
    }
    Ruling::all(criteria)
}

pub(super) fn reconnects(samples: &Samples) -> Ruling {
    let waits = at_all(samples, &jittered(Scheme::TcpLl, Window::Baseline), "frame");
    let spread = Spread::of(waits.iter().copied());
    Ruling::all(vec![
        Criterion::at_most(
            "longest from the end of a blockage to the first intact frame, of either direction, s",
            spread.map(|spread| spread.max),
            0.25 + 2.0 * FRAME_BITS / RATE,
        ),
        // Fewer tell nothing.
        Criterion::new(
            "blockages with data outstanding",
            "at least 20",
            waits.len() as f64,
            (waits.len() >= 20).then_some(true),
        ),
        Criterion::told("mean of that time, s", spread.map(|spread| spread.mean)),
    ])
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in SCHEMES {
        for k in 0..=RECOVERIES {
            let end = if k == 0 { OPEN } else { OPEN + k as f64 * (BLOCKED + OPEN) };
            let row = [("scheme", scheme.name().to_owned()), ("kB received by", format!("{end} s"))];
            let values = samples.values(NAME, &single(scheme, Window::Baseline), &format!("received {k}"));
            cells.push(Cell::of_mean("figure 4-5", &row, values.into_iter().map(|bytes| bytes / 1e3)));
        }
        let row = [("scheme", scheme.name().to_owned()), ("reopening to", "first new byte, s".to_owned())];
        let values = samples.values(NAME, &jittered(scheme, Window::Baseline), "first byte 1");
        cells.push(Cell::of_mean("figure 4-6", &row, values));
    }
    cells
}
