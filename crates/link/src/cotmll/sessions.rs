//! Several COTMLL sessions over one line.
//!
//! In one session with ordered delivery a frame that is missing holds up every packet behind it, whichever flow that belongs
//! to. With several each flow has one of them, chosen by its addresses and ports, and waits for no other's frames. Ours: Faulkner
//! 2004 has one session a link and asks, in 5.2 (5), how several TCP connections over it interact.
//!
//! A frame is that of a session with one byte more:
//!
//! ```text
//! +---------+---------+---------+
//! | payload | session | trailer |    n, 1 and 4 bytes
//! +---------+---------+---------+
//! ```
//!
//! Asked for a frame, the sender lets the sessions speak in turn:
//! 1. one that would otherwise be silent for more than 16 frames, whether or not it has anything to say, so that its
//!    feedback never starves and its last frames are sent again on a busy line too; else
//! 2. the next that has data, known losses, messages or acknowledgements that have changed. If these are all that
//!    it has, and another has more, it sends them without a payload; else
//! 3. the next of which something is unacknowledged; else the next.
//!
//! Rule 2 also finds a session that other sessions' data would keep from sending again what it needs: one with data for
//! which its window has no room, and one with a frame that is unacknowledged a whole window of the line's frames after it was
//! sent. In the only session, the window would be full by then and that frame the next.
//!
//! Turns are frames, not bytes. A packet whose session is still cutting up another waits here, in a queue of its session; one
//! that finds that full is dropped and counted: if it went back, it would stand in the way of the other flows.

use core::iter;
use std::collections::VecDeque;

use base::{Instant, Packet};

use super::{Config, Cotmll, TRAILER_LEN};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, Full, Obstacle};
use crate::event::Event;
use crate::flow;
use crate::line::LineLimits;
use crate::treatment::Treatment;

/// One end of a link with several sessions.
#[derive(Debug)]
pub struct Sessions {
    sessions: Vec<Session>,
    /// The sessions' numbers, the one that has been silent for longest first.
    silent: VecDeque<usize>,
    /// Frames so far.
    frames: u64,
    /// The session that had the last turn under rules 2 and 3.
    latest: usize,
    /// The session of the frame that was started last.
    started: usize,
    /// Frames of no session.
    malformed: u64,
}

#[derive(Debug)]
struct Session {
    machine: Cotmll,
    /// What the machine has no room for yet: packets that are sent until they have arrived, and those that are sent once.
    waiting: [VecDeque<(Packet, Treatment)>; 2],
    limit: usize,
    /// Bytes that buffers of what waits take.
    buffers: usize,
    dropped: u64,
    /// The number of its latest frame among those of all.
    spoke_at: u64,
}

/// What a session does with its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// What it would do alone.
    Frame,
    /// A bare acknowledgement.
    Acknowledgement,
}

impl Sessions {
    /// An endpoint with as many sessions as `config` says, and nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        let count = config.sessions.get() as usize;
        let line = line.within(SESSION_LEN);
        Self {
            sessions: iter::repeat_with(|| Session::new(config, &line)).take(count).collect(),
            silent: (0..count).collect(),
            frames: 0,
            latest: 0,
            started: 0,
            malformed: 0,
        }
    }

    /// The session that a packet's flow belongs to.
    #[must_use]
    pub fn session_of(&self, packet: &[u8]) -> usize {
        (flow::hash(packet) % self.sessions.len() as u64) as usize
    }

    /// Whose turn it is by rules 2 and 3, and what for.
    fn choose(&self, now: Instant) -> (usize, Turn) {
        let has_more = |machine: &Cotmll| self.has_more(machine);
        if let Some(next) = self.next(|machine| machine.receiver.has_news() || has_more(machine)) {
            let acknowledges = !has_more(&self.sessions[next].machine) && self.next(has_more).is_some();
            return (next, if acknowledges { Turn::Acknowledgement } else { Turn::Frame });
        }
        let busy = self.next(|machine| !machine.is_at_rest(now));
        (busy.or_else(|| self.next(|_| true)).unwrap_or(0), Turn::Frame)
    }

    /// Whether a session is to have its turns for more than acknowledgements.
    fn has_more(&self, machine: &Cotmll) -> bool {
        let window = u64::from(machine.config.window.get());
        let is_old = |sent_at: u64| sent_at + window <= self.frames;
        machine.has_data() || machine.sender.is_pending() || machine.sender.least_recent().is_some_and(is_old)
    }

    /// The session that has been silent for longest, if it or one of those that have to follow it cannot wait.
    fn overdue(&self) -> Option<usize> {
        let due = |session: &usize| self.sessions[*session].spoke_at + LONGEST_SILENCE;
        // The next frame is number `frames + 1`; those that have been silent for longer go before.
        let cannot_wait =
            |(before, session): (usize, &usize)| self.frames + 1 + before as u64 >= due(session);
        self.silent.iter().enumerate().any(cannot_wait).then(|| self.silent.front().copied()).flatten()
    }

    /// The next session in turn of which this holds.
    fn next(&self, holds: impl Fn(&Cotmll) -> bool) -> Option<usize> {
        let count = self.sessions.len();
        let mut in_turn = (1..=count).map(|step| (self.latest + step) % count);
        in_turn.find(|session| holds(&self.sessions[*session].machine))
    }
}

impl Session {
    fn new(config: Config, line: &LineLimits) -> Self {
        Self {
            machine: Cotmll::new(config, line),
            waiting: Default::default(),
            limit: config.session_queue.get() as usize,
            buffers: 0,
            dropped: 0,
            spoke_at: 0,
        }
    }

    fn has_room(&self, treatment: Treatment) -> bool {
        // Those that wait wait for the machine.
        self.machine.has_room(treatment)
    }

    fn take(&mut self, now: Instant, packet: Packet, treatment: Treatment) {
        let waiting = &mut self.waiting[usize::from(treatment.is_once())];
        match self.machine.offer(now, packet, treatment) {
            Ok(()) => {}
            Err(Full(packet)) if waiting.len() < self.limit => {
                self.buffers += packet.capacity();
                waiting.push_back((packet, treatment));
            }
            Err(Full(_)) => self.dropped += 1,
        }
    }

    /// Hands over what has waited, as far as there is room.
    fn refill(&mut self, now: Instant) {
        for waiting in &mut self.waiting {
            while let Some((packet, treatment)) =
                waiting.pop_front_if(|(_, treatment)| self.machine.has_room(*treatment))
            {
                self.buffers -= packet.capacity();
                let taken = self.machine.offer(now, packet, treatment);
                debug_assert!(taken.is_ok(), "a session with room refused a packet");
            }
        }
    }
}

impl Endpoint for Sessions {
    fn capabilities(&self) -> Capabilities {
        self.sessions[0].machine.config.capabilities()
    }

    /// Takes any packet as long as one session has room; one that its session has no room for waits, or is dropped.
    fn offer(&mut self, now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        if !self.has_room(treatment) {
            return Err(Full(packet));
        }
        let session = self.session_of(&packet);
        self.sessions[session].take(now, packet, treatment);
        Ok(())
    }

    fn has_room(&self, treatment: Treatment) -> bool {
        self.sessions.iter().any(|session| session.has_room(treatment))
    }

    fn memory(&self) -> usize {
        let held = |session: &Session| session.machine.memory() + session.buffers;
        self.sessions.iter().map(held).sum()
    }

    /// Each may have its part.
    fn limit_memory(&mut self, bytes: usize) {
        let each = bytes / self.sessions.len();
        self.sessions.iter_mut().for_each(|session| session.machine.limit_memory(each));
    }

    /// One that repairs takes turns of all; a full window keeps back its own packets alone.
    fn obstacle(&self) -> Option<Obstacle> {
        let mut obstacles = self.sessions.iter().map(|session| session.machine.obstacle());
        let first = obstacles.next()?;
        obstacles.fold(first, |all, one| match (all, one) {
            (Some(Obstacle::Repair), _) | (_, Some(Obstacle::Repair)) => Some(Obstacle::Repair),
            (Some(Obstacle::Window), Some(Obstacle::Window)) => Some(Obstacle::Window),
            _ => None,
        })
    }

    fn handle_frame(&mut self, _now: Instant, frame: &[u8]) -> Result<(), Discard> {
        let (body, trailer) = frame.split_at(frame.len().saturating_sub(TRAILER_LEN));
        let Some((&number, payload)) = body.split_last() else {
            self.malformed += 1;
            return Err(Discard::Truncated(frame.len()));
        };
        let Some(session) = self.sessions.get_mut(usize::from(number)) else {
            self.malformed += 1;
            return Err(Discard::Malformed);
        };
        session.machine.handle_parts(payload, trailer)
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    /// Never idle.
    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let overdue = self.overdue();
        let (number, turn) = overdue.map_or_else(|| self.choose(now), |overdue| (overdue, Turn::Frame));
        let session = &mut self.sessions[number];
        session.machine.sender.follow_line(self.frames);
        session.machine.sender.give_up_overdue(now);
        session.refill(now);
        let info = match turn {
            Turn::Frame => session.machine.poll_frame(now, out)?,
            Turn::Acknowledgement => session.machine.poll_acknowledgement(now, out),
        };
        out.insert(out.len() - TRAILER_LEN, number as u8);
        session.refill(now);
        self.frames += 1;
        session.spoke_at = self.frames;
        self.silent.retain(|silent| *silent != number);
        self.silent.push_back(number);
        self.started = number;
        if overdue.is_none() {
            self.latest = number;
        }
        Some(info)
    }

    fn seal_frame(&mut self, now: Instant, frame: &mut [u8]) {
        self.sessions[self.started].machine.seal_frame(now, frame);
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.sessions.iter_mut().find_map(|session| session.machine.poll_packet())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn demand(&self, now: Instant) -> Demand {
        self.sessions.iter().map(|session| session.machine.demand(now)).max().unwrap_or(Demand::Nothing)
    }

    fn observe(&mut self) {
        self.sessions.iter_mut().for_each(|session| session.machine.observe());
    }

    /// Without the frames taken for lost: their numbers mean nothing without their session's.
    fn poll_event(&mut self) -> Option<Event> {
        let mut events =
            self.sessions.iter_mut().flat_map(|session| iter::from_fn(|| session.machine.poll_event()));
        events.find(|event| !matches!(event, Event::TakenForLost(_)))
    }

    fn set_line(&mut self, line: &LineLimits) {
        let line = line.within(SESSION_LEN);
        self.sessions.iter_mut().for_each(|session| session.machine.set_line(&line));
    }

    fn reset(&mut self) {
        for session in &mut self.sessions {
            session.machine.reset();
        }
    }

    /// The sums over the sessions, and what happens outside them.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for session in &self.sessions {
            let counters = session.machine.counters();
            if sums.is_empty() {
                sums = counters;
            } else {
                sums.iter_mut().zip(counters).for_each(|(sum, (_, count))| sum.1 += count);
            }
        }
        sums.push(("frames-of-no-session", self.malformed));
        sums.push(("packets-dropped-session", self.sessions.iter().map(|session| session.dropped).sum()));
        sums
    }
}

/// Bytes of a session's number.
pub const SESSION_LEN: usize = 1;

/// Frames from one of a session to its next at most. Ours: bare acknowledgements of seven idle sessions take 2 % of
/// a line, and news is told within a quarter of a second at 256 kbit/s.
const LONGEST_SILENCE: u64 = 16;
