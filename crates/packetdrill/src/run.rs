//! Runs a script: makes its calls, lets the peer's segments arrive, and compares what the host sends.

mod answers;

use core::fmt;
use std::collections::{BTreeMap, VecDeque};

use base::wire::tcp::Flags;
use base::{Duration, Instant};

use crate::call::{Call, Expected};
use crate::event::{Action, Assertion, Event, Time};
use crate::lexer::Position;
use crate::script::Script;
use crate::segment::{Expectation, Segment};
use crate::stack::{Ends, Stack};
use crate::translation::Translation;
use answers::Pending;

/// What did not come as a script says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    /// The event.
    pub at: Position,
    /// Expected and got.
    pub message: String,
    /// The last segments before it, in order.
    pub seen: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        if !self.seen.is_empty() {
            f.write_str("\n  segments before it:")?;
        }
        self.seen.iter().try_for_each(|segment| write!(f, "\n    {segment}"))
    }
}

/// Segments that a failure shows.
const SHOWN: usize = 12;

/// Runs `script` on `stack`. Times may be off by what the script says, and by `margin` more.
///
/// # Errors
/// The first thing that is not as the script says.
pub fn run(script: &Script, stack: &mut dyn Stack, margin: Duration) -> Result<(), Failure> {
    let mut run = Run {
        stack,
        ends: Ends::of(script.options.ipv6),
        tolerance: script.options.tolerance.saturating_add(margin),
        translation: Translation::default(),
        ports: (Ends::PORT, Ends::PEER_PORT),
        packets: VecDeque::new(),
        seen: VecDeque::new(),
        base: Instant::ZERO,
        nonblocking: BTreeMap::new(),
        pending: None,
    };
    for event in &script.events {
        run.event(event).map_err(|message| run.failure(event.at, message))?;
    }
    let last = script.events.last().map_or(Position { line: 1, column: 1 }, |event| event.at);
    run.finish().map_err(|message| run.failure(last, message))
}

pub(crate) struct Run<'a> {
    stack: &'a mut dyn Stack,
    ends: Ends,
    tolerance: Duration,
    translation: Translation,
    /// The host's and the peer's.
    ports: (u16, u16),
    /// Segments of the host's that no event has taken yet, as on the wire.
    packets: VecDeque<(Instant, Segment)>,
    /// Segments, in words.
    seen: VecDeque<String>,
    /// When the event before happened, which relative times count from.
    base: Instant,
    /// Of each descriptor, whether calls return at once.
    nonblocking: BTreeMap<i32, bool>,
    /// A call that blocks.
    pending: Option<Pending>,
}

impl Run<'_> {
    fn failure(&self, at: Position, message: String) -> Failure {
        Failure { at, message, seen: self.seen.iter().cloned().collect() }
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        let (from, to) = self.bounds(event.time);
        match &event.action {
            Action::Out(expected) => return self.expect(expected, event.time, from, to),
            Action::In(segment) => {
                self.wait(from)?;
                self.inject(segment)?;
            }
            Action::Call(call) => {
                self.finish_call()?;
                self.wait(from)?;
                self.call(event, call, from)?;
            }
            Action::Assert(assertions) => {
                self.wait(from)?;
                assertions.iter().try_for_each(|it| self.assert(it))?;
            }
        }
        self.base = from;
        Ok(())
    }

    /// From when to when an event may happen.
    fn bounds(&self, time: Time) -> (Instant, Instant) {
        let absolute = |at: Duration| Instant::ZERO + at;
        match time {
            Time::Absolute(at) => (absolute(at), absolute(at)),
            Time::AbsoluteRange(from, to) => (absolute(from), absolute(to)),
            Time::Relative(after) => (self.base + after, self.base + after),
            Time::RelativeRange(from, to) => (self.base + from, self.base + to),
            Time::Any => (self.base, self.base + PATIENCE),
        }
    }

    /// Goes to `until`; what is sent on the way is kept.
    pub(crate) fn wait(&mut self, until: Instant) -> Result<(), String> {
        while self.stack.now() < until {
            self.pass(until)?;
        }
        Ok(())
    }

    /// Goes on a little, to `until` at most.
    pub(crate) fn pass(&mut self, until: Instant) -> Result<(), String> {
        self.stack.pass(until)?;
        self.collect();
        self.poll_call()
    }

    /// Takes what the host has sent.
    pub(crate) fn collect(&mut self) {
        while let Some((at, packet)) = self.stack.poll_packet() {
            let Some(addressed) = Segment::parse(&packet, self.ends.host) else { continue };
            self.ports = (addressed.src_port, addressed.dst_port);
            self.translation.note_sent(&addressed.segment);
            self.packets.push_back((at, addressed.segment));
        }
    }

    fn note(&mut self, at: Instant, direction: char, segment: &Segment) {
        if self.seen.len() == SHOWN {
            self.seen.pop_front();
        }
        self.seen.push_back(format!("{} {direction} {segment}", seconds(at)));
    }

    fn inject(&mut self, segment: &Segment) -> Result<(), String> {
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && self.translation.is_new() {
            self.ports = (Ends::PORT, Ends::PEER_PORT);
        }
        let (host, peer) = ((self.ends.host, self.ports.0), (self.ends.peer, self.ports.1));
        let packet = self.translation.to_wire(segment).emit(peer, host);
        let now = self.stack.now();
        self.note(now, '<', segment);
        self.stack.inject(&packet)?;
        self.collect();
        self.poll_call()
    }

    /// The host's next segments are as expected.
    fn expect(
        &mut self,
        expected: &Expectation,
        time: Time,
        from: Instant,
        to: Instant,
    ) -> Result<(), String> {
        self.translation.note_expected(expected);
        let mut done = 0;
        loop {
            let (at, got) = self.next_packet(expected, to)?;
            let more = expected.is_begun_by(&got, done);
            // Timestamps count milliseconds.
            let tolerance = self.tolerance.as_millis();
            let shown = self.translation.to_script(&got, Some(expected), tolerance);
            self.note(at, '>', &shown);
            let mut wrong = expected.differences(&shown, done, !more);
            let early = at < from.saturating_sub(self.tolerance);
            if time != Time::Any && (early || at > to + self.tolerance) {
                wrong.push("time");
            }
            if !wrong.is_empty() {
                let message = format!(
                    "{} differ{}\n  expected {} > {expected}\n  got      {} > {shown}",
                    wrong.join(", "),
                    if wrong.len() == 1 { "s" } else { "" },
                    span(from, to, time),
                    seconds(at)
                );
                self.show_queue();
                return Err(message);
            }
            self.translation.note_timestamps(expected, &got);
            done += got.len;
            if !more {
                self.base = at;
                return Ok(());
            }
        }
    }

    fn next_packet(&mut self, expected: &Expectation, to: Instant) -> Result<(Instant, Segment), String> {
        let deadline = to + self.tolerance;
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Ok(packet);
            }
            if self.stack.now() > deadline {
                return Err(format!("nothing was sent by {}\n  expected > {expected}", seconds(deadline)));
            }
            self.pass(deadline + GRAIN)?;
        }
    }

    /// What was sent and not expected yet is shown too.
    fn show_queue(&mut self) {
        for (at, segment) in std::mem::take(&mut self.packets) {
            let shown = self.translation.to_script(&segment, None, 0);
            self.note(at, '>', &shown);
        }
    }

    fn assert(&mut self, assertion: &Assertion) -> Result<(), String> {
        let stack = &mut *self.stack;
        let value = |of: &crate::Expression, stack: &mut dyn Stack| of.value(&mut |field| stack.info(field));
        if value(&assertion.holds, stack)? != 0 {
            return Ok(());
        }
        let mut names = assertion.holds.fields();
        names.extend(assertion.says.iter().flat_map(crate::Expression::fields));
        names.dedup();
        let said: Result<Vec<String>, String> =
            names.into_iter().map(|name| Ok(format!("{name} = {}", stack.info(name)?))).collect();
        let text = match &assertion.says {
            Some(crate::Expression::Text(text)) => format!(" ({text})"),
            _ => String::new(),
        };
        Err(format!("{}: assertion does not hold{text}: {}", assertion.at, said?.join(", ")))
    }

    /// At the end nothing is left over.
    fn finish(&mut self) -> Result<(), String> {
        self.collect();
        self.finish_call()?;
        let Some((at, segment)) = self.packets.front().cloned() else { return Ok(()) };
        let shown = self.translation.to_script(&segment, None, 0);
        self.show_queue();
        Err(format!(
            "the script ends, and something was sent that it does not expect\n  got      {} > {shown}",
            seconds(at)
        ))
    }
}

/// How long `*` waits.
const PATIENCE: Duration = Duration::from_secs(600);
/// Beyond the last moment that is allowed.
const GRAIN: Duration = Duration::from_micros(1);

/// In seconds, as scripts write times.
pub(crate) fn seconds(at: Instant) -> String {
    let micros = at.as_nanos() / 1_000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn span(from: Instant, to: Instant, time: Time) -> String {
    match time {
        Time::Any => "*".to_owned(),
        _ if from == to => seconds(from),
        _ => format!("{}~{}", seconds(from), seconds(to)),
    }
}

/// What a call should return, in words.
pub(crate) fn returned(expected: Expected) -> String {
    match expected {
        Expected::Value(value) => value.to_string(),
        Expected::Error(errno) => format!("-1 {}", errno.name()),
        Expected::Any => "...".to_owned(),
    }
}

/// A call that is not made yet.
pub(crate) fn returns_at(call: &Call, event: &Event, from: Instant) -> Option<Instant> {
    let returns = call.returns?;
    Some(match event.time {
        Time::Absolute(_) => Instant::ZERO + returns,
        Time::Relative(after) => from.saturating_sub(after) + returns,
        _ => from,
    })
}
