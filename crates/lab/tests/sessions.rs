//! What several COTMLL sessions over one link bring: one flow's gap does not hold up another flow.

use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

/// Two sources of datagrams, together well below the line's rate; the first scheme has one session, the second two.
const SCENARIO: &str = include_str!("../../../scenarios/demo/sessions.toml");

fn run(sessions: usize, errors: &str, seed: u64) -> Run {
    let change = format!("link.satellite.channel.errors={errors}").parse().unwrap();
    let suite = Suite::parse("sessions.toml", SCENARIO, Path::new(""), &[change]).unwrap();
    let watch = Watch { latencies: true, ..Watch::default() };
    let run = run::run("sessions", &suite.schemes[sessions - 1].1, seed, &watch).unwrap();
    assert!(run.intact && run.goodput_bps <= run.bound_bps, "{run:?}");
    run
}

/// Of the voice's records, the mean latency in seconds, and the part of them that took longer than half a second.
fn voice(run: &Run) -> (f64, f64) {
    let latencies = &run.latencies["voice"];
    let seconds: Vec<f64> = latencies.iter().map(|sample| sample.latency.as_secs_f64()).collect();
    let count = seconds.len() as f64;
    let late = seconds.iter().filter(|seconds| **seconds > 0.5).count();
    (seconds.iter().sum::<f64>() / count, late as f64 / count)
}

/// The same for one session and for two, each the mean over three seeds.
fn one_and_two(errors: &str) -> [(f64, f64); 2] {
    [1, 2].map(|sessions| {
        let voices = (1..=3).map(|seed| voice(&run(sessions, errors, seed)));
        voices.fold((0.0, 0.0), |sum, (mean, late)| (sum.0 + mean / 3.0, sum.1 + late / 3.0))
    })
}

/// Goal: with independent losses nearly every record that is late in one session waits for the other flow's frames: alone in its
/// session, the voice waits for its own.
#[test]
fn a_flow_does_not_wait_for_another_flows_losses() {
    let [(mean, late), (mean_of_two, late_of_two)] = one_and_two("{ erasure = { probability = 0.02 } }");
    assert!(late > 0.2 && late_of_two < 0.03, "{late} and {late_of_two}");
    // The path alone takes 250 ms and a short frame's time.
    assert!(mean > 0.38 && mean_of_two < 0.30, "{mean} s and {mean_of_two} s");
}

/// Goal: after a blockage, which takes both flows' frames, each waits for its own recovery alone.
#[test]
fn a_flow_does_not_wait_for_another_flows_recovery() {
    let errors = "{ gilbert-elliott = { f = 0.1, d = \"1 s\" } }";
    let [(mean, late), (mean_of_two, late_of_two)] = one_and_two(errors);
    assert!(
        late_of_two < 0.8 * late && mean_of_two < 0.9 * mean,
        "{mean} s, {late} and {mean_of_two} s, {late_of_two}"
    );
}

/// Goal: what a busy session sends does not put off what another needs to send again, on a line that has hardly room for both.
#[test]
fn a_lost_frame_of_a_quiet_session_is_found_beside_a_busy_one() {
    let errors = "{ gilbert-elliott = { f = 0.3, d = \"1 s\" } }";
    let [(mean, late), (mean_of_two, late_of_two)] = one_and_two(errors);
    assert!(late_of_two < late && mean_of_two < mean, "{mean} s, {late} and {mean_of_two} s, {late_of_two}");
}
