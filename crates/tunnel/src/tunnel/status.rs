//! What a tunnel says about itself.

use base::{Duration, Instant, Rate};
use link::{LineId, When};
use serde::Serialize;
use serde_json::Value;

use super::{Line, Traffic, Tunnel};
use crate::counters::{Counter, Named, Reasons};
use crate::path::Address;
use crate::proxy_side;
use crate::survey::Survey;
use crate::survey::mtu::PathMtu;
use crate::survey::passage::Passage;

/// The status of a tunnel, to be serialized. Rates are in bits per second, with all headers.
#[derive(Debug, Serialize)]
pub struct Status<'a> {
    peer: Option<Address>,
    handshakes: Counter,
    protocol: &'static str,
    traffic: &'a Traffic,
    frames_cut: u64,
    path: PathStatus,
    /// Of several, each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<LineStatus>,
    session: Named,
    discarded: &'a Reasons,
    link: Named,
    queue: Named,
    queued_bytes: u64,
    pep: Option<proxy_side::Status>,
    once_queue: Option<Named>,
    interactive_queue: Option<Named>,
}

/// What is known of a path, or of all that are open together: what they carry is added up, round trip and packets are the smallest,
/// queueing and what the channel loses the largest. Counts are those of all, open or not.
#[derive(Clone, Copy, Debug, Serialize)]
struct PathStatus {
    rate: Option<u64>,
    carries: Option<u64>,
    experiments: u64,
    loss: Option<f64>,
    datagrams_answered: u64,
    datagrams_lost: u64,
    channel_loss: f64,
    round_trip_seconds: Option<f64>,
    queueing_seconds: f64,
    mtu: Option<usize>,
    mtu_reductions: Option<u64>,
}

impl Tunnel {
    /// The status as of now.
    #[must_use]
    pub fn status(&self, now: Instant) -> Status<'_> {
        let late = [("late", self.session.late.get())];
        let queues = &self.ingress.queues;
        Status {
            peer: self.session.peer(),
            handshakes: self.session.established,
            protocol: self.config.link.protocol.name(),
            traffic: &self.traffic,
            frames_cut: self.frames_cut(),
            path: self.all_paths(now),
            paths: self.paths(now),
            session: Named(self.rejected.iter().chain(late).collect()),
            discarded: &self.discarded,
            link: Named(self.endpoint.counters()),
            queue: Named(queues.counters()),
            queued_bytes: queues.bytes(),
            pep: self.ingress.proxy.as_deref().map(proxy_side::Status::of),
            once_queue: queues.once_counters().map(Named),
            interactive_queue: queues.interactive_counters().map(Named),
        }
    }

    /// What was counted, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let numbers = |prefix: &str, value: Value| -> Vec<(String, u64)> {
            let Value::Object(members) = value else { return Vec::new() };
            let named = |(name, value): (String, Value)| Some((format!("{prefix}{name}"), value.as_u64()?));
            members
                .into_iter()
                .filter_map(named)
                .map(|(name, count)| (name.replace('_', "-"), count))
                .collect()
        };
        let mut status = serde_json::to_value(self.status(Instant::ZERO)).expect("its names are strings");
        let parts = [
            ("traffic", ""),
            ("session", "session-"),
            ("discarded", "discarded-"),
            ("link", "link-"),
            ("queue", "queue-"),
            ("pep", "pep-"),
        ];
        let counted = parts.into_iter().flat_map(|(part, prefix)| numbers(prefix, status[part].take()));
        let mut counters: Vec<_> = counted.chain([("frames-cut".to_owned(), self.frames_cut())]).collect();
        if !self.lines.is_single() {
            for (id, line) in self.lines.all() {
                let (datagrams, bytes) = line.sent();
                let name = |what: &str| format!("path-{}-{what}", id.number());
                counters.extend([(name("datagrams-sent"), datagrams), (name("bytes-sent"), bytes)]);
            }
        }
        counters
    }

    fn frames_cut(&self) -> u64 {
        self.lines.all().map(|(_, line)| line.parts.cut).sum()
    }

    /// What is known of each line, where there are several.
    fn paths(&self, now: Instant) -> Vec<LineStatus> {
        let of = |(id, line): (LineId, &Line)| {
            let (datagrams_sent, bytes_sent) = line.sent();
            let heard = self.session.heard_over(id);
            LineStatus {
                number: id.number(),
                name: format!("path-{}", id.number() + 1),
                peer: self.session.path_over(id).map(|path| path.peer),
                carrier: self.session.path_over(id).map(|path| path.via.0),
                is_open: line.is_open,
                silent_seconds: heard.map(|at| now.saturating_since(at).as_secs_f64()),
                used: match line.line_use.usage().when {
                    When::Always => "always",
                    When::Metered => "metered",
                    When::Backup => "backup",
                },
                datagrams_sent,
                bytes_sent,
                path: PathStatus::of(now, &line.survey, line.pacer.rate()),
            }
        };
        if self.lines.is_single() { Vec::new() } else { self.lines.all().map(of).collect() }
    }

    /// What is known of all lines that are open together; of the first, where none is.
    fn all_paths(&self, now: Instant) -> PathStatus {
        let status = |line: &Line| PathStatus::of(now, &line.survey, line.pacer.rate());
        // As most are, of thousands of peers.
        if self.lines.is_single() {
            return status(&self.lines.first);
        }
        let Some(all) = self.lines.open().map(status).reduce(PathStatus::and) else {
            return status(&self.lines.first);
        };
        let passages = self.lines.open().map(|line| &line.survey.passage);
        // What is counted never becomes less, whichever lines are heard.
        let ever = self.lines.all().map(|(_, line)| status(line)).reduce(PathStatus::and);
        let PathStatus { experiments, datagrams_answered, datagrams_lost, mtu_reductions, .. } =
            ever.unwrap_or(all);
        let loss = Passage::loss_of(passages, now);
        PathStatus { loss, experiments, datagrams_answered, datagrams_lost, mtu_reductions, ..all }
    }
}

impl Status<'_> {
    /// Calls the first of several paths by these names. Others have their numbers.
    pub fn name_paths(&mut self, names: &[String]) {
        for (path, name) in self.paths.iter_mut().zip(names) {
            path.name.clone_from(name);
        }
    }
}

/// One of several lines.
#[derive(Debug, Serialize)]
struct LineStatus {
    number: u8,
    name: String,
    peer: Option<Address>,
    carrier: Option<u8>,
    is_open: bool,
    silent_seconds: Option<f64>,
    used: &'static str,
    datagrams_sent: u64,
    bytes_sent: u64,
    #[serde(flatten)]
    path: PathStatus,
}

impl PathStatus {
    /// As `survey` has found it, and paced at `rate`.
    fn of(now: Instant, survey: &Survey, rate: Option<Rate>) -> Self {
        let seconds = |time: Duration| time.as_secs_f64();
        let controller = &survey.rate_controller;
        Self {
            rate: rate.map(Rate::as_bps),
            carries: controller.capacity().map(Rate::as_bps),
            experiments: controller.experiments(),
            loss: survey.passage.loss(now),
            datagrams_answered: survey.passage.sent(),
            datagrams_lost: survey.passage.lost(),
            channel_loss: controller.channel_loss(),
            round_trip_seconds: survey.round_trip().map(seconds),
            queueing_seconds: seconds(controller.queueing()),
            mtu: survey.mtu.as_ref().map(PathMtu::size),
            mtu_reductions: survey.mtu.as_ref().map(|mtu| mtu.shrunk),
        }
    }

    /// This path and that one together. What both lose lately is not known from what each does.
    fn and(self, that: Self) -> Self {
        /// Something of both, if only one is known that.
        fn known<T>(this: Option<T>, that: Option<T>, both: impl Fn(T, T) -> T) -> Option<T> {
            match (this, that) {
                (Some(this), Some(that)) => Some(both(this, that)),
                (this, that) => this.or(that),
            }
        }
        // One without a limit leaves none to both.
        let sum = |this: Option<u64>, that: Option<u64>| Some(this?.saturating_add(that?));
        Self {
            rate: sum(self.rate, that.rate),
            carries: sum(self.carries, that.carries),
            experiments: self.experiments + that.experiments,
            loss: None,
            datagrams_answered: self.datagrams_answered + that.datagrams_answered,
            datagrams_lost: self.datagrams_lost + that.datagrams_lost,
            channel_loss: self.channel_loss.max(that.channel_loss),
            round_trip_seconds: known(self.round_trip_seconds, that.round_trip_seconds, f64::min),
            queueing_seconds: self.queueing_seconds.max(that.queueing_seconds),
            mtu: known(self.mtu, that.mtu, usize::min),
            mtu_reductions: known(self.mtu_reductions, that.mtu_reductions, |this, that| this + that),
        }
    }
}
