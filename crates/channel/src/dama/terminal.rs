//! A terminal: its MAC buffer, its requests, and the slots that it sends in.

use core::cell::RefCell;
use core::ops::Range;
use std::collections::VecDeque;
use std::rc::Rc;

use base::{Duration, Instant};

use super::Config;
use super::control::{Control, Grant, Subscription, TerminalId};
use super::demand::{Demand, Opportunity};
use super::slots::Slots;
use crate::encapsulation::Encapsulation;
use crate::line::Line;
use crate::process::Fate;

/// A frame that has left, or whose last cell has its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// What was put into the buffer.
    pub frame: T,
    /// From the start of the first slot that carries a part of it to the end of the last.
    pub on_air: Range<Instant>,
    /// When the last cell has arrived.
    pub arrives_at: Instant,
    /// A frame is intact if all its cells are.
    pub fate: Fate,
}

/// What happened in one superframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// When it started.
    pub start: Instant,
    /// Slots a superframe that were asked for at its start, where a rate was.
    pub asked_rate: Option<u32>,
    /// Slots a superframe by the last request for a rate that has not timed out, as the terminal reckons; 0 if there
    /// is none.
    pub rate: u32,
    /// Slots that were asked for at its start.
    pub asked_volume: u32,
    /// Slots that it granted.
    pub grant: Grant,
    /// Of those, how many carried something.
    pub used: u32,
    /// Bytes in the buffer at its start.
    pub buffered: u64,
}

/// What a terminal counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the buffer had no room for.
    pub dropped: u64,
    /// Requests sent.
    pub requests: u64,
    /// Slots granted while the terminal was awake: it sleeps while nothing waits and nothing is owed to it.
    pub granted: u64,
    /// Slots that carried something.
    pub used: u64,
    /// The most bytes that the buffer held.
    pub most_buffered: u64,
}

/// A terminal, whose buffer holds frames as `T`s.
#[derive(Debug)]
pub struct Terminal<T> {
    config: Config,
    encapsulation: Encapsulation,
    control: Rc<RefCell<Control>>,
    id: TerminalId,
    slots: Slots,
    /// To the control centre.
    delay: Duration,
    /// Frames of which something has no slot yet, the first perhaps in part.
    waiting: VecDeque<Waiting<T>>,
    /// Bytes that have no slot yet.
    unplaced: u64,
    /// Bytes whose slots have not passed.
    placed: u64,
    /// Ends of slots that have not passed, each with the bytes that leave the buffer then.
    leaving: VecDeque<(Instant, u64)>,
    departures: VecDeque<Departure<T>>,
    superframe: Option<Superframe>,
    demand: Demand,
    /// Bytes of the longest frame so far, as it lies in the buffer.
    longest: u64,
    counters: Counters,
    /// Where they are kept.
    cycles: Option<Vec<Cycle>>,
}

#[derive(Debug)]
struct Waiting<T> {
    frame: T,
    /// Bytes that have no slot yet.
    left: u64,
    /// From the first cell's start to the last one's end so far.
    on_air: Option<Range<Instant>>,
    arrives_at: Instant,
    fate: Fate,
}

/// The superframe that goes on, as far as this terminal is concerned.
#[derive(Debug)]
struct Superframe {
    number: u64,
    /// Granted slots that have not been used, nor passed.
    slots: VecDeque<u64>,
    cycle: Cycle,
}

/// The slots of a grant among the `count` slots from `first` on: those of a rate are spread out evenly, those of a volume are the first of the others, so
/// that it leaves in one piece.
fn places(grant: Grant, first: u64, count: u32) -> VecDeque<u64> {
    let rate = u64::from(grant.cra + grant.rbdc);
    let (mut of_rate, mut of_volume) = (0, 0);
    let slots = (0..u64::from(count)).filter(|place| {
        if of_rate < rate && *place == of_rate * u64::from(count) / rate {
            of_rate += 1;
            return true;
        }
        of_volume += 1;
        of_volume <= grant.vbdc
    });
    slots.map(|place| first + place).collect()
}

impl<T> Terminal<T> {
    /// A terminal with an empty buffer that joins a network: on a carrier with these slots, so far from the control centre.
    #[must_use]
    pub fn join(
        control: Rc<RefCell<Control>>,
        config: Config,
        encapsulation: Encapsulation,
        slots: Slots,
        delay: Duration,
    ) -> Self {
        let subscription = Subscription {
            slots,
            cra: config.cra,
            rbdc_ceiling: config.rbdc,
            rbdc_timeout: config.rbdc_timeout.get(),
            delay,
        };
        let id = control.borrow_mut().join(subscription);
        Self {
            demand: Demand::new(&config, encapsulation.cell_payload()),
            config,
            encapsulation,
            control,
            id,
            slots,
            delay,
            waiting: VecDeque::new(),
            unplaced: 0,
            placed: 0,
            leaving: VecDeque::new(),
            departures: VecDeque::new(),
            superframe: None,
            longest: 0,
            counters: Counters::default(),
            cycles: None,
        }
    }

    /// Keeps what happens in each superframe from now on.
    pub fn keep_cycles(&mut self) {
        self.cycles.get_or_insert_default();
    }

    /// What happened in each superframe in which the terminal was awake, the current one included, if that is kept.
    pub fn cycles(&self) -> impl Iterator<Item = Cycle> {
        let current = self.superframe.as_ref().map(|superframe| superframe.cycle);
        let kept = self.cycles.as_ref().map(|ended| ended.iter().copied().chain(current));
        kept.into_iter().flatten()
    }

    /// Its carrier's slots.
    #[must_use]
    pub const fn slots(&self) -> Slots {
        self.slots
    }

    /// What the terminal counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether the protocol above is to wait for room.
    #[must_use]
    pub const fn has_flow_control(&self) -> bool {
        self.config.flow_control
    }

    /// Bits on the air of a frame of `len` bytes.
    #[must_use]
    pub const fn air_bits(&self, len: usize) -> u64 {
        self.encapsulation.air_bits(len)
    }

    /// Whether a frame as long as the longest so far has room, or the buffer is empty.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.would_have_room(self.buffered())
    }

    const fn would_have_room(&self, buffered: u64) -> bool {
        buffered == 0 || buffered + self.longest <= self.config.mac_buffer.0
    }

    /// Bytes in the buffer, as of the last call of [`Terminal::advance`].
    #[must_use]
    pub const fn buffered(&self) -> u64 {
        self.unplaced + self.placed
    }

    /// Puts a frame of `len` bytes into the buffer.
    ///
    /// # Errors
    /// There is no room: the frame comes back and is counted as dropped. With flow control only what is longer than anything before
    /// can come when there is no room, and is taken all the same.
    pub fn push(&mut self, frame: T, len: usize) -> Result<(), T> {
        let bytes = self.encapsulation.payload_for(len);
        let buffered = self.buffered() + bytes;
        if buffered > self.config.mac_buffer.0 && !self.config.flow_control {
            self.counters.dropped += 1;
            return Err(frame);
        }
        self.counters.most_buffered = self.counters.most_buffered.max(buffered);
        self.longest = self.longest.max(bytes);
        self.demand.on_arrival(bytes);
        self.unplaced += bytes;
        let (on_air, arrives_at) = (None, Instant::ZERO);
        self.waiting.push_back(Waiting { frame, left: bytes, on_air, arrives_at, fate: Fate::Intact });
        Ok(())
    }

    /// Sends requests that are due and puts what waits into the slots that are granted. To be called when [`Terminal::poll_timeout`] says so and
    /// after each [`Terminal::push`].
    pub fn advance(&mut self, now: Instant, line: &mut Line) {
        while let Some((_, bytes)) = self.leaving.pop_front_if(|(at, _)| *at <= now) {
            self.placed -= bytes;
        }
        let number = self.slots.superframe_at(now);
        if self.superframe.as_ref().is_none_or(|superframe| superframe.number < number) {
            self.enter(now, number);
        }
        self.fill_slots(now, line);
    }

    /// A frame that has left, or whose last cell has its slot.
    pub fn poll_departure(&mut self) -> Option<Departure<T>> {
        self.departures.pop_front()
    }

    /// The last frame of which something has no slot yet.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.waiting.back_mut().map(|waiting| &mut waiting.frame)
    }

    /// When [`Terminal::advance`] wants to be called: at the start of the next superframe while something waits or is owed, or a rate is in effect.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let superframe = self.superframe.as_ref()?;
        (self.unplaced > 0 || self.demand.is_open()).then(|| self.slots.start_of(superframe.number + 1))
    }

    /// When there will be room, as far as slots are known.
    #[must_use]
    pub fn room_at(&self) -> Option<Instant> {
        let mut buffered = self.buffered();
        self.leaving.iter().find_map(|(at, bytes)| {
            buffered -= bytes;
            self.would_have_room(buffered).then_some(*at)
        })
    }

    /// A superframe has started: the opportunity for a request, if that was not missed asleep, and what is granted.
    fn enter(&mut self, now: Instant, number: u64) {
        let start = self.slots.start_of(number);
        let request = if now == start {
            self.demand.request(self.opportunity(number))
        } else {
            self.demand.skip();
            None
        };
        if let Some(request) = request {
            self.counters.requests += 1;
            self.control.borrow_mut().request(now, self.id, request);
        }
        let grant = self.control.borrow_mut().grant(number, self.id);
        self.demand.on_grant(grant.vbdc);
        self.counters.granted += u64::from(grant.total());
        let ended = self.superframe.take();
        if let (Some(cycles), Some(ended)) = (&mut self.cycles, ended) {
            cycles.push(ended.cycle);
        }
        let request = request.unwrap_or_default();
        self.superframe = Some(Superframe {
            number,
            slots: places(grant, self.slots.first_of(number), self.slots.count(number)),
            cycle: Cycle {
                start,
                asked_rate: request.rate,
                rate: self.demand.rate_in_effect(),
                asked_volume: request.volume,
                grant,
                used: 0,
                buffered: self.buffered(),
            },
        });
    }

    /// What the opportunity at the start of a superframe finds.
    fn opportunity(&self, superframe: u64) -> Opportunity {
        // The first plan that heeds the request is made after it has been heard, and a lead before its superframe.
        let ahead = self.control.borrow().lead() + self.delay;
        let superframes = ahead.as_nanos().div_ceil(self.slots.superframe().as_nanos());
        let constant = self.superframe.as_ref().map_or(0, |superframe| superframe.cycle.grant.cra);
        Opportunity { superframe, waiting: self.unplaced, coming: u64::from(constant) * superframes }
    }

    /// Puts what waits into the slots of this superframe that have not started.
    fn fill_slots(&mut self, now: Instant, line: &mut Line) {
        let Some(superframe) = &mut self.superframe else { return };
        let payload = self.encapsulation.cell_payload();
        while self.unplaced > 0
            && let Some(slot) = superframe.slots.pop_front()
        {
            let start = self.slots.start(slot);
            if start < now {
                continue;
            }
            let transit = line.send(start, self.encapsulation.cell_bits());
            superframe.cycle.used += 1;
            self.counters.used += 1;
            let mut room = payload;
            while room > 0
                && let Some(first) = self.waiting.front_mut()
            {
                let bytes = room.min(first.left);
                room -= bytes;
                first.left -= bytes;
                let start = first.on_air.as_ref().map_or(transit.on_air.start, |on_air| on_air.start);
                first.on_air = Some(start..transit.on_air.end);
                first.arrives_at = transit.arrives_at;
                if first.fate == Fate::Intact {
                    first.fate = transit.fate;
                }
                if first.left == 0 {
                    self.departures.extend(self.waiting.pop_front().and_then(Waiting::depart));
                }
            }
            let carried = payload - room;
            self.unplaced -= carried;
            self.placed += carried;
            self.leaving.push_back((transit.on_air.end, carried));
        }
    }
}

impl Counters {
    /// By name, for reports.
    #[must_use]
    pub const fn named(self) -> [(&'static str, u64); 5] {
        let Self { dropped, requests, granted, used, most_buffered } = self;
        [
            ("drops", dropped),
            ("requests", requests),
            ("slots-granted", granted),
            ("slots-used", used),
            ("most-buffered", most_buffered),
        ]
    }
}

impl<T> Waiting<T> {
    fn depart(self) -> Option<Departure<T>> {
        let Self { frame, on_air, arrives_at, fate, .. } = self;
        Some(Departure { frame, on_air: on_air?, arrives_at, fate })
    }
}

#[cfg(test)]
mod tests;
