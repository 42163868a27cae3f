//! Whether a sample can be believed: somebody on the path may copy datagrams, drop them, or hold them back, and tells those of us by their length.
//!
//! What is behind and in front of a stamp tells: by its arrival no more can have arrived than had left before it, and no less than that but for losses. If more has,
//! what left behind it has overtaken it: it was held back. If less has, and it is early, it has overtaken what left in front of it: it was copied to
//! another path. Neither delay is that of the path that carries our traffic.

use std::collections::VecDeque;

use base::Duration;

use crate::survey::report::Sample;

/// What has arrived by the stamps of late, less what had left before them.
#[derive(Clone, Debug, Default)]
pub struct Credibility {
    /// In bytes, of the newest stamp that was believed. It becomes less with what is lost, so only differences count.
    balance: i64,
    /// Of those before it, as long as they were believed.
    recent: VecDeque<i64>,
    /// Early stamps that were not believed, one after the other.
    early: usize,
}

/// Stamps that are remembered: those of a second. Ours.
const KEPT: usize = 10;
/// After so many early ones the path is believed to have become shorter, whatever was lost. Ours.
const EARLY: usize = 10;
/// So much more may have been lost of late than is known. Ours.
const LITTLE: f64 = 0.01;
/// After so long without anything to believe, anything is: losses hide what has overtaken a stamp. Ours.
const BLIND: Duration = Duration::from_secs(20);

impl Credibility {
    /// Whether a sample can be believed, of which the delay is so many ns above the smallest. From `high` on that may have another
    /// reason than a queue.
    /// The channel loses the part `loss` of what is sent, as far as is known.
    pub fn judge(&mut self, sample: &Sample, above: i64, high: Duration, loss: f64) -> bool {
        let Some(span) = sample.span else { return true };
        let balance = self.balance + span.received.bytes.cast_signed() - span.sent.bytes.cast_signed();
        let difference = Duration::from_nanos(above.unsigned_abs());
        let gained = i128::from(balance - self.recent.iter().max().copied().unwrap_or(balance));
        let passed = passed_in(sample, difference);
        let is_held_back = above > 0 && difference >= high && gained > passed && span.sent_in <= BLIND;
        // In the second of which the stamps are remembered, and since the newest of them.
        let sent = span.sent.bytes as f64 * (1.0 + 1.0 / span.sent_in.as_secs_f64().max(1e-9));
        let lost = (sent * (loss + LITTLE)) as i128;
        let is_copied = above < 0 && difference >= high && -gained > passed + lost && self.early < EARLY;
        self.early = if is_copied { self.early + 1 } else { 0 };
        if self.early == EARLY {
            self.recent.clear();
        }
        if !is_held_back && !is_copied {
            self.believe(balance);
        }
        !is_held_back && !is_copied
    }

    fn believe(&mut self, balance: i64) {
        self.balance = balance;
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(balance);
    }
}

/// Bytes that left within half of `time`, at least one.
fn passed_in(sample: &Sample, time: Duration) -> i128 {
    let (bytes, sent_in) = sample.span.map_or((0, 0), |span| (span.sent.bytes, span.sent_in.as_nanos()));
    (u128::from(bytes) * u128::from(time.as_nanos()) / 2 / u128::from(sent_in.max(1))).max(1) as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::{Long, Span, Totals};
    use crate::survey::silence::Silence;
    use base::Instant;

    /// Stamps 100 ms apart, with 100 kB between them: what has arrived meanwhile in kB, how early or late the stamp is in ms.
    fn judge(samples: &[(u64, i64)]) -> Vec<bool> {
        let mut credibility = Credibility::default();
        // What follows one that is not believed tells of both.
        let mut span = Span::default();
        let mut judge = |(arrived, above): (u64, i64)| {
            let totals = |kilobytes| Totals { datagrams: kilobytes, bytes: 1000 * kilobytes };
            let time = Duration::from_millis(100);
            span.add(&Span {
                sent: totals(100),
                sent_in: time,
                received: totals(arrived),
                received_in: time,
            });
            let (sent_at, after) = (Instant::ZERO, totals(0));
            let sample = Sample {
                sent_at,
                round_trip: time,
                delay: 0,
                span: Some(span),
                missed: 0,
                after,
                long: Long::default(),
                silence: Silence::default(),
            };
            let is_credible = credibility.judge(&sample, above * 1_000_000, Duration::from_millis(40), 0.0);
            if is_credible {
                span = Span::default();
            }
            is_credible
        };
        samples.iter().map(|sample| judge(*sample)).collect()
    }

    #[test]
    fn a_queue_is_believed() {
        assert_eq!(judge(&[(100, 0), (50, 50), (50, 100), (50, 150), (100, 150), (100, 150)]), [true; 6]);
    }

    #[test]
    fn a_stamp_that_much_has_overtaken_is_not_believed() {
        // All stamps are a second late from the second on, and then none.
        let samples = [(100, 0), (1100, 1000), (100, 1000), (100, 1000), (0, 0), (0, 0), (100, 0)];
        assert_eq!(judge(&samples), [true, false, false, false, true, true, true]);
        // Half of what a delay would let pass is no proof.
        assert_eq!(judge(&[(100, 0), (150, 100)]), [true, true]);
        assert_eq!(judge(&[(100, 0), (151, 100)]), [true, false]);
    }

    #[test]
    fn a_stamp_that_has_overtaken_much_is_not_believed_if_it_is_early() {
        assert_eq!(judge(&[(100, 0), (10, -90), (190, 0)]), [true, false, true]);
        assert_eq!(judge(&[(100, 0), (10, 0), (190, 90), (100, 90)]), [true; 4], "that was loss");
        let mut samples = vec![(100, 0), (10, -90)];
        samples.resize(20, (100, -90));
        assert_eq!(judge(&samples).iter().filter(|is_credible| !**is_credible).count(), EARLY);
    }

    #[test]
    fn a_path_that_becomes_shorter_is_believed() {
        assert_eq!(judge(&[(100, 0), (100, -90), (100, -90)]), [true; 3]);
    }

    #[test]
    fn after_a_while_anything_is_believed() {
        let mut samples = vec![(100, 0), (1100, 1000)];
        samples.resize(300, (100, 1000));
        let judged = judge(&samples);
        assert_eq!(judged.iter().skip(1).position(|is_credible| *is_credible), Some(200));
    }

    /// What a channel may lose of what left meanwhile, and in the second before, is no proof; nor is what is early by less than a long queue.
    #[test]
    fn what_may_be_lost_proves_nothing() {
        assert_eq!(judge(&[(100, 0), (45, -90)]), [true, true]);
        assert_eq!(judge(&[(100, 0), (43, -90)]), [true, false]);
        assert_eq!(judge(&[(100, 0), (10, -39)]), [true, true]);
        assert_eq!(judge(&[(100, 0), (10, -40)]), [true, false]);
    }
}
