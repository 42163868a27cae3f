//! CoDel's control law: drops the packet whose turn it is when packets have waited too long for too long.
//!
//! RFC 8289, section 5. The owner has the queue and the clock; this says of the packet at its head whether it is dropped.
//!
//! Deviations:
//! - Packets may be marked instead of dropped; a marked one leaves, so that one mark takes the place of one drop (as in Linux).
//! - Time is an integer, and so is the square root, with 32 binary places.
//! - A target below the time of the longest usual packet is raised to that (RFC 8290, 5.2.2), and an interval below twice the target to
//!   that, as in Linux's `sch_cake`: on a slow line a sender's answer takes at least so long.

use base::{Duration, Instant, Packet, Rate};

/// When packets have waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Law {
    target: Duration,
    interval: Duration,
}

impl Law {
    /// The law with these times for a line of this rate.
    pub(super) fn new(target: Duration, interval: Duration, rate: Option<Rate>) -> Self {
        let packet_time = rate.map_or(Duration::ZERO, |rate| rate.time_for(LONGEST * 8));
        let target = target.max(packet_time);
        Self { target, interval: interval.max(target.saturating_mul(2)) }
    }

    /// The time of the next drop after `time`, when there were `count`: `time + interval / sqrt(count)`.
    fn after(&self, time: Instant, count: u32) -> Instant {
        let root = (u128::from(count) << 64).isqrt();
        let nanos = (u128::from(self.interval.as_nanos()) << 32) / root.max(1);
        time.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

/// The state of one queue, under the names of the RFC.
#[derive(Debug, Default)]
pub(super) struct Codel {
    /// When packets will have been above the target for an interval.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    /// Drops since the dropping state began.
    count: u32,
    /// What `count` was then.
    last_count: u32,
    dropping: bool,
}

/// The packet at a queue's head, taken out.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) packet: Packet,
    pub(super) sojourn: Duration,
    /// Bytes that wait behind it.
    pub(super) behind: u64,
}

impl Codel {
    /// Takes the next packet to be sent. `take` takes packets out of the queue; `signal` is told of those whose sender is to hear of it, and
    /// gives back what is to be sent anyway.
    pub(super) fn pop(
        &mut self,
        law: &Law,
        now: Instant,
        mut take: impl FnMut() -> Option<Head>,
        mut signal: impl FnMut(Packet) -> Option<Packet>,
    ) -> Option<Packet> {
        let (mut head, mut is_above) = self.judge(law, now, take());
        if self.dropping {
            self.dropping = is_above;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if let Some(marked) = signal(head?) {
                    self.drop_next = law.after(self.drop_next, self.count);
                    return Some(marked);
                }
                (head, is_above) = self.judge(law, now, take());
                if is_above {
                    self.drop_next = law.after(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if is_above {
            head = signal(head?).or_else(|| self.judge(law, now, take()).0);
            self.dropping = true;
            let delta = self.count - self.last_count;
            let is_soon = now.saturating_since(self.drop_next) < law.interval.saturating_mul(16);
            self.count = if delta > 1 && is_soon { delta } else { 1 };
            self.drop_next = law.after(now, self.count);
            self.last_count = self.count;
        }
        head
    }

    /// Whether a packet may be dropped: those before it were above the target for an interval, and so is it.
    fn judge(&mut self, law: &Law, now: Instant, head: Option<Head>) -> (Option<Packet>, bool) {
        let Some(Head { packet, sojourn, behind }) = head else {
            self.first_above_time = None;
            return (None, false);
        };
        if sojourn < law.target || behind <= LONGEST {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        let first_above_time = *self.first_above_time.get_or_insert(now.saturating_add(law.interval));
        // In the moment in which it is set it is ahead.
        (Some(packet), now >= first_above_time)
    }
}

/// Bytes of the longest usual packet: Ethernet's, with its header, as in Linux.
pub(super) const LONGEST: u64 = 1514;

#[cfg(test)]
mod tests;
