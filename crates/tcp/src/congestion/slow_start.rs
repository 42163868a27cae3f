//! Slow start: RFC 5681 (3.1) with the byte counting of RFC 3465.
//!
//! It ends at the threshold; a way of ending it earlier may be named. Every controller's growth below its threshold is
//! here; what a paper adds (Vegas grows every other round, FAST while the queue is short, Hybla by several bytes for each
//! that counts) is in its controller's file.
//!
//! Deviations:
//! - the window grows only while it was used ([`AckSample::fills`]; RFC 5681 leaves that open, Linux asks for it);
//! - what an acknowledgement selectively acknowledged before opens nothing again (Linux);
//! - where every acknowledged segment counts, all do after a time-out too (RFC 3465, 2.3, allows one; Linux), and slow start
//!   stops at the threshold, beyond which an acknowledgement of many may lead (Linux).

mod hystart;
mod hystart_plus_plus;

use self::hystart::HyStart;
use self::hystart_plus_plus::HyStartPlusPlus;
use super::{AckSample, Start};
use crate::config;

/// Growth of a window below a threshold; a part of every controller that has one.
#[derive(Clone, Debug)]
pub struct SlowStart {
    threshold: u64,
    /// Bytes that one acknowledgement can open the window by.
    limit: u64,
    /// Payload bytes of a full segment.
    mss: u32,
    after_timeout: bool,
    /// HyStart has found the end; a time-out begins it anew.
    found: bool,
    paced: bool,
    search: Option<Box<Search>>,
}

/// What looks for an end before the threshold.
#[derive(Clone, Debug)]
enum Search {
    PlusPlus(HyStartPlusPlus),
    Original(HyStart),
}

impl SlowStart {
    /// Slow start up to the threshold that `start` names.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let search = match start.slow_start {
            config::SlowStart::Standard => None,
            config::SlowStart::HyStartPlusPlus => Some(Search::PlusPlus(HyStartPlusPlus::default())),
            config::SlowStart::HyStart => Some(Search::Original(HyStart::new(start.mss, start.paced))),
        };
        let segments = match start.slow_start {
            // RFC 9406 (4.3): L.
            config::SlowStart::HyStartPlusPlus if start.paced => u64::MAX,
            config::SlowStart::HyStartPlusPlus => hystart_plus_plus::L,
            _ => start.byte_counting_limit,
        };
        Self { search: search.map(Box::new), ..Self::plain(start, segments) }
    }

    /// Slow start up to the threshold that `start` names and nothing else, where one acknowledgement opens the window by
    /// at most this many segments.
    #[must_use]
    pub const fn plain(start: &Start, segments: u64) -> Self {
        Self {
            threshold: start.ssthresh,
            limit: start.mss.saturating_mul(segments),
            mss: start.mss as u32,
            after_timeout: false,
            found: false,
            paced: start.paced,
            search: None,
        }
    }

    /// The threshold, `ssthresh`, in bytes.
    #[must_use]
    pub const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Whether a window of this size is in slow start.
    #[must_use]
    pub const fn active(&self, window: u64) -> bool {
        window < self.threshold
    }

    /// Sets the threshold after congestion.
    pub fn set_threshold(&mut self, threshold: u64, timeout: bool) {
        self.threshold = threshold;
        // RFC 3465 (2.3): after a time-out, acknowledgements may cover data that left the network before it.
        self.after_timeout = timeout;
        self.end_first();
        let original = self.found || matches!(self.search.as_deref(), Some(Search::Original(_)));
        if timeout && original {
            // Linux, `bictcp_reset`.
            self.found = false;
            self.search = Some(Box::new(Search::Original(HyStart::new(self.mss(), self.paced))));
        }
    }

    /// RFC 9406 (4.3) recommends HyStart++ for the first slow start only.
    fn end_first(&mut self) {
        if matches!(self.search.as_deref(), Some(Search::PlusPlus(_))) {
            self.search = None;
        }
    }

    /// Payload bytes of a full segment.
    #[must_use]
    pub const fn mss(&self) -> u64 {
        self.mss as u64
    }

    const fn counting(&self) -> Counting {
        Counting { limit: self.limit, mss: self.mss(), after_timeout: self.after_timeout }
    }

    /// Bytes that an acknowledgement counts for.
    #[must_use]
    pub const fn counted(&self, window: u64, ack: &AckSample) -> u64 {
        self.counting().counted(ack.opening_bytes(), ack.fills(window, true))
    }

    /// The window after an acknowledgement of new data, and how many of its bytes are left over, where it stops at the
    /// threshold; the threshold comes down to the window if slow start is to end.
    #[must_use]
    pub fn on_ack(&mut self, window: u64, ack: &AckSample) -> (u64, u64) {
        let counted = self.counted(window, ack);
        let growth = match self.search.as_deref() {
            Some(Search::PlusPlus(search)) if search.is_conservative() => {
                counted / hystart_plus_plus::CSS_GROWTH_DIVISOR
            }
            _ => counted,
        };
        let (step, rest) = self.counting().split(growth, self.threshold.saturating_sub(window));
        let window = window.saturating_add(step);
        let found = match self.search.as_deref_mut() {
            None => false,
            Some(Search::PlusPlus(search)) => search.on_ack(ack),
            Some(Search::Original(search)) => search.on_ack(window, ack),
        };
        if found {
            self.threshold = self.threshold.min(window);
            self.found = matches!(self.search.as_deref(), Some(Search::Original(_)));
            self.search = None;
        }
        (window, rest)
    }
}

/// Segments that one acknowledgement may open the window by where there is no limit: no acknowledgement has more.
const EVERY_SEGMENT: u64 = 65_535;

/// What of an acknowledgement counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    /// Bytes of one acknowledgement that open the window.
    pub(crate) limit: u64,
    /// Payload bytes of a full segment.
    pub(crate) mss: u64,
    /// Whether this slow start follows a time-out: then it is a segment (RFC 3465, 2.3), unless all count.
    pub(crate) after_timeout: bool,
}

impl Counting {
    /// Whether there is no limit.
    const fn is_whole(self) -> bool {
        self.limit >= EVERY_SEGMENT.saturating_mul(self.mss)
    }

    /// Of `bytes` that were acknowledged, those that open a window: none unless it was used.
    pub(crate) const fn counted(self, bytes: u64, used: bool) -> u64 {
        let limit = if self.after_timeout && !self.is_whole() { self.mss } else { self.limit };
        match (used, bytes < limit) {
            (false, _) => 0,
            (true, true) => bytes,
            (true, false) => limit,
        }
    }

    /// What the window grows by that is `room` below its threshold, and what is left over.
    pub(crate) const fn split(self, growth: u64, room: u64) -> (u64, u64) {
        if self.is_whole() && growth > room { (room, growth - room) } else { (growth, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{ack, start};

    /// Linux (`tcp_slow_start`): where every acknowledged segment counts, after a time-out too, the window stops at the threshold, and
    /// what is left of an acknowledgement is for congestion avoidance.
    #[test]
    fn where_all_counts_the_threshold_is_met_exactly() {
        let mut slow = SlowStart::new(&Start { byte_counting_limit: EVERY_SEGMENT, ..start(1) });
        slow.set_threshold(10_000, true);
        assert_eq!(slow.on_ack(4000, &ack(4000, 4000)), (8000, 0));
        assert_eq!(slow.on_ack(8000, &ack(5000, 8000)), (10_000, 3000));
        // RFC 5681 (3.1) has an acknowledgement of at most a segment lead beyond it.
        let mut one = SlowStart::new(&start(1));
        one.set_threshold(10_000, false);
        assert_eq!(one.on_ack(9500, &ack(1000, 9500)), (10_500, 0));
    }

    /// RFC 3465 (2.2) and (2.3).
    #[test]
    fn growth_is_the_acked_bytes_up_to_the_limit() {
        let mut slow = SlowStart::new(&Start { byte_counting_limit: 2, ..start(1) });
        assert!(slow.active(u64::MAX - 1));
        assert_eq!(slow.on_ack(4000, &ack(500, 4000)).0, 4500);
        assert_eq!(slow.on_ack(4000, &ack(1500, 4000)).0, 5500);
        assert_eq!(slow.on_ack(4000, &ack(9000, 9000)).0, 6000);
        slow.set_threshold(4000, true);
        assert_eq!(slow.on_ack(1000, &ack(9000, 9000)).0, 2000);
        assert!(slow.active(3999) && !slow.active(4000));
    }
}
