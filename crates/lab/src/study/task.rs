//! Replications for other processes to measure: each a few numbers, and what comes back is a line of the store.

use serde::{Deserialize, Serialize};

use super::identity::{identity, key};
use super::probe::Trial;
use super::{Plan, Study, StudyError, store};

/// One replication of one case: its place in a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub(super) reading: Vec<usize>,
    pub(super) experiment: usize,
    pub(super) coordinates: Vec<usize>,
    pub(super) number: u32,
    /// About how long it takes, in milliseconds of one core.
    pub work: u64,
}

impl Study {
    /// Measures a task that a [`Sweep`](super::Sweep) of this study by this `plan` has: the name of its experiment's file in the store,
    /// and the line that belongs there.
    ///
    /// # Errors
    /// The study has no such task, or the run failed.
    pub fn measure(&self, plan: &Plan, task: &Task) -> Result<(String, String), StudyError> {
        let wrong = |message: String| StudyError::Expression { place: self.name.clone(), message };
        let experiment = self.experiments.get(task.experiment);
        let experiment = experiment.ok_or_else(|| wrong(format!("no experiment {}", task.experiment)))?;
        let is_known = task.reading.len() == self.readings.len()
            && task.coordinates.len() == experiment.axes.len()
            && experiment.axes.iter().zip(&task.coordinates).all(|(axis, &at)| at < axis.values.len());
        if !is_known {
            return Err(wrong(format!("experiment \"{}\" has no such case", experiment.name)));
        }
        let case = experiment.case(self, plan, &task.reading, task.coordinates.clone()).map_err(wrong)?;
        let first = plan.seed.unwrap_or(self.seed);
        let trial = Trial {
            scenarios: &case.scenarios,
            numbers: &case.numbers,
            seed: first.wrapping_add(task.number.into()),
            is_first: task.number == 0,
        };
        let measured = trial.measure(&experiment.probes).map_err(|error| experiment.failed(&case, &error))?;
        let key = key(identity(experiment, &case), first, task.number);
        let stamp = self.stamp(task.experiment)?;
        Ok((store::file(&experiment.name), store::line(stamp, key, &measured)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sweep;
    use super::*;

    /// What another process measured counts as if it had been measured here.
    #[test]
    fn lines_of_tasks_are_what_a_sweep_keeps() {
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/demo/download.toml");
        let axes = [("link.satellite.channel.rate".to_owned(), vec!["256 kbit/s".into(), "1 Mbit/s".into()])];
        let study = Study::of_scenario(demo.as_ref(), &axes).unwrap();
        let store = std::env::temp_dir().join(format!("longhaul-tasks-{}", std::process::id()));
        let plan = Plan { seeds: Some(2), store: Some(store.clone()), ..Plan::default() };
        let tasks = Sweep::prepare(&study, plan.clone()).unwrap().tasks();
        assert_eq!(tasks.len(), 5 * 2 * 2, "schemes, rates, seeds");
        let elsewhere = Study::of_scenario(demo.as_ref(), &axes).unwrap();
        for task in &tasks[1..] {
            let sent = serde_json::to_string(task).unwrap();
            let (file, line) = elsewhere.measure(&plan, &serde_json::from_str(&sent).unwrap()).unwrap();
            let before = std::fs::read_to_string(store.join(&file)).unwrap();
            std::fs::write(store.join(file), before + &line).unwrap();
        }
        let sweep = Sweep::prepare(&study, plan.clone()).unwrap();
        assert_eq!(sweep.tasks(), tasks[..1]);
        let shared = sweep.run(|_| ()).unwrap();
        let alone = Plan { store: None, ..plan.clone() };
        let alone = Sweep::prepare(&study, alone).unwrap().run(|_| ()).unwrap();
        let table = |outcome: &super::super::Outcome<'_>| {
            let mut text = Vec::new();
            outcome.results.write_csv(&study, &mut text).unwrap();
            text
        };
        assert!(!table(&shared).is_empty() && table(&shared) == table(&alone));
        let wrong = Task { coordinates: vec![0, 7], ..tasks[0].clone() };
        assert!(study.measure(&plan, &wrong).unwrap_err().to_string().contains("no such case"));
        std::fs::remove_dir_all(store).unwrap();
    }
}
