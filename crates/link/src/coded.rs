//! Coded ARQ: selective repeat whose repairs are sums of frames.
//!
//! Ours: a sliding-window random linear code (RFC 8681; the terms of RFC 8406) with feedback, in the frames and reports of
//! wide COTMLL ([`crate::arq`]). Selective repeat already has the throughput of any code. What coding wins is delay: a repair that
//! is a sum stands in for any of the frames in it, so a repair may be on its way before anybody knows what it is for.
//!
//! - A frame goes out as it is, once.
//! - A receiver reports a frame as come when it has come, or when a sum that came *ends* with it (`decoder`): then one frame less has to
//!   come, whichever. So what the sender is told of are degrees of freedom (RFC 8406's), in a report that was made for frames.
//! - A frame that is lost goes out again, as it is while many packets wait, and else as a sum of all that are missing up to it. Whatever
//!   of the sums arrives solves what it can.
//! - While few wait, further repairs go out for what may be lost, as many as the loss rate that the receiver reports asks for (`law`).
//! - Where what is lost comes in long runs, because something blocks the line again and again, sums bring nothing: whatever is sent
//!   meanwhile is lost. There it does as wide COTMLL does, and frames are shorter ([`crate::arq`]'s `length`).
//! - After silence, an idle line carries in turn the oldest frame that is missing, and a sum of the newest.
//!
//! Packets are of five classes, by their [`Treatment`] and whether they [expire](Packet::expires), each with a window, repairs and reports
//! of its own (`class`), so that what is interactive waits neither for a download nor for its repairs:
//!
//! | class | number | sent again | repairs for what may be lost | order |
//! |---|---|---|---|---|
//! | once | 0 | never | until 99 of 100 come, or 98 while others wait | none |
//! | interactive | 1 | until it has come | while few interactive packets wait, until 999 of 1000 come, or 980 while others wait | as configured |
//! | interactive, expires | 3 | until its time is up | the same | as configured |
//! | reliable, expires | 4 | until its time is up | while few packets wait | as configured |
//! | reliable | 2 | until it has come | the same | as configured |
//!
//! What expires has classes of its own because a sum may stand in for a frame: a receiver that has reported a frame as come may need another of
//! the sum's to solve it, so giving that one up loses both.
//!
//! The class's number is in a byte behind the trailer:
//!
//! ```text
//! +---------+---------+-------+
//! | payload | trailer | class |    n, 15 or more, and 1 bytes
//! +---------+---------+-------+
//! ```
//!
//! The line's turns go to the classes in the table's order, but for half of the line at most while a later one has something to send.

use base::{Duration, Instant, Packet};

use crate::arq::{self, LineId, LineTerms, Over, TRAILER_LEN};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, Full, Lines, Obstacle};
use crate::event::Event;
use crate::line::LineLimits;
use crate::treatment::Treatment;
use crate::unreliable::{Meanwhile, Turns};

mod class;
mod config;
mod coverage;
mod decoder;
mod early_repeats;
mod kept;
mod losses;
mod repairs;
mod symbol;
mod work;

pub use config::Config;

use class::{Class, Memory};

/// One end of a link with coded ARQ.
#[derive(Debug)]
pub struct Coded {
    config: Config,
    /// Those of [`KINDS`].
    classes: [Class; CLASSES],
    /// Which of them have had anything to do. Nobody asks the others, which are cold memory where there are a thousand endpoints.
    in_use: [bool; CLASSES],
    /// Of each class but the last with all after it.
    turns: [Turns; CLASSES - 1],
    /// When each class last heard how much is lost.
    heard_at: [Option<Instant>; CLASSES],
    /// When a frame that only reports went ahead of others' packets.
    reported_at: Option<Instant>,
    /// Between two of these, at least.
    report_interval: Duration,
    /// Frames of no class.
    malformed: u64,
    /// Bytes for what is under way in all classes together, and as many again for what comes.
    limit: usize,
    /// Bytes that may surely be taken before what is held has to be looked at again.
    spare: usize,
}

impl Coded {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        let line = line.within(CLASS_LEN);
        Self {
            config,
            classes: KINDS.map(|kind| Class::new(config, kind, &line)),
            in_use: [false; CLASSES],
            turns: [Turns::default(); CLASSES - 1],
            heard_at: [None; CLASSES],
            reported_at: None,
            report_interval: report_interval(&line),
            malformed: 0,
            limit: usize::MAX,
            spare: usize::MAX,
        }
    }

    /// The class of packets that are treated so and do not expire.
    #[cfg(test)]
    const fn class(&self, treatment: Treatment) -> &Class {
        &self.classes[place(treatment, false)]
    }

    /// The classes of packets that are treated so.
    fn classes_of(&self, treatment: Treatment) -> impl Iterator<Item = &Class> {
        self.classes
            .iter()
            .zip(KINDS)
            .filter_map(move |(class, kind)| (kind.treatment == treatment).then_some(class))
    }

    /// What each class has to send. One that only reports leaves the line to others' packets for a while.
    fn demands(&self, now: Instant, line: LineId) -> [Demand; CLASSES] {
        let is_early = self.reported_at.is_some_and(|at| now < at + self.report_interval);
        let waits = is_early && self.used().any(Class::has_packets);
        core::array::from_fn(|place| match &self.classes[place] {
            class if self.in_use[place] && (!waits || class.has_packets()) => class.demand_over(now, line),
            _ => Demand::Nothing,
        })
    }

    /// The classes that have had anything to do.
    fn used(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter().zip(self.in_use).filter_map(|(class, in_use)| in_use.then_some(class))
    }

    fn used_mut(&mut self) -> impl Iterator<Item = &mut Class> {
        self.classes.iter_mut().zip(self.in_use).filter_map(|(class, in_use)| in_use.then_some(class))
    }

    /// A class has something to do from now on.
    fn begin_use(&mut self, place: usize) {
        if !self.in_use[place] {
            self.in_use[place] = true;
            self.note_waiting();
        }
    }

    /// Tells each class whether one behind it has something to send.
    fn note_waiting(&mut self) {
        let mut waits = false;
        for (class, in_use) in self.classes.iter_mut().zip(self.in_use).rev() {
            if in_use {
                class.set_delays_others(waits);
                waits |= class.waiting() > 0;
            }
        }
    }

    /// What a class has to do while those before it would send.
    fn meanwhile(demands: &[Demand]) -> Meanwhile {
        match demands.iter().any(|demand| *demand > Demand::Nothing) {
            true => Meanwhile::Sending,
            false => Meanwhile::Nothing,
        }
    }

    /// Whose turn the line is.
    fn choose(&self, demands: &[Demand; CLASSES]) -> usize {
        let is_turn = |place: usize| {
            self.turns.get(place).is_none_or(|turns| turns.is_here(Self::meanwhile(&demands[place + 1..])))
        };
        let fresh = (0..CLASSES).find(|place| demands[*place] == Demand::Fresh && is_turn(*place));
        // Those that have had their half leave the others even what these would only repeat.
        let others = || (0..CLASSES).rev().find(|place| demands[*place] > Demand::Nothing);
        fresh.or_else(others).unwrap_or(place(Treatment::Reliable, false))
    }

    /// Classes share one memory. The class at `place`, which takes the next frame, is told what the others have of it. Where there are too many
    /// copies, the class with most of them drops some.
    fn share_memory(&mut self, place: usize) {
        let (mut all, mut most) = (Memory::default(), (0, 0));
        for (at, class) in self.classes.iter().enumerate() {
            let memory = class.memory();
            all.add(memory);
            most = most.max((memory.copies, at));
        }
        // Copies only spare repairs, so they get what frames and sums leave.
        let allowed = kept::MAX_BYTES.min(self.limit.saturating_sub(all.held + all.sums));
        if all.copies > allowed {
            self.classes[most.1].drop_copies(all.copies - allowed);
        }
        all.remove(self.classes[place].memory());
        self.classes[place].set_elsewhere(all);
    }

    /// Whether so little is under way that a packet with this treatment may be taken: little in all classes, or in its own. One packet at a time
    /// may always be.
    fn has_memory(&self, treatment: Treatment) -> bool {
        let held = |class: &Class| class.core.sender.memory();
        let is_little =
            |class: &Class| class.core.sender.in_flight() == 0 || held(class) <= self.limit / SHARES;
        self.spare > 0
            || self.used().map(held).sum::<usize>() <= self.limit
            || self.classes_of(treatment).all(is_little)
    }

    /// What a packet takes in a window with what is noted about its frames, at most.
    fn most_held_of(&self, packet: &Packet) -> usize {
        let configured = self.config.frame_payload.map_or(LEAST_PAYLOAD, |it| it.get() as usize);
        packet.capacity() + (packet.len() / configured.min(LEAST_PAYLOAD) + 2) * arq::NOTES
    }

    /// A packet that takes so many bytes is taken.
    fn spend(&mut self, bytes: usize) {
        self.spare = self.spare.saturating_sub(bytes);
        if self.spare == 0 {
            let at_most = self.used().map(|class| class.core.sender.memory_at_most()).sum::<usize>();
            self.spare = self.limit.saturating_sub(at_most) / 2;
        }
    }

    /// Each class knows of losses what any has heard lately: an interactive one may have sent too little to know.
    fn share_losses(&mut self, now: Instant) {
        let is_new = |at: &Option<Instant>| at.is_some_and(|at| now.saturating_since(at) < LOSS_MEMORY);
        let heard = self.classes.iter().zip(&self.heard_at).filter(|(_, at)| is_new(at));
        let all = heard.map(|(class, _)| class.loss());
        let Some((loss, in_runs)) = all.reduce(|a, b| (a.0.max(b.0), a.1 || b.1)) else { return };
        self.classes.iter_mut().for_each(|class| class.learn_loss(now, loss, in_runs));
    }

    /// Each class knows of lines what the one at `place` has found out.
    fn share_suspicion(&mut self, place: usize) {
        let Some(suspicion) = self.classes[place].suspicion().cloned() else { return };
        let others = self.classes.iter_mut().enumerate().filter(|(other, _)| *other != place);
        others.for_each(|(_, class)| class.share(&suspicion));
    }

    fn handle(&mut self, now: Instant, over: Over, frame: &[u8]) -> Result<(), Discard> {
        let Some((&number, frame)) = frame.split_last() else {
            self.malformed += 1;
            return Err(Discard::Truncated(0));
        };
        let Some(place) = KINDS.iter().position(|kind| kind.number == number) else {
            self.malformed += 1;
            return Err(Discard::Malformed);
        };
        self.begin_use(place);
        self.share_memory(place);
        let result = self.classes[place].handle_frame_over(now, over, frame);
        // By a duplicate too, or one that came too late: its report is as new as any.
        self.heard_at[place] = Some(now);
        self.share_losses(now);
        self.share_suspicion(place);
        result
    }

    fn poll(&mut self, now: Instant, over: Over, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let demands = self.demands(now, over.line());
        let (chosen, start) = (self.choose(&demands), out.len());
        self.begin_use(chosen);
        if demands[chosen] == Demand::Fresh && !self.classes[chosen].has_packets() {
            self.reported_at = Some(now);
        }
        let info = self.classes[chosen].poll_frame_over(now, over, out)?;
        out.push(KINDS[chosen].number);
        self.note_waiting();
        self.share_suspicion(chosen);
        let len = out.len() - start;
        for (place, turns) in self.turns.iter_mut().enumerate() {
            match chosen {
                one if one == place => turns.on_frame(len, Self::meanwhile(&demands[place + 1..])),
                one if one > place => turns.on_other(len),
                _ => {}
            }
        }
        Some(info)
    }
}

/// What the packets of a class have in common.
#[derive(Clone, Copy, Debug)]
struct Kind {
    treatment: Treatment,
    expires: bool,
    /// On the air.
    number: u8,
}

/// Between two frames that only report, at least, while others have packets: they take a fiftieth of the line.
fn report_interval(line: &LineLimits) -> Duration {
    let bytes = line.overhead() + REPORT_LEN;
    line.rate().map_or(Duration::ZERO, |rate| rate.time_for(bytes as u64 * 8).saturating_mul(REPORTS_SHARE))
}

/// Bytes of a frame that only reports: trailer, a short extension and class.
const REPORT_LEN: usize = TRAILER_LEN + 3;
/// Frames that only report take one part in this many of the line while others have packets. Ours: whatever they tell of waits for two or three long frames.
const REPORTS_SHARE: u64 = 50;

/// A class may have this part of what all may have under way, however much others have: a call goes on beside a download. Ours.
const SHARES: usize = 8;

/// How many classes there are.
const CLASSES: usize = 5;

/// All kinds, the most urgent first.
const KINDS: [Kind; CLASSES] = [
    Kind { treatment: Treatment::Once, expires: false, number: 0 },
    Kind { treatment: Treatment::Interactive, expires: false, number: 1 },
    Kind { treatment: Treatment::Interactive, expires: true, number: 3 },
    Kind { treatment: Treatment::Reliable, expires: true, number: 4 },
    Kind { treatment: Treatment::Reliable, expires: false, number: 2 },
];

/// Where packets belong that are treated so and expire or not. What is sent once is given up anyway.
const fn place(treatment: Treatment, expires: bool) -> usize {
    match (treatment, expires) {
        (Treatment::Once, _) => 0,
        (Treatment::Interactive, false) => 1,
        (Treatment::Interactive, true) => 2,
        (Treatment::Reliable, true) => 3,
        (Treatment::Reliable, false) => 4,
    }
}

/// Bytes of a packet in a frame, at least, unless the configuration has shorter ones.
const LEAST_PAYLOAD: usize = 256;

impl Endpoint for Coded {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn offer(&mut self, now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        if !self.has_memory(treatment) {
            return Err(Full(packet));
        }
        let place = place(treatment, packet.expires().is_some());
        self.begin_use(place);
        self.spend(self.most_held_of(&packet));
        let taken = self.classes[place].offer(now, packet, treatment);
        self.note_waiting();
        taken
    }

    /// Whether no packet that is treated so waits to be cut, whether it expires or not: so they leave in the order in which they came.
    fn has_room(&self, treatment: Treatment) -> bool {
        self.classes_of(treatment).all(|class| class.has_room(treatment)) && self.has_memory(treatment)
    }

    fn set_backlog(&mut self, treatment: Treatment, bytes: u64) {
        let mut changed = false;
        for (place, kind) in KINDS.iter().enumerate() {
            // Told far more often than it changes.
            if kind.treatment == treatment && self.classes[place].backlog() != bytes {
                self.classes[place].set_backlog(treatment, bytes);
                self.in_use[place] = true;
                changed = true;
            }
        }
        if changed {
            self.note_waiting();
        }
    }

    fn set_hold(&mut self, most: Option<Duration>) {
        self.classes.iter_mut().for_each(|class| class.set_hold(most));
    }

    fn carries_flow_of(&self, packet: &[u8]) -> bool {
        self.classes_of(Treatment::Reliable).any(|class| class.carries_flow_of(packet))
    }

    /// Of what is sent until it has come.
    fn obstacle(&self) -> Option<Obstacle> {
        let obstacle = self.classes_of(Treatment::Reliable).find_map(Endpoint::obstacle);
        obstacle.or_else(|| (!self.has_memory(Treatment::Reliable)).then_some(Obstacle::Window))
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.handle(now, Over::Only, frame)
    }

    fn handle_timeout(&mut self, now: Instant) {
        // What all share of lines becomes due for those too that have had nothing to do.
        let is_shared = self.classes[0].suspicion().is_some();
        let classes = self.classes.iter_mut().zip(self.in_use);
        classes.filter(|(_, in_use)| *in_use || is_shared).for_each(|(class, _)| class.handle_timeout(now));
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.poll(now, Over::Only, out)
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.used_mut().find_map(Endpoint::poll_packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.used().filter_map(Endpoint::poll_timeout).min()
    }

    fn demand(&self, now: Instant) -> Demand {
        self.used().map(|class| class.demand(now)).max().unwrap_or(Demand::Nothing)
    }

    fn demand_over(&self, now: Instant, line: LineId) -> Demand {
        self.used().map(|class| class.demand_over(now, line)).max().unwrap_or(Demand::Nothing)
    }

    fn set_line(&mut self, line: &LineLimits) {
        let line = line.within(CLASS_LEN);
        self.report_interval = report_interval(&line);
        self.classes.iter_mut().for_each(|class| class.set_line(&line));
    }

    fn lines(&mut self) -> Option<&mut dyn Lines> {
        Some(self)
    }

    fn reset(&mut self) {
        self.classes.iter_mut().for_each(Endpoint::reset);
        (self.turns, self.heard_at) = ([Turns::default(); CLASSES - 1], [None; CLASSES]);
    }

    fn observe(&mut self) {
        self.classes.iter_mut().for_each(Endpoint::observe);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.classes.iter_mut().find_map(Endpoint::poll_event)
    }

    /// Of all classes together.
    fn memory(&self) -> usize {
        self.used().map(Class::allocated).sum()
    }

    fn limit_memory(&mut self, bytes: usize) {
        self.limit = bytes;
        self.spare = 0;
        self.spend(0);
        self.classes.iter_mut().for_each(|class| class.limit_memory(bytes));
        // Each time the class with most of them drops what is too much.
        (0..CLASSES).for_each(|place| self.share_memory(place));
    }

    fn acknowledged(&self) -> u64 {
        self.classes.iter().map(Endpoint::acknowledged).sum()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let [mut counters, rest @ ..] = self.classes.each_ref().map(Endpoint::counters);
        for (all, others) in
            counters.iter_mut().enumerate().map(|(place, all)| (all, rest.iter().map(move |it| it[place].1)))
        {
            all.1 += others.sum::<u64>();
        }
        for (name, count) in &mut counters {
            *count += if *name == "frames-malformed" { self.malformed } else { 0 };
        }
        counters
    }
}

impl Lines for Coded {
    fn set_line_over(&mut self, line: LineId, terms: LineTerms) {
        self.classes.iter_mut().for_each(|class| class.set_line_over(line, terms));
    }

    fn handle_frame_over(&mut self, now: Instant, line: LineId, frame: &[u8]) -> Result<(), Discard> {
        self.handle(now, Over::OneOf(line), frame)
    }

    fn poll_frame_over(&mut self, now: Instant, line: LineId, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.poll(now, Over::OneOf(line), out)
    }

    fn suspect(&mut self, line: LineId) {
        self.classes.iter_mut().for_each(|class| class.suspect(line));
    }
}

/// Bytes behind a trailer that tell the class.
const CLASS_LEN: usize = 1;

/// How long what a class heard of losses holds for all. Ours.
const LOSS_MEMORY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
