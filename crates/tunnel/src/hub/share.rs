//! Which tunnel sends next, and when, where all share a carrier.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng 1996): each tunnel has a tag, the bytes that it has sent over its weight, and the lowest
//! has its turn. Who had nothing to send for a while begins where the others are, so it neither makes up for what it did not use nor waits
//! for a round of them.
//!
//! Deviations: a tag is that of what was sent, as what is sent next is made at its turn only. Deficit round robin does the same for queues that are
//! full; but tunnels have pacers, so they come and go with each datagram, and its rounds then give them a turn too many or make them wait.

use base::{Deadlines, Instant, Rate};

use super::PeerId;
use crate::pacer::{Pacer, QUANTUM};

#[derive(Debug)]
pub(super) struct Share {
    /// Paces all together.
    pacer: Pacer,
    /// The tags of those that may have something to send, which are no times.
    turns: Deadlines,
    /// The tags of all, and whether each is among them.
    members: Vec<(u64, bool)>,
    /// The tag of who had its turn last.
    present: u64,
}

/// Of a tag, for each byte at weight 1. Weights up to this one are exact to a thousandth for a datagram.
const UNIT: u64 = 1 << 10;
/// Tags begin anew then: after eighty days at 10 Gbit/s.
const TAG_LIMIT: u64 = 1 << 63;

impl Share {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self { pacer: Pacer::new(rate, 0), turns: Deadlines::new(), members: Vec::new(), present: 0 }
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<Rate>) {
        if rate != self.pacer.rate() {
            self.pacer.set_rate(now, rate);
        }
    }

    /// Adds the next member.
    pub(super) fn add(&mut self) {
        self.members.push((self.present, false));
        self.turns.add(None);
    }

    /// A member may have something to send.
    pub(super) fn wake(&mut self, id: PeerId) {
        let (tag, is_awake) = &mut self.members[id.at()];
        if !*is_awake {
            *is_awake = true;
            *tag = (*tag).max(self.present);
            self.turns.set(id.0, Some(Instant::from_nanos(*tag)));
        }
    }

    /// A member has nothing to send for now.
    pub(super) fn rest(&mut self, id: PeerId) {
        self.members[id.at()].1 = false;
        self.turns.set(id.0, None);
    }

    /// Whether a member waits for its turn.
    pub(super) fn is_awake(&self, id: PeerId) -> bool {
        self.members[id.at()].1
    }

    /// Whose turn it is, if anybody's now, and how many datagrams of `len` bytes it may send in one.
    pub(super) fn next(&self, now: Instant, len: usize) -> Option<(PeerId, usize)> {
        let (_, number) = self.turns.first()?;
        if !self.pacer.is_free(now) {
            return None;
        }
        let at_once = self
            .pacer
            .rate()
            .map_or(usize::MAX, |rate| (rate.bits_in(QUANTUM) as usize / 8 / len.max(1)).max(1));
        Some((PeerId(number), at_once))
    }

    /// Whether all together have a rate.
    pub(super) const fn is_limited(&self) -> bool {
        self.pacer.is_limited()
    }

    /// Whether the line is free.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.pacer.is_free(now)
    }

    /// Whether anybody may have something to send.
    pub(super) fn is_waiting(&self) -> bool {
        self.turns.first().is_some()
    }

    /// A member of this weight has sent so many bytes of the line.
    pub(super) fn on_sent(&mut self, now: Instant, id: PeerId, weight: u32, bytes: usize) {
        self.pacer.on_sent(now, bytes);
        let (tag, is_awake) = &mut self.members[id.at()];
        self.present = self.present.max(*tag);
        *tag += bytes as u64 * UNIT / u64::from(weight);
        if *is_awake {
            self.turns.set(id.0, Some(Instant::from_nanos(*tag)));
        }
        if self.present > TAG_LIMIT {
            self.begin_anew();
        }
    }

    /// Bytes that are nobody's have left.
    pub(super) fn on_sent_for_all(&mut self, now: Instant, bytes: usize) {
        self.pacer.on_sent(now, bytes);
    }

    /// When the line is free for somebody who waits.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pacer.is_limited().then(|| self.pacer.free_at().saturating_sub(QUANTUM))
    }

    fn begin_anew(&mut self) {
        let former = core::mem::take(&mut self.present);
        for (number, (tag, is_awake)) in (0..).zip(&mut self.members) {
            *tag = tag.saturating_sub(former);
            self.turns.set(number, is_awake.then(|| Instant::from_nanos(*tag)));
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;

    const LEN: usize = 1000;

    /// Sends for `span` what each of the members would: those with an interval have a datagram as often only.
    fn sent(weights: &[u32], intervals: &[Option<Duration>], rate: Rate, span: Duration) -> Vec<u64> {
        let mut share = Share::new(Some(rate));
        weights.iter().for_each(|_| share.add());
        let mut due = vec![Instant::ZERO; weights.len()];
        let mut sent = vec![0; weights.len()];
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let until = now + span;
        while now < until {
            (0..)
                .zip(&due)
                .filter(|(_, due)| **due <= now)
                .for_each(|(number, _)| share.wake(PeerId(number)));
            while let Some((id, _)) = share.next(now, LEN) {
                if due[id.at()] > now {
                    share.rest(id);
                    continue;
                }
                share.on_sent(now, id, weights[id.at()], LEN);
                sent[id.at()] += LEN as u64;
                due[id.at()] = intervals[id.at()].map_or(now, |interval| due[id.at()].max(now) + interval);
            }
            now += Duration::from_micros(100);
        }
        sent
    }

    #[test]
    fn the_backlogged_share_by_their_weights() {
        let (weights, rate) = ([1, 2, 7], Rate::from_bps(8_000_000));
        let sent = sent(&weights, &[None; 3], rate, Duration::from_secs(10));
        for (sent, weight) in sent.iter().zip(weights) {
            let part = *sent as f64 / (1e6 * f64::from(weight));
            assert!((0.99..1.01).contains(&part), "{sent} bytes at weight {weight}");
        }
    }

    /// Who asks for less than its part gets it, and no more however often it comes and goes; the others share the rest.
    #[test]
    fn who_paces_itself_gets_its_part_at_most() {
        let (rate, span) = (Rate::from_bps(8_000_000), Duration::from_secs(10));
        // A quarter of the line would be 250 kB a second: one asks for 100, one for 500.
        let intervals = [None, None, Some(Duration::from_millis(10)), Some(Duration::from_millis(2))];
        let sent = sent(&[1; 4], &intervals, rate, span);
        assert!((990_000..=1_010_000).contains(&sent[2]), "{sent:?}");
        for at in [0, 1, 3] {
            assert!((2_970_000..3_030_000).contains(&sent[at]), "{sent:?}");
        }
    }

    /// What a turn may send leaves within a timer's granularity.
    #[test]
    fn a_turn_takes_as_many_datagrams_as_leave_at_once() {
        for (rate, at_once) in [(Some(1_000_000_000), 25), (Some(1_000_000), 1), (None, usize::MAX)] {
            let mut share = Share::new(rate.map(Rate::from_bps));
            share.add();
            share.wake(PeerId(0));
            assert_eq!(share.next(Instant::ZERO, LEN), Some((PeerId(0), at_once)), "{rate:?}");
        }
    }

    /// What is nobody's takes the line too.
    #[test]
    fn what_is_sent_for_all_takes_its_time() {
        let mut share = Share::new(Some(Rate::from_bps(8_000)));
        share.add();
        share.wake(PeerId(0));
        let now = Instant::ZERO + Duration::from_secs(1);
        share.on_sent_for_all(now, LEN);
        assert!(!share.is_free(now) && share.next(now, LEN).is_none());
        let due = share.poll_timeout().expect("it has a rate");
        assert!(share.is_free(due) && due.saturating_since(now) > Duration::from_millis(980), "{due:?}");
    }

    #[test]
    fn tags_begin_anew_in_order() {
        let mut share = Share::new(None);
        (0..2).for_each(|_| share.add());
        let [a, b] = [0, 1].map(PeerId);
        share.wake(a);
        share.wake(b);
        share.members = vec![(TAG_LIMIT + 5, true), (TAG_LIMIT + 7, true)];
        share.on_sent(Instant::ZERO, a, 1, 3);
        assert_eq!(share.present, 0);
        assert_eq!(share.next(Instant::ZERO, LEN).map(|(id, _)| id), Some(b));
    }
}
