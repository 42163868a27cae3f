//! A scenario in Rust: read, changed, run with a few seeds, beside its bound. `cargo run --release -p longhaul-lab --example scenario`

use std::ops::ControlFlow;
use std::path::Path;

use longhaul_lab::run::{self, Recordings};
use longhaul_lab::scenario::Suite;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Built in; a file's path does as well.
    let delay = "link.satellite.channel.delay=\"100 ms\"".parse()?;
    let suite = Suite::load(Path::new("demo/download"), &[delay])?.with_seeds(5);
    let runs = run::run_all(&suite, &Recordings::default(), |_| ControlFlow::Continue(()))?;
    for run in &runs {
        let share = 100.0 * run.goodput_bps / run.bound_bps;
        println!("{:24} seed {}: {:4.1} s, {share:3.0} % of the bound", run.scheme, run.seed, run.seconds);
    }
    println!("trace hash {}", run::trace_hash(&runs));
    Ok(())
}
