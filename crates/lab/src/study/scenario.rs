//! A plain scenario file as a study: its schemes, and keys of it as axes; a table and a figure of each thing that its traffic is about.

mod shown;

use core::fmt::Write as _;
use std::path::Path;

use base::config::ConfigError;
use toml::{Table, Value as Toml};

use super::{Files, Study};
use crate::scenario::{built_in, overrides};
use shown::Shown;

/// What is measured of each run.
const PROBES: [&str; 5] = ["throughput", "transfers", "latency", "transactions", "flows"];

impl Study {
    /// The study of a scenario file over `axes`: dotted keys of the scenario, each with the values that it takes.
    ///
    /// # Errors
    /// The file is no scenario, or does not have such keys.
    pub fn of_scenario(path: &Path, axes: &[(String, Vec<Toml>)]) -> Result<Self, ConfigError> {
        Self::of_text(path, &built_in::read(path)?, axes)
    }

    /// The study of the scenario `text` over `axes`: dotted keys of the scenario, each with the values that it takes.
    /// Complaints name the file at `path`, which need not hold `text`.
    ///
    /// # Errors
    /// As [`Study::of_scenario`].
    pub fn of_text(path: &Path, text: &str, axes: &[(String, Vec<Toml>)]) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.ok_or_else(|| ConfigError::about(&file, "a scenario's file ends in .toml"))?;
        let scenario: Table = base::config::parse(&file, text)?;
        let title = scenario.get("name").and_then(Toml::as_str).unwrap_or(stem);
        let seeds = scenario.get("seeds").and_then(Toml::as_integer).unwrap_or(1);
        let seed = scenario.get("seed").and_then(Toml::as_integer).unwrap_or(1);
        let probes = PROBES.map(|probe| format!("\"{probe}\"")).join(", ");
        let mut head = format!(
            "name = {}\ntitle = {}\nseed = {seed}\n[[experiment]]\nname = \"sweep\"\nbase = {}\nseeds = {seeds}\nprobes = [{probes}]\n",
            quoted(&stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
            quoted(title),
            quoted(stem)
        );
        if let Some((key, _)) = axes.iter().find(|(key, _)| ["seed", "seeds"].contains(&key.as_str())) {
            return Err(ConfigError::about(
                &file,
                format!(
                    "{key} is no axis: a sweep runs each case with the seeds that --seed and --seeds name"
                ),
            ));
        }
        let keys: Vec<&str> = axes.iter().map(|(key, _)| key.as_str()).collect();
        let names: Vec<String> = keys.iter().map(|key| name(key, &keys)).collect();
        for ((_, values), name) in axes.iter().zip(&names) {
            let values: Vec<String> = values.iter().map(Toml::to_string).collect();
            let _ = writeln!(head, "axes.{name} = [{}]", values.join(", "));
        }
        for ((key, _), name) in axes.iter().zip(&names) {
            let _ = writeln!(head, "set.{key} = \"${name}\"");
        }
        check_schemes(&file, &scenario, axes)?;
        let has_schemes = scenario.get("scheme").and_then(Toml::as_array).is_some_and(|all| !all.is_empty());
        let lists: Vec<(&str, &[Toml])> =
            names.iter().zip(axes).map(|(name, (_, values))| (name.as_str(), values.as_slice())).collect();
        // What is swept is set, whether the file sets it or not.
        let set = axes.iter().filter_map(|(key, values)| format!("{key}={}", values.first()?).parse().ok());
        let scenario = overrides::with(&scenario, &set.collect::<Vec<_>>());
        let shown = Shown::of(&scenario, has_schemes, &lists);
        head += &shown.to_toml();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let base = folder.join(format!("{stem}.toml")).display().to_string();
        let files = Files::Laid(folder, format!("{stem}.toml"), text.to_owned());
        let study = Self::parse(files, &format!("the sweep of {file}"), &head, &[]);
        let mut study = study.map_err(|error| {
            // The study is in no file that anybody could look at; what it says of the scenario is all that counts.
            match error.message.split_once(&format!("{base}: ")) {
                Some((_, message)) => ConfigError::about(&base, message),
                None => ConfigError::about(&error.file, error.message),
            }
        })?;
        let own = study.experiments.iter_mut().flat_map(|experiment| &mut experiment.axes);
        for axis in own {
            let key = names.iter().zip(axes).find(|(name, _)| **name == axis.name).map(|(_, (key, _))| key);
            axis.title = key.unwrap_or(&axis.title).clone();
        }
        study.whole_only = true;
        study.setting = shown.why_undrawn().unwrap_or_default();
        Ok(study)
    }
}

/// A scheme that sets what is swept would have the same results at all values.
fn check_schemes(file: &str, scenario: &Table, axes: &[(String, Vec<Toml>)]) -> Result<(), ConfigError> {
    let schemes = scenario.get("scheme").and_then(Toml::as_array);
    for scheme in schemes.into_iter().flatten() {
        let Some(set) = scheme.get("set").and_then(Toml::as_table) else { continue };
        for (key, values) in axes {
            let laid = |value: &Toml| {
                let change = overrides::Override::at(key, value.clone());
                let mut all = overrides::with(scenario, &change.into_iter().collect::<Vec<_>>());
                overrides::lay_over(&mut all, set);
                all
            };
            let (Some(first), Some(last)) = (values.first(), values.last()) else { continue };
            if first != last && laid(first) == laid(last) {
                let name = scheme.get("name").and_then(Toml::as_str).unwrap_or_default();
                return Err(ConfigError::about(
                    file,
                    format!(
                        "scheme \"{name}\" sets {key} itself, so all values of that axis would come out alike"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// What expressions call the axis of a key: so many of its last parts that no other of the keys ends in them.
fn name(key: &str, all: &[&str]) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let last = |n: usize| &parts[parts.len() - n..];
    let is_own = |n: &usize| {
        let mut others = all.iter().filter(|other| **other != key);
        !others.any(|other| other.split('.').collect::<Vec<_>>().ends_with(last(*n)))
    };
    let name = last((1..=parts.len()).find(is_own).unwrap_or(parts.len())).join("_");
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn quoted(text: &str) -> String {
    Toml::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::form::Kind;
    use super::*;

    const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/demo/download.toml");

    fn swept(axes: &[(&str, &[&str])]) -> Study {
        let value = |text: &&str| Toml::String((*text).to_owned());
        let axes: Vec<_> = axes
            .iter()
            .map(|(key, values)| ((*key).to_owned(), values.iter().map(value).collect()))
            .collect();
        Study::of_scenario(Path::new(DEMO), &axes).unwrap()
    }

    #[test]
    fn a_sweep_draws_along_what_is_a_quantity() {
        let delay: (&str, &[&str]) = ("link.satellite.channel.delay", &["50 ms", "250 ms"]);
        let rate: (&str, &[&str]) = ("link.satellite.channel.rate", &["256 kbit/s", "1 Mbit/s", "4 Mbit/s"]);
        let tcp: (&str, &[&str]) = ("tcp.preset", &["linux", "longhaul"]);
        for (axes, kind, x, curves) in [
            (vec![delay], Kind::Lines, "delay", vec!["scheme"]),
            (vec![tcp, delay], Kind::Panels, "delay", vec!["scheme", "preset"]),
            (vec![delay, rate, tcp], Kind::Panels, "delay", vec!["scheme", "rate", "preset"]),
            (vec![tcp], Kind::Bars, "preset", vec!["scheme"]),
            (vec![], Kind::Bars, "scheme", vec![]),
        ] {
            let study = swept(&axes);
            assert_eq!(study.setting, "");
            assert_eq!(study.figures.len(), 2, "goodput, and the time of the download");
            for form in &study.figures {
                assert_eq!(
                    (form.kind, form.x.as_str(), form.curve.as_slice()),
                    (kind, x, &curves.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..])
                );
            }
        }
        let study = swept(&[delay, rate]);
        let labels: Vec<_> = study.tables.iter().map(|form| form.id.as_str()).collect();
        assert_eq!(labels, ["goodput, kbit/s", "goodput / bound, %", "time of download, s"]);
        let titles: Vec<_> = study.experiments[0].axes.iter().map(|axis| axis.title.as_str()).collect();
        assert_eq!(titles, ["scheme", delay.0, rate.0]);
        let columns: Vec<_> = study.experiments[0].axes.iter().map(crate::study::Axis::column).collect();
        assert_eq!(columns[1..], ["link.satellite.channel.delay_s", "link.satellite.channel.rate_bps"]);
    }

    #[test]
    fn what_is_not_drawn_is_said() {
        let rates: Vec<String> = (1..=13).map(|rate| format!("{rate} Mbit/s")).collect();
        let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
        let delay: (&str, &[&str]) = ("link.satellite.channel.delay", &["50 ms", "250 ms"]);
        let rate: (&str, &[&str]) = ("link.satellite.channel.rate", &rates);
        let study = swept(&[delay, rate]);
        assert!(study.figures.is_empty());
        assert!(
            study.setting.contains("the axes beside \"delay\" would take 13 panels"),
            "{}",
            study.setting
        );
        // Twelve can be looked at.
        assert_eq!(swept(&[delay, (rate.0, &rates[..12])]).figures.len(), 2);
        let presets: (&str, &[&str]) = ("tcp.preset", &["linux", "longhaul", "reference"]);
        let framings: (&str, &[&str]) = ("link.satellite.framing", &["ideal", "efl", "encrypted-efl"]);
        let study = swept(&[framings, presets, ("tcp.congestion", &["reno", "cubic"])]);
        assert!(study.figures.is_empty());
        assert!(study.setting.contains("would take 6 bars"), "{}", study.setting);
    }

    #[test]
    fn too_many_lines_become_a_map() {
        let text = include_str!("../../../../scenarios/demo/download.toml");
        let (alone, _) = text.split_once("[[scheme]]").unwrap();
        let rates = |count: i64| (1..=count).map(|rate| Toml::from(format!("{rate} Mbit/s"))).collect();
        let delays = ["50 ms", "250 ms"].map(Toml::from).to_vec();
        let axes = |count| {
            [("delay", delays.clone()), ("rate", rates(count))]
                .map(|(key, values)| (format!("link.satellite.channel.{key}"), values))
        };
        for (count, kind) in [(8, Kind::Lines), (9, Kind::Heat)] {
            let study = Study::of_text(Path::new("alone.toml"), alone, &axes(count)).unwrap();
            let form = &study.figures[0];
            assert_eq!(
                (form.kind, form.x.as_str(), form.bound.is_some()),
                (kind, "delay", kind == Kind::Lines)
            );
        }
    }

    #[test]
    fn keys_get_short_names_that_tell_them_apart() {
        let names = |keys: &[&str]| -> Vec<String> { keys.iter().map(|key| name(key, keys)).collect() };
        assert_eq!(names(&["link.satellite.channel.up-rate", "tcp.preset"]), ["up_rate", "preset"]);
        let two = ["link.a.channel.delay", "link.b.channel.delay"];
        assert_eq!(names(&two), ["a_channel_delay", "b_channel_delay"]);
        assert_eq!(names(&["seed", "traffic.x.seed"]), ["seed", "x_seed"]);
    }

    #[test]
    fn what_a_scheme_sets_is_no_axis() {
        let values = |names: &[&str]| names.iter().map(|&name| Toml::from(name)).collect();
        let axis = [("link.satellite.protocol".to_owned(), values(&["coded", "slacp"]))];
        let complaint = Study::of_scenario(Path::new(DEMO), &axis).unwrap_err().to_string();
        assert!(
            complaint.contains("scheme \"TCP over COTMLL\" sets link.satellite.protocol itself"),
            "{complaint}"
        );
    }

    #[test]
    fn seeds_are_no_axis() {
        let complaint = Study::of_scenario(Path::new(DEMO), &[("seed".to_owned(), vec![1.into(), 2.into()])]);
        assert!(complaint.unwrap_err().to_string().contains("seed is no axis"));
    }
}
