//! Telling how the gateway is doing. One status is made at a time, for the status file and for all who asked before it was begun: some
//! peers in each turn of the loop, so that packets pass in between. How much of the time that takes is limited.

use std::fmt::Write as _;
use std::sync::Arc;

use base::{Duration, Instant};
use serde_json::{Map, Value, json};

use super::account::{Part, Then};
use super::peers::Peers;
use super::query::Queries;
use super::status::{add, sum};
use super::{Gateway, Status};
use crate::clock::sleep;

/// A status as JSON, in pieces.
pub(super) type Text = Arc<[String]>;

/// What is being told, and when the next status may be made.
#[derive(Debug, Default)]
pub(super) struct Telling {
    making: Option<Making>,
    /// How many were begun.
    number: u64,
    /// What the last one has taken of this thread's time, and when it was done.
    took: Duration,
    done: Instant,
    /// When the status file is due, and whether the status in the making is for it too.
    file_at: Instant,
    is_for_file: bool,
}

/// A status in the making.
#[derive(Debug)]
struct Making {
    began: Instant,
    /// What concerns no single peer.
    whole: Value,
    /// Lines of peers, with the number of their worker.
    lines: Vec<(u32, String)>,
    /// Workers whose accounts are incomplete, and the first one's next peer.
    missing: Vec<u32>,
    next: u32,
}

/// The worker of this thread.
const FIRST: u32 = 0;
/// What making statuses takes of the time, at most: one part in this many where somebody asks, and for the file alone.
const QUESTION_SHARE: u64 = 10;
const FILE_SHARE: u64 = 50;
/// Between two status files, at least.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
/// For the accounts of other workers, which take milliseconds with thousands of peers.
const PATIENCE: Duration = Duration::from_secs(1);
/// Before who waits for them looks again.
const PAUSE: Duration = Duration::from_millis(1);

impl Gateway {
    /// Hears questions if there are any, and goes on with the status that is in the making, or begins one that is due.
    pub(super) fn follow_status(&mut self, now: Instant, from_queries: bool) {
        if let Some(queries) = &mut self.queries {
            queries.serve(now, from_queries);
        }
        if self.telling.making.is_none() {
            if self.status_due().is_none_or(|due| now < due) {
                return;
            }
            let interval = self.config.status.as_ref().map(|it| it.interval.max(SHORTEST_INTERVAL));
            self.begin_making(now, interval);
        }
        let start = self.worker.clock.now();
        let made = self.go_on_making(now);
        let is_done = made.is_some();
        if let Some((began, text)) = made {
            if let Some(queries) = &mut self.queries {
                queries.answer(now, began, &text);
            }
            if self.telling.is_for_file {
                self.write_status(&text);
            }
        }
        let end = self.worker.clock.now();
        self.telling.took += end.saturating_since(start);
        if is_done {
            self.telling.done = end;
        }
    }

    /// When [`Gateway::follow_status`] wants to be called though nobody may have asked.
    pub(super) fn poll_status(&self, now: Instant) -> Option<Instant> {
        match &self.telling.making {
            Some(making) if making.is_missing(FIRST) => Some(now),
            Some(making) => Some(making.began + PATIENCE),
            None => self.status_due(),
        }
    }

    /// When the next status is to be made, if one is wanted.
    fn status_due(&self) -> Option<Instant> {
        let Telling { took, done, file_at, .. } = self.telling;
        let is_asked = self.queries.as_ref().is_some_and(Queries::are_asked);
        let question = is_asked.then(|| done + took.saturating_mul(QUESTION_SHARE));
        let file = self.config.status.is_some().then(|| file_at.max(done + took.saturating_mul(FILE_SHARE)));
        [question, file].into_iter().flatten().min()
    }

    /// The last status, for whoever may wait for it. A worker that does not answer in time is missing in it, in whole
    /// or in part.
    ///
    /// # Panics
    /// If it is no JSON.
    #[must_use]
    pub fn into_status(mut self) -> Status {
        serde_json::from_str(&self.status_text().concat()).expect("it was made as JSON")
    }

    /// The status as of now, made in one go. What others tell meanwhile is not heard, so nothing may run yet or any more.
    pub(super) fn status_text(&mut self) -> Text {
        self.begin_making(self.worker.clock.now(), None);
        loop {
            let now = self.worker.clock.now();
            // One that has failed is missing.
            let _ = self.take_reports(now, &mut |_| ());
            if let Some((_, text)) = self.go_on_making(now) {
                return text;
            }
            if self.poll_status(now).is_some_and(|due| now < due) {
                sleep(PAUSE);
            }
        }
    }

    fn begin_making(&mut self, now: Instant, interval: Option<Duration>) {
        let number = self.telling.number + 1;
        let others = self.workers.ask(number);
        self.telling.begin(now, number, interval, others);
    }

    /// Adds some of this worker's peers; once all have told, or their time is up, the status and when it was begun.
    fn go_on_making(&mut self, now: Instant) -> Option<(Instant, Text)> {
        let making = self.telling.making.as_mut()?;
        if making.is_missing(FIRST) {
            making.take(FIRST, self.worker.account(making.next), &self.peers);
        }
        if !making.is_over(now) {
            return None;
        }
        let making = self.telling.making.take()?;
        Some((making.began, making.into_text(self.devices())))
    }

    /// What only the whole gateway has.
    fn devices(&self) -> Value {
        json!({
            "device": self.config.tun.name.as_str(),
            "pid": std::process::id(),
            "uptime_seconds": self.worker.clock.now().as_secs_f64(),
            "super_segments": self.worker.tun.has_offloads(),
            "workers": self.worker.hub.worker().count(),
        })
    }
}

impl Telling {
    /// Begins the status of this number, which other workers are to tell of too. Where there is a file, `interval` is its own.
    fn begin(
        &mut self,
        now: Instant,
        number: u64,
        interval: Option<Duration>,
        others: impl Iterator<Item = u32>,
    ) {
        self.number = number;
        self.took = Duration::ZERO;
        self.is_for_file = interval.is_some() && self.file_at <= now;
        if let Some(interval) = interval.filter(|_| self.is_for_file) {
            self.file_at = now + interval;
        }
        self.making = Some(Making::new(now, others));
    }

    /// Something has happened that the file is to have soon. A status that is in the making may lack it.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.file_at = now;
    }

    /// Takes a part of another worker's account, for the status of this number.
    pub(super) fn handle_part(&mut self, number: u64, worker: u32, part: Part, names: &Peers) {
        if number == self.number
            && let Some(making) = &mut self.making
        {
            making.take(worker, part, names);
        }
    }

    /// A worker has ended, so nobody waits for it.
    pub(super) fn on_ended(&mut self, worker: u32) {
        if let Some(making) = &mut self.making {
            making.missing.retain(|missing| *missing != worker);
        }
    }
}

impl Making {
    /// One that these workers are to tell of besides the first.
    fn new(began: Instant, others: impl Iterator<Item = u32>) -> Self {
        let missing = std::iter::once(FIRST).chain(others).collect();
        Self { began, whole: Value::Object(Map::new()), lines: Vec::new(), missing, next: 0 }
    }

    fn is_missing(&self, worker: u32) -> bool {
        self.missing.contains(&worker)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.missing.is_empty() || (!self.is_missing(FIRST) && self.began + PATIENCE <= now)
    }

    fn take(&mut self, worker: u32, part: Part, names: &Peers) {
        let mut lines = String::with_capacity(part.peers.iter().map(|(_, status)| status.len() + 100).sum());
        for (id, status) in part.peers {
            let name = Value::from(names.name(id));
            // Its name is its last member.
            let open = status.strip_suffix('}').unwrap_or(&status);
            let _ = writeln!(lines, "{open},\"name\":{name}}},");
        }
        self.lines.push((worker, lines));
        match part.then {
            Then::From(next) if worker == FIRST => self.next = next,
            Then::From(_) => {}
            Then::End(whole) => {
                sum(&mut self.whole, whole);
                self.missing.retain(|missing| *missing != worker);
            }
        }
    }

    /// All of it, a line for each peer, those of each worker together.
    fn into_text(mut self, devices: Value) -> Text {
        add(&mut self.whole, devices);
        let whole = format!("{:#}", self.whole);
        let head = format!("{},\n  \"peers\": [\n", whole.trim_end_matches("\n}"));
        self.lines.retain(|(_, lines)| !lines.is_empty());
        self.lines.sort_by_key(|(worker, _)| *worker);
        if let Some((_, last)) = self.lines.last_mut() {
            last.truncate(last.len() - ",\n".len());
        }
        let lines = self.lines.into_iter().map(|(_, lines)| lines);
        std::iter::once(head).chain(lines).chain(["\n  ]\n}\n".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests;
