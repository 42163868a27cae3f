//! Claims that arithmetic decides, and the two of them that a link without errors can be asked about.

use std::io;

use base::config::ConfigError;

use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, RATE, Scheme, WINDOW, normalised, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Run, Watch};

pub(super) const ARITHMETIC: Experiment = Experiment {
    name: "arithmetic",
    figures: &[],
    claims: &[
        "faulkner-loss-threshold",
        "faulkner-frame-overhead",
        "faulkner-normalisation",
        "faulkner-localised-errors-leave-capacity",
        "faulkner-symmetry-factor",
        "faulkner-window-units",
    ],
    cases: |_| Ok(vec![Case::calculation(CASE, 1, 1)]),
    measure: calculate,
};

pub(super) const CLEAR_LINK: Experiment = Experiment {
    name: "clear link",
    figures: &[],
    claims: &["faulkner-frame-overhead", "faulkner-symmetry-factor"],
    cases: clear_cases,
    measure: measure_clear,
};

const CASE: &str = "all";
/// Bytes of the packets of a bulk transfer.
const PACKET: f64 = 1500.0;
/// Bits of a trailer and a framing header (section 2.3).
const OVERHEAD: f64 = 32.0 + 40.0;
/// Bits of a cipher block (section 2.3).
const CIPHER_BLOCK: f64 = 128.0;
/// Bytes of an IP header, of a TCP header with time stamps, and of a frame's overhead as section 4.2.3 has it.
const ACKNOWLEDGEMENT: f64 = 20.0 + 32.0 + 10.0;
/// The round trip in seconds.
const ROUND_TRIP: f64 = 0.5;

fn calculate(_: &Case, _: u64) -> io::Result<Measurements> {
    let mut measured = Measurements::new();
    let product = RATE * ROUND_TRIP / 8.0;
    measured.note("threshold in bytes", (1.0 / product).powi(2));
    measured.note("threshold in packets", (PACKET / product).powi(2));
    measured.note("overhead", OVERHEAD / FRAME_BITS);
    measured.note("cipher blocks", FRAME_BITS / CIPHER_BLOCK);
    let half = normalised(RATE / 2.0);
    measured.note("half the rate", half);
    measured.note("half the rate of capacity", half / Channel::Blockage { f: 0.5, d: 1.0 }.capacity());
    measured.note("blocked", Channel::Blockage { f: 0.25, d: 1.0 }.capacity());
    measured.note("in error", Channel::BitErrors(0.25).capacity());
    measured.note("as many in error", Channel::BitErrors(0.125).capacity());
    measured.note("symmetry", ACKNOWLEDGEMENT / (PACKET - ACKNOWLEDGEMENT));
    measured.note("frames", RATE / FRAME_BITS);
    measured.note("1.4 s", 1.4 * RATE / 8.0);
    measured.note("0.6 s", 0.6 * RATE / 8.0);
    measured.note("baseline", f64::from(WINDOW) * FRAME_BITS / RATE);
    Ok(measured)
}

/// An acknowledgement for every segment, and one for every second: packets are 47 ms apart, more than Linux's 40 ms of
/// delay, so that it acknowledges each one with delayed acknowledgements too.
const DELAYED: [(&str, &str); 2] = [("every segment", "40 ms"), ("every second segment", "200 ms")];

fn clear_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let case = |(name, delay)| {
        // A window that the queue has room for: no packet is lost, no acknowledgement carries SACK blocks.
        let set = [
            "tcp.window.receive-buffer=\"96 KiB\"".to_owned(),
            format!("tcp.acknowledgements.timeout=\"{delay}\""),
        ];
        let scenario = scenario(Scheme::TcpLl, &Channel::Clear, effort.choose(60.0, 300.0), &set)?;
        Ok(Case::new(name, scenario, 1))
    };
    DELAYED.into_iter().map(case).collect()
}

fn measure_clear(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let mut measured = Measurements::new();
    let data = counted(&run, "down", "bits-new");
    measured.note("overhead", counted(&run, "down", "endpoint-frames-new") * OVERHEAD / data);
    measured.note("up over down", counted(&run, "up", "bits-new") / data);
    Ok(measured)
}

/// What a direction of the satellite link counted under this name.
fn counted(run: &Run, direction: &str, counter: &str) -> f64 {
    let counters = run.links.get(&format!("satellite/{direction}"));
    counters.and_then(|counters| counters.get(counter)).map_or(f64::NAN, |&count| count as f64)
}

pub(super) fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    let value = |name: &str| samples.mean(ARITHMETIC.name, CASE, name);
    let clear = |case: usize, name: &str| samples.mean(CLEAR_LINK.name, DELAYED[case].0, name);
    let criteria = match claim {
        "faulkner-loss-threshold" => vec![
            rounds("threshold in bytes", value("threshold in bytes"), 3.7e-9, 1e-10),
            rounds("in packets of 1500 bytes", value("threshold in packets"), 8.4e-3, 1e-4),
        ],
        "faulkner-frame-overhead" => vec![
            rounds("72 / 3968", value("overhead"), 0.018, 1e-3),
            equals("cipher blocks of a frame", value("cipher blocks"), 31.0),
            Criterion::told("overhead of packets of 1500 bytes, measured", clear(0, "overhead")),
        ],
        "faulkner-normalisation" => vec![
            equals("half the rate, normalised", value("half the rate"), 0.5),
            equals("of the capacity at f = 0.5", value("half the rate of capacity"), 1.0),
        ],
        "faulkner-localised-errors-leave-capacity" => {
            let (blocked, in_error) = (value("blocked"), value("in error"));
            let more = blocked.zip(in_error).map(|(blocked, in_error)| blocked > in_error);
            vec![
                rounds("1 - H2(0.25)", in_error, 0.189, 1e-3),
                Criterion::new("1 - f at f = 0.25", "above 1 - H2(0.25)", blocked, more),
                Criterion::told("1 - H2(0.125), with as many bits in error", value("as many in error")),
            ]
        }
        "faulkner-symmetry-factor" => vec![
            rounds("62 / 1438", value("symmetry"), 0.043, 1e-3),
            Criterion::told(
                "bits up over down, an acknowledgement for every segment",
                clear(0, "up over down"),
            ),
            Criterion::told("one for every second segment", clear(1, "up over down")),
        ],
        "faulkner-window-units" => vec![
            rounds("frames in 1 s", value("frames"), 66.0, 1.0),
            rounds("bytes in 1.4 s", value("1.4 s"), 46_000.0, 1000.0),
            rounds("bytes in 0.6 s", value("0.6 s"), 20_000.0, 1000.0),
            rounds("seconds of 512 frames", value("baseline"), 8.0, 1.0),
        ],
        _ => return None,
    };
    Some(Ruling::all(criteria))
}

/// A value has to round to the printed one, whose last digit is worth `unit`.
pub(super) fn rounds(what: &str, value: Option<f64>, printed: f64, unit: f64) -> Criterion {
    let holds = value.map(|value| (value - printed).abs() <= 0.5 * unit);
    Criterion::new(what, format!("rounds to {printed}"), value, holds)
}

/// A value has to be this one, but for the last bits.
fn equals(what: &str, value: Option<f64>, required: f64) -> Criterion {
    let holds = value.map(|value| (value - required).abs() <= 1e-12 * required);
    Criterion::new(what, format!("{required}"), value, holds)
}
