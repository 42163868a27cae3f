//! What the paths of a tunnel do besides errors: delays that change, jitter, packets that are too long, and policing.
//!
//! A [`Line`](crate::Line) has a [`Path`] only where one of these is asked for. It draws from a stream of its own, so
//! that a line's errors are the same with it and without.

mod delay;
mod jitter;
mod largest;
mod policer;

use core::ops::Range;

use base::{Duration, Instant, Rng};

pub use delay::{DelayChange, DelaySlots};
pub use jitter::Jitter;
pub use largest::{LargestPacket, NotALargestPacket, PacketLength};
pub use policer::Policer;

use crate::model::Streams;
use delay::Course;
use policer::Bucket;

/// What the path of one line does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Changes of the propagation delay, in the order of their times.
    pub delay_changes: Vec<DelayChange>,
    /// Time added to the delay slot by slot.
    pub delay_slots: Option<DelaySlots>,
    /// Whether packets overtake those sent before them when the delay falls.
    pub overtaking: bool,
    /// Random additions to the delay.
    pub jitter: Jitter,
    /// The longest packet that is carried.
    pub largest_packet: Option<LargestPacket>,
    /// What exceeds this is dropped at the entrance.
    pub policer: Option<Policer>,
}

/// What a path did to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Too long for the path at that time; dropped at its entrance.
    pub too_long: u64,
    /// Exceeded the policer's rate and burst; dropped at the entrance.
    pub policed: u64,
    /// Sent during the silence at the start of a slot of the delay; lost.
    pub silenced: u64,
    /// Delayed by overtaking jitter, so that others may have overtaken them.
    pub late: u64,
}

/// What becomes of a packet at the entrance of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It goes on to the queue.
    Admitted,
    /// It is too long. If the path says so: how long one may be.
    TooLong(Option<u16>),
    /// It exceeds what the policer lets pass.
    Policed,
}

/// The state of one line's path.
#[derive(Debug)]
pub struct Path {
    course: Course,
    overtaking: bool,
    jitter: Jitter,
    rng: Rng,
    largest_packet: Option<LargestPacket>,
    bucket: Option<Bucket>,
    /// The latest arrival so far of a packet that keeps its place.
    last_arrival: Instant,
    counters: Counters,
}

impl Config {
    /// The path of a line with this first `delay`; none if there is nothing for it to do.
    pub(crate) fn build(&self, delay: Duration, streams: &Streams) -> Option<Box<Path>> {
        if *self == Self::default() {
            return None;
        }
        Some(Box::new(Path {
            course: Course::new(delay, &self.delay_changes, self.delay_slots.as_ref()),
            overtaking: self.overtaking,
            jitter: self.jitter,
            rng: Rng::named(streams.seed, &format!("{}/jitter", streams.line)),
            largest_packet: self.largest_packet,
            bucket: self.policer.as_ref().map(Bucket::new),
            last_arrival: Instant::ZERO,
            counters: Counters::default(),
        }))
    }
}

impl Path {
    /// What becomes of a packet of `len` bytes that comes to the entrance at `now`.
    pub(crate) fn admit(&mut self, now: Instant, len: u64) -> Admission {
        if let Some(largest) = self.largest_packet.filter(|largest| largest.refuses(now, len)) {
            self.counters.too_long += 1;
            return Admission::TooLong(largest.says.then_some(largest.bytes.get()));
        }
        if self.bucket.as_mut().is_some_and(|bucket| !bucket.take(now, len)) {
            self.counters.policed += 1;
            return Admission::Policed;
        }
        Admission::Admitted
    }

    /// When a packet arrives that is on the air then.
    pub(crate) fn arrival(&mut self, on_air: &Range<Instant>) -> Instant {
        let undisturbed = on_air.end.saturating_add(self.course.delay(on_air.end));
        let (later, keeps_place) = match self.jitter {
            Jitter::None => (Duration::ZERO, true),
            Jitter::InOrder { up_to } => (jitter::between(&mut self.rng, Duration::ZERO, up_to), true),
            Jitter::Overtaking { probability, from, to } => {
                let is_late = self.rng.chance(probability.get());
                self.counters.late += u64::from(is_late);
                let later = if is_late { jitter::between(&mut self.rng, from, to) } else { Duration::ZERO };
                (later, !is_late)
            }
        };
        let arrives_at = undisturbed.saturating_add(later);
        if self.overtaking {
            return arrives_at;
        }
        // What is late keeps no one waiting, and still waits for whom it does not overtake.
        let arrives_at = arrives_at.max(self.last_arrival);
        if keeps_place {
            self.last_arrival = arrives_at;
        }
        arrives_at
    }

    /// Whether a packet that is on the air then is lost in the silence between two delays.
    pub(crate) fn silences(&mut self, on_air: &Range<Instant>) -> bool {
        let silenced = self.course.is_silent(on_air);
        self.counters.silenced += u64::from(silenced);
        silenced
    }

    pub(crate) const fn counters(&self) -> Counters {
        self.counters
    }
}

impl Counters {
    /// The counters by name.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 4] {
        let Self { too_long, policed, silenced, late } = *self;
        [("too-long", too_long), ("policed", policed), ("silenced", silenced), ("late", late)]
    }
}

#[cfg(test)]
mod tests;
