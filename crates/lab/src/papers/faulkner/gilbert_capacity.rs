//! Appendix A: the capacity of the blockage channel whose state nobody tells, by Gilbert's series.

use std::io;

use channel::capacity::Gilbert;

use crate::claims::Measurements;
use crate::study::probe::{Method, Probe, Trial};

/// `capacity`: bits per bit sent on a channel blocked for the fraction `f`, `d` bits on average; `run_of(k)`: u(k) / h^k;
/// `entropy_after(k)`: h(10^k); `recursion_gap`: how far Gilbert's recursion and its closed form are apart at most.
pub(super) const CAPACITY: Probe = Probe {
    name: "gilbert-capacity",
    version: 1,
    quantities: &["capacity", "run_of", "entropy_after", "recursion_gap"],
    series: &[],
    method: Method::Trial(measure),
};

/// The chance that a bit is right while blocked: h, or b in chapter 3.
const H: f64 = 0.5;
/// The fixed k of the appendix's limits.
const K: u32 = 10;
/// Terms of recursion and closed form that are compared.
const TERMS: usize = 2000;

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let (f, d) = (trial.number("f")?, trial.number("d")?);
    let channel = Gilbert::of_blockage(f, d, H).map_err(io::Error::other)?;
    let closed = (0..).map(|count| channel.correct_run(count));
    let gaps = channel.correct_runs().zip(closed).take(TERMS).map(|(run, closed)| (run - closed).abs());
    measured.note("capacity", channel.capacity().value);
    measured.note("recursion_gap", gaps.fold(0.0, f64::max));
    let k = [f64::from(K).into()];
    measured.set("run_of", &k, channel.correct_run(K) / libm::pow(H, f64::from(K)));
    measured.set("entropy_after", &k, channel.entropy_after(K));
    Ok(())
}
