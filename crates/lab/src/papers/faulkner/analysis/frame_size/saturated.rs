//! What frames of each size carry, measured: on a link that never runs dry, and under a bulk transfer.
//!
//! A packet of 1500 bytes does not fill its last frame, and short frames are lost less. So what is expected of a saturated link
//! is not e(n) itself: every fragment takes its own bits, as often as it has to be sent until one sending passes.

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};

use super::{BERS, OVERHEAD, efficiency, intact};
use crate::claims::Measurements;
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::{
    Channel, FRAME_BITS, PACKET, RATE, RECORD, Scheme, saturated, scenario, throughput,
};
use crate::report::Figure;
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Samples};
use crate::run::{self, Watch};
use crate::statistics::Interval;

pub(in super::super) const SATURATED: Experiment = Experiment {
    name: NAME,
    figures: &["frame-sizes"],
    claims: &["faulkner-frame-size-optimum"],
    cases,
    measure,
};

pub(in super::super) const BULK: Experiment = Experiment {
    name: BULK_NAME,
    figures: &["frame-sizes"],
    claims: &["faulkner-frame-size-optimum"],
    cases: bulk_cases,
    measure: measure_bulk,
};

const NAME: &str = "frame sizes, saturated";
const BULK_NAME: &str = "frame sizes, bulk";
/// Bits of the longest frames.
const SIZES: [f64; 6] = [512.0, 1024.0, 2048.0, 3968.0, 8192.0, 12_072.0];
const SEEDS: u32 = 10;
/// Frames that a run has the time for.
const FRAMES: f64 = 20_000.0;

fn name(ber: f64, bits: f64) -> String {
    format!("c={ber:e} n={bits}")
}

/// The bit error rate from which on the link carries less than expected.
const LOSSY: f64 = 1e-5;
/// What may explain that: what is otherwise, COTMLL's parameters and further keys.
const OTHERWISE: [(&str, &str, &[&str]); 2] = [
    ("with a delay of 25 ms", "", &["link.satellite.channel.delay=25 ms"]),
    ("told of the latest block", ", block = \"latest\"", &[]),
];

fn name_otherwise(otherwise: &str) -> String {
    format!("{}, {otherwise}", name(LOSSY, FRAME_BITS))
}

/// Bytes of a packet in a frame of so many bits.
fn payload(bits: f64) -> u32 {
    ((bits - OVERHEAD) / 8.0) as u32
}

/// Without errors every seed is the same.
fn seeds(ber: f64, effort: Effort) -> u32 {
    if ber > 0.0 { effort.choose(1, SEEDS) } else { 1 }
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let case = |name: String, ber: f64, bits: f64, parameters: &str, keys: &[&str]| {
        let seconds = (effort.choose(0.1, 1.0) * FRAMES * bits / RATE).ceil();
        let protocol = format!("window = 512, frame-payload = {}{parameters}", payload(bits));
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let scenario = saturated(&protocol, &Channel::BitErrors(ber), seconds, &keys)?;
        Ok(Case::new(name, scenario, seeds(ber, effort)))
    };
    let mut cases = Vec::new();
    for ber in BERS {
        for bits in SIZES {
            cases.push(case(name(ber, bits), ber, bits, "", &[])?);
        }
    }
    for (otherwise, parameters, keys) in OTHERWISE {
        cases.push(case(name_otherwise(otherwise), LOSSY, FRAME_BITS, parameters, keys)?);
    }
    Ok(cases)
}

/// Packets that arrive from a tenth of the run on, when the window has long been full.
fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let watch = Watch { progress: true, ..Watch::default() };
    let run = run::run(NAME, case.scenario(), seed, &watch)?;
    let whole = case.scenario().duration.as_secs_f64();
    let from = Instant::ZERO + Duration::from_secs_f64(0.1 * whole);
    let points = || run.progress.iter().filter(|received| received.name == "down").flat_map(|r| &r.points);
    let by = |end: Instant| points().filter(|(at, _)| *at <= end).map(|(_, bytes)| *bytes).max();
    let records = (by(Instant::MAX).unwrap_or(0) - by(from).unwrap_or(0)) as f64 / RECORD;
    let mut measured = Measurements::new();
    measured.note("e", records * PACKET * 8.0 / (0.9 * whole) / RATE);
    Ok(measured)
}

fn bulk_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for &ber in effort.choose(&BERS[3..4], &BERS) {
        for bits in SIZES {
            let payload = format!("link.satellite.protocol.cotmll.frame-payload={}", payload(bits));
            let channel = Channel::BitErrors(ber);
            let scenario = scenario(Scheme::TcpLl, &channel, effort.choose(60.0, 300.0), &[payload])?;
            cases.push(Case::new(name(ber, bits), scenario, seeds(ber, effort)));
        }
    }
    Ok(cases)
}

fn measure_bulk(case: &Case, seed: u64) -> io::Result<Measurements> {
    let run = run::run(BULK_NAME, case.scenario(), seed, &Watch::default())?;
    let mut measured = Measurements::new();
    measured.note("T", throughput(&run));
    Ok(measured)
}

/// Payload that a saturated link carries, of the line's bits, with packets of 1500 bytes in frames of `bits`: e(n) with the
/// remainder accounted for.
fn expected(ber: f64, bits: f64) -> f64 {
    let most = f64::from(payload(bits)) * 8.0;
    let (mut rest, mut on_line) = (PACKET * 8.0, 0.0);
    while rest > 0.0 {
        let frame = rest.min(most) + OVERHEAD;
        on_line += frame / intact(ber, frame);
        rest -= most;
    }
    PACKET * 8.0 / on_line
}

/// Measured efficiency, with an interval where there is chance.
fn measured(samples: &Samples, case: &str) -> Option<Interval> {
    samples.interval(NAME, case, "e").or_else(|| {
        let mean = samples.mean(NAME, case, "e")?;
        Some(Interval { mean, low: mean, high: mean, n: 1 })
    })
}

pub(super) fn criteria(samples: &Samples) -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for ber in BERS {
        for bits in SIZES {
            let at = format!("c = {ber:e}, n = {bits}");
            let off = measured(samples, &name(ber, bits)).map(|e| {
                let expected = expected(ber, bits);
                let [mean, low, high] = [e.mean, e.low, e.high].map(|e| e / expected - 1.0);
                Interval { mean, low, high, ..e }
            });
            criteria.push(Criterion::within(format!("saturated link / e - 1, {at}"), off, -0.01, 0.01));
            let bulk = samples.mean(BULK_NAME, &name(ber, bits), "T");
            criteria.push(Criterion::told(format!("throughput of a bulk transfer, {at}"), bulk));
        }
    }
    let baseline = measured(samples, &name(LOSSY, FRAME_BITS));
    criteria.push(Criterion::told(format!("saturated link, c = {LOSSY:e}, n = {FRAME_BITS}"), baseline));
    for (otherwise, ..) in OTHERWISE {
        let changed = measured(samples, &name_otherwise(otherwise));
        criteria.push(Criterion::told(format!("the same {otherwise}"), changed));
    }
    criteria
}

pub(in super::super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for ber in BERS {
        for bits in SIZES {
            let row = [("c", format!("{ber:e}")), ("n", bits.to_string())];
            let bound = Some(expected(ber, bits));
            let case = name(ber, bits);
            let link = Cell::of_mean("saturated link, by frame size", &row, samples.values(NAME, &case, "e"));
            cells.push(Cell { bound, ..link });
            let bulk = samples.values(BULK_NAME, &case, "T");
            if !bulk.is_empty() {
                let cell = Cell::of_mean("bulk transfer, by frame size", &row, bulk);
                cells.push(Cell { bound, ..cell });
            }
        }
    }
    cells
}

pub(in super::super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let mut curves = Curves::new("bits of the longest frame", "payload / line rate").log_x();
    for (colour, ber) in BERS.into_iter().enumerate() {
        let points: Vec<(f64, Interval)> =
            SIZES.into_iter().filter_map(|bits| Some((bits, measured(samples, &name(ber, bits))?))).collect();
        curves = curves.measured(&format!("c = {ber:e}"), colour, &points);
    }
    // Twelve points from 400 to 13000 bits.
    let sizes: Vec<f64> = (0..=12).map(|k| 400.0 * libm::pow(32.5, f64::from(k) / 12.0)).collect();
    for ber in BERS {
        let curve = sizes.iter().map(|&bits| (bits, efficiency(ber, bits))).collect();
        curves = curves.calculated(&format!("e(n), c = {ber:e}"), curve);
    }
    vec![Figure {
        name: "frame-sizes".to_owned(),
        title: "Section 2.3: what a saturated link carries in frames of each size".to_owned(),
        caption: format!(
            "Packets of 1500 bytes both ways in frames of at most n bits, {FRAMES} frames a run, means of {SEEDS} seeds with \
             95 % intervals; dashed: e(n) = (1 - 72/n) (1 - c)^n, which leaves the short last frame of a packet out."
        ),
        svg: curves.svg(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_costs_a_header_and_is_lost_less() {
        // Three full frames and one of 39 bytes, without errors: 12000 bits in 12288.
        assert!((expected(0.0, 3968.0) - 12_000.0 / 12_288.0).abs() < 1e-12);
        assert!((expected(0.0, 12_072.0) - efficiency(0.0, 12_072.0)).abs() < 1e-12);
        assert!(expected(1e-4, 8192.0) > efficiency(1e-4, 8192.0));
    }
}
