//! `longhaul sweep`: a grid of scenarios, or a study of one's own.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::claims::Value;
use lab::papers;
use lab::scenario::built_in;
use lab::study::{Plan, Study, plain};

use super::studies::{self, Running};
use crate::commands::outcome::{misconfigured, quoted};

/// Run a scenario for every combination of some keys' values, or a study over its axes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul sweep scenarios/demo/download.toml \\
      --axis link.satellite.channel.delay=\"50 ms\",\"250 ms\" --seeds 10
  longhaul sweep scenarios/peng/experiments.toml --axis delay=0.05,0.67 \\
      --quick
  longhaul sweep study.toml --shard 2/3 --out out/two    # each on a machine
  longhaul sweep study.toml --merge out/two --merge out/three

A sweep that was interrupted goes on where it stopped. --out has report.html, measurements.csv and measurements.jsonl
(one row per reading, experiment, coordinates, seed and quantity) and summary.json. docs/studies.md explains study files.")]
pub(crate) struct Arguments {
    /// Scenario file, study file or its folder, or a paper's short name.
    file: PathBuf,
    /// An axis and its comma-separated values; may be repeated. An axis is a dotted key of a scenario, or the name of an axis of
    /// a study.
    #[arg(long, value_name = "KEY=A,B,..", value_parser = axis)]
    axis: Vec<Axis>,
    #[command(flatten)]
    running: Running,
}

/// A key and its values.
#[derive(Clone, Debug)]
struct Axis {
    key: String,
    values: Vec<toml::Value>,
}

/// Reads `key=a,b,c`. A value that is not TOML is taken as a text, so that `250 ms` needs no quotes.
fn axis(text: &str) -> Result<Axis, String> {
    let wrong = || format!("\"{text}\" is not an axis, as in delay=0.1,0.5");
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let parsed = toml::from_str::<toml::Table>(&format!("values = [{values}]"));
    let values = match parsed.ok().and_then(|mut table| table.remove("values")) {
        Some(toml::Value::Array(values)) => values,
        _ => values.split(',').map(|value| one(value.trim())).collect(),
    };
    if key.trim().is_empty() || values.is_empty() {
        return Err(wrong());
    }
    Ok(Axis { key: key.trim().to_owned(), values })
}

fn one(text: &str) -> toml::Value {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
    parsed.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| text.into())
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let study = match load(&arguments.file, &arguments.axis) {
        Ok(study) => study,
        Err(error) => return misconfigured(error),
    };
    let chosen = match is_scenario(&arguments.file) {
        true => Ok(Vec::new()),
        false => arguments.axis.iter().map(Axis::choice).collect::<Result<_, _>>(),
    };
    let axes = match chosen {
        Ok(axes) => axes,
        Err(error) => return misconfigured(format_args!("--axis: {error}")),
    };
    let plan = Plan { axes, ..Plan::default() };
    studies::execute(&study, &arguments.running, plan, &command(arguments))
}

impl Axis {
    /// The values of a study's axis that run.
    fn choice(&self) -> Result<(String, Vec<Value>), String> {
        Ok((self.key.clone(), self.values.iter().map(plain).collect::<Result<_, _>>()?))
    }
}

/// Whether the file is a scenario: these have links, studies have none.
fn is_scenario(file: &Path) -> bool {
    let text = built_in::read(file).unwrap_or_default();
    toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("link"))
}

fn load(file: &Path, axes: &[Axis]) -> Result<Study, base::config::ConfigError> {
    if is_scenario(file) {
        let axes: Vec<_> = axes.iter().map(|axis| (axis.key.clone(), axis.values.clone())).collect();
        return Study::of_scenario(file, &axes);
    }
    papers::study_at(file)
}

/// The command that gives the same results.
fn command(arguments: &Arguments) -> String {
    let mut command = format!("longhaul sweep {}", quoted(&arguments.file.display().to_string()));
    for axis in &arguments.axis {
        let values: Vec<String> = axis.values.iter().map(ToString::to_string).collect();
        command += &format!(" --axis '{}={}'", axis.key, values.join(","));
    }
    command
}
