//! `longhaul bench scale`: what an event and a flow cost as networks grow.

use std::process::{Command, ExitCode};

use lab::bench::scale::{Scaled, Shape, WARM_UP};
use serde_json::{Value, json};

use super::{peak_memory_mb, timed};
use crate::commands::outcome::{failure, say};

/// Measure how the engine scales: set-up time, time per event and memory per flow.
///
/// Networks are stars of 2 to 10,000 terminals, and two hosts with 10 to 100,000 flows between them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each size runs in a process of its own, so that its peak memory is its own. Times per event are relative to the
smallest size of the same run; compare those, not nanoseconds of different machines.

Examples:
  longhaul bench scale
  longhaul bench scale --up-to 100000
  longhaul bench scale --only flows:1000 --json")]
pub(crate) struct Arguments {
    /// Largest number of terminals or flows.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..))]
    up_to: u32,
    /// Only this size: star:TERMINALS or flows:FLOWS [default: all up to --up-to].
    #[arg(long, value_name = "SHAPE:SIZE", value_parser = shape)]
    only: Option<Shape>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Terminals of the stars; a host for each end of a flow is the least.
const TERMINALS: [u32; 5] = [2, 10, 100, 1_000, 10_000];
/// Flows between two hosts.
const FLOWS: [u32; 5] = [10, 100, 1_000, 10_000, 100_000];
/// Slices of a run that are timed; between them the data in flight are counted.
const SLICES: usize = 7;

fn shape(text: &str) -> Result<Shape, String> {
    let parsed = text.split_once(':').and_then(|(kind, size)| {
        let size = size.parse().ok()?;
        match kind {
            "star" if (2..=65_535).contains(&size) => Some(Shape::Star(size)),
            "flows" if (2..=100_000).contains(&size) => Some(Shape::Flows(size)),
            _ => None,
        }
    });
    parsed.ok_or_else(|| "allowed are star:2 to star:65535 and flows:2 to flows:100000".to_owned())
}

const fn kind(shape: Shape) -> &'static str {
    match shape {
        Shape::Star(_) => "star",
        Shape::Flows(_) => "flows",
    }
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let result = match arguments.only {
        Some(shape) => Ok(vec![measure(shape)]),
        None => measure_all(arguments.up_to),
    };
    match result {
        Ok(mut steps) => {
            relate(&mut steps);
            if arguments.json {
                say!("{:#}", json!({ "steps": steps }));
            } else {
                print_table(&steps);
            }
            ExitCode::SUCCESS
        }
        Err(error) => failure(error),
    }
}

fn measure_all(up_to: u32) -> Result<Vec<Value>, String> {
    let stars = TERMINALS.map(Shape::Star);
    let flows = FLOWS.map(Shape::Flows);
    let shapes = stars.into_iter().chain(flows).filter(|shape| shape.size() <= up_to);
    shapes.map(measure_apart).collect()
}

/// Measures a shape in another process.
fn measure_apart(shape: Shape) -> Result<Value, String> {
    let name = format!("{}:{}", kind(shape), shape.size());
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(this)
        .args(["bench", "scale", "--json", "--only", &name])
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let printed: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{name}: {error}"))?;
    Ok(printed["steps"][0].clone())
}

fn measure(shape: Shape) -> Value {
    let scenario = shape.scenario();
    let (mut scaled, set_up) = timed(|| Scaled::new(&scenario));
    scaled.advance(WARM_UP);
    let mut in_flight = scaled.in_flight();
    let (events, seconds) = timed(|| {
        let mut events = 0;
        for _ in 0..SLICES {
            events += scaled.advance(shape.slice());
            in_flight = in_flight.max(scaled.in_flight());
        }
        events
    });
    json!({
        "shape": kind(shape),
        "size": shape.size(),
        "flows": shape.flows(),
        "set_up_seconds": set_up,
        "events": events,
        "ns_per_event": seconds * 1e9 / events as f64,
        "peak_memory_mb": peak_memory_mb(),
        "in_flight_bytes": in_flight,
    })
}

/// Sets each step beside the smallest of its shape: time per event, and memory per flow less the data in flight.
fn relate(steps: &mut [Value]) {
    for shape in ["star", "flows"] {
        let mut smallest = None;
        for step in steps.iter_mut().filter(|step| step["shape"] == shape) {
            let of = |step: &Value, key: &str| step[key].as_f64().unwrap_or_default();
            let smallest: &Value = smallest.get_or_insert_with(|| step.clone());
            let relative = of(step, "ns_per_event") / of(smallest, "ns_per_event");
            let more = |key: &str| of(step, key) - of(smallest, key);
            let memory = more("peak_memory_mb") * 1e6 - more("in_flight_bytes");
            let (relative, per_flow) = (json!(relative), json!(memory / more("flows")));
            step["relative"] = relative;
            // Of few flows the allocator's pages say nothing.
            step["bytes_per_flow"] = if of(step, "flows") < 1_000.0 { Value::Null } else { per_flow };
        }
    }
}

fn print_table(steps: &[Value]) {
    say!("each flow sends 40 kbit/s; memory per flow excludes its data in flight\n");
    say!("shape    size  set-up s    events  ns/event  relative  peak MB  bytes/flow");
    for step in steps {
        let number = |key: &str| step[key].as_f64().unwrap_or_default();
        let bytes = step["bytes_per_flow"].as_f64().map_or("-".to_owned(), |bytes| format!("{bytes:.0}"));
        say!(
            "{:<5} {:>7}  {:>8.3}  {:>8}  {:>8.0}  {:>8.2}  {:>7.1}  {bytes:>10}",
            step["shape"].as_str().unwrap_or_default(),
            number("size"),
            number("set_up_seconds"),
            number("events"),
            number("ns_per_event"),
            number("relative"),
            number("peak_memory_mb"),
        );
    }
}
