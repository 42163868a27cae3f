//! How fast data are delivered: draft-cheng-iccrg-delivery-rate-estimation-02.
//!
//! Deviations: round trips are counted here too (by delivered bytes), for controllers that act once a round.

use base::{Duration, Instant};

use crate::congestion::Delivery;
use crate::recovery::scoreboard::News;

/// What had been delivered when a segment was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

impl Snapshot {
    /// Whether no less had been delivered than when `other` was taken.
    pub(crate) const fn is_as_late_as(&self, other: &Self) -> bool {
        self.delivered >= other.delivered
    }
}

/// One connection's count of what was delivered, and when.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryMeter {
    delivered: u64,
    delivered_at: Instant,
    /// When the segment that was delivered last had been sent.
    first_sent_at: Instant,
    /// Segments sent before `delivered` reaches this are limited by the application; zero if none are.
    app_limited_until: u64,
    round: u64,
    round_end: u64,
}

impl DeliveryMeter {
    pub(crate) const fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited_until: 0,
            round: 0,
            round_end: 0,
        }
    }

    /// What to note in the record of a segment that is sent now.
    pub(crate) const fn snapshot(&mut self, now: Instant, nothing_in_flight: bool) -> Snapshot {
        if nothing_in_flight {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// The application has nothing more to send although the window is open; `in_flight` bytes are out.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// An acknowledgement delivered something: the sample that it gives.
    pub(crate) fn on_delivered(&mut self, now: Instant, news: &News) -> Option<Delivery> {
        self.delivered += news.bytes;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let (sent, sent_at) = news.latest?;
        self.delivered_at = now;
        self.first_sent_at = sent_at;
        if sent.delivered >= self.round_end {
            self.round += 1;
            self.round_end = self.delivered;
        }
        let send_elapsed = sent_at.saturating_since(sent.first_sent_at);
        let ack_elapsed = now.saturating_since(sent.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        (interval > Duration::ZERO).then_some(Delivery {
            bytes: self.delivered - sent.delivered,
            interval,
            app_limited: sent.app_limited,
        })
    }

    /// Round trips so far.
    pub(crate) const fn round(&self) -> u64 {
        self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// An acknowledgement of the segment that left with this note; with the `bytes` that it newly delivers, the sample.
    fn deliver(meter: &mut DeliveryMeter, at: u64, bytes: u64, sent: (Snapshot, u64)) -> Option<Delivery> {
        let latest = Some((sent.0, at_ms(sent.1)));
        meter.on_delivered(at_ms(at), &News { bytes, latest, ..News::default() })
    }

    /// draft-cheng-iccrg-delivery-rate-estimation-02 (3.3): the longer of the intervals in which data were sent and acknowledged:
    /// acknowledgements that come together do not make the path faster than what was sent, nor a burst than what
    /// was acknowledged.
    #[test]
    fn the_longer_interval_counts() {
        let mut meter = DeliveryMeter::new();
        let first = meter.snapshot(at_ms(0), true);
        let ninth = (1..=8).map(|at| meter.snapshot(at_ms(10 * at), false)).last().unwrap();
        // The first acknowledgement is held up until 190 ms; the others come with it.
        assert_eq!(deliver(&mut meter, 190, 1000, (first, 0)).map(|it| it.interval.as_millis()), Some(190));
        let tenth = meter.snapshot(at_ms(190), false);
        deliver(&mut meter, 191, 8000, (ninth, 80));
        // Sent in 190 ms, acknowledged in 50.
        let sample = deliver(&mut meter, 240, 1000, (tenth, 190)).unwrap();
        assert_eq!((sample.bytes, sample.interval.as_millis()), (9000, 190));
        // A burst: sent in no time, acknowledged in 100 ms.
        let burst = [0; 3].map(|_| meter.snapshot(at_ms(1000), true)).last().copied().unwrap();
        let sample = deliver(&mut meter, 1100, 3000, (burst, 1000)).unwrap();
        assert_eq!((sample.bytes, sample.interval.as_millis()), (3000, 100));
    }

    /// draft-cheng-iccrg-delivery-rate-estimation-02 (3.4): samples are the application's pace, not the path's, until all that was out when
    /// it paused is delivered, and more.
    #[test]
    fn a_pause_limits_samples_until_it_is_over() {
        let mut meter = DeliveryMeter::new();
        let first = meter.snapshot(at_ms(0), true);
        deliver(&mut meter, 100, 5000, (first, 0));
        meter.on_app_limited(2000);
        for (bytes, limited) in [(1000, true), (1000, true), (500, false), (1000, false)] {
            let sent = meter.snapshot(at_ms(100), false);
            deliver(&mut meter, 200, bytes, (sent, 100));
            let next = meter.snapshot(at_ms(200), false);
            assert_eq!(
                next.app_limited, limited,
                "BBR takes a pause for the path's rate, or never the path's"
            );
        }
    }

    /// draft-cheng-iccrg-delivery-rate-estimation-02 (3.3): of segments that are acknowledged together the one counts that was sent with the
    /// most delivered before it.
    #[test]
    fn the_latest_segment_counts() {
        let mut meter = DeliveryMeter::new();
        let early = meter.snapshot(at_ms(0), true);
        deliver(&mut meter, 100, 1000, (early, 0));
        let late = meter.snapshot(at_ms(100), false);
        assert!(late.is_as_late_as(&early) && late.is_as_late_as(&late) && !early.is_as_late_as(&late));
    }
}
