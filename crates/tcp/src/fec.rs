//! Loss-Tolerant TCP: an erasure code across segments, which repairs losses that are no congestion before anybody has to ask.
//!
//! O. Tickoo, V. Subramanian, S. Kalyanaraman, K. K. Ramakrishnan, "LT-TCP: End-to-End Framework to Improve TCP Performance over Networks
//! with Lossy Channels", 2005, sections III and IV. The sender cuts its stream into *blocks* of about a window each: data segments and,
//! behind them, *repairs* of a Reed-Solomon code, any of which makes good any one lost segment of the block. How many follow in any case (*proactive*) depends on an estimate of the
//! path's erasure rate; more follow on duplicate acknowledgements (*reactive*). Segments get smaller with the window, so that
//! there always are enough of them for losses to be noticed.
//!
//! ```text
//!            block 4                            block 5
//! ... | d0 d1 d2 d3 d4 d5 d6 r7 r8 r9 | d0 d1 d2 d3 d4 d5 d6 d7 r8 r9 | ...
//!       ^ data, in the byte stream  ^ repairs, outside it
//! ```
//!
//! [`Outgoing`] is the sender's half, [`Incoming`] the receiver's, [`Estimate`] the erasure rate, [`plan`] how a block is laid out. How
//! they are written is in `base::wire::tcp::coding`; `connection::coding` joins them to the connection.
//!
//! Deviations, where the paper is silent, damaged or cannot work (the project's notes on the paper give reasons):
//! - the receiver reports per block how many of its segments came, in an option beside its acknowledgements: repair hides losses
//!   from selective acknowledgements;
//! - `f` and `g` are tables of ours; the repairs of a block are at least `f(E)` where the paper's second step would lower them;
//! - duplicate acknowledgements are withheld while the block in which the first gap lies may still be repaired, and a timer lets them
//!   go where nothing more comes;
//! - a block is as large as [`plan::MOST_SOURCES`] allows, so a large window has several;
//! - a check of the whole block guards what was repaired: a forged or misread repair is found and dropped;
//! - where losses come with a queue and without marks, the path does not mark, and losses count as congestion ([`Trust`]).

mod estimate;
mod incoming;
mod outgoing;
pub(crate) mod plan;
mod trust;

use estimate::Estimate;
pub(crate) use incoming::Incoming;
pub(crate) use outgoing::{Outgoing, Reason, Symbol};
use trust::Trust;

use siphasher::sip::SipHasher13;

use crate::config::FecConfig;

/// What a connection counts of the blocks that it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FecStatistics {
    /// Repairs sent in any case.
    pub proactive_sent: u64,
    /// Bytes of these, headers included.
    pub proactive_bytes: u64,
    /// Repairs sent because segments were missing.
    pub reactive_sent: u64,
    /// Bytes of these, headers included.
    pub reactive_bytes: u64,
    /// Blocks begun.
    pub blocks_sent: u64,
    /// Times that losses were taken for congestion although the connection heeds marks.
    pub distrusted: u64,
    /// Time-outs for a segment that had been sent again.
    pub timeouts_again: u64,
}

impl FecStatistics {
    /// A repair went out in a packet of so many bytes.
    pub(crate) const fn count_sent(&mut self, reason: Reason, bytes: usize) {
        let (count, sum) = match reason {
            Reason::Proactive => (&mut self.proactive_sent, &mut self.proactive_bytes),
            Reason::Reactive => (&mut self.reactive_sent, &mut self.reactive_bytes),
        };
        *count += 1;
        *sum += bytes as u64;
    }
}

/// What a connection counts of the blocks that it receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairStatistics {
    /// Repairs received.
    pub repairs_received: u64,
    /// Segments with data that were computed from others.
    pub recovered: u64,
    /// Blocks whose check failed when they were computed.
    pub failed_checks: u64,
    /// Duplicate acknowledgements withheld that never had to be sent.
    pub acks_spared: u64,
}

/// Both halves of one connection's code, for segments of up to `mss` bytes of data and these initial sequence numbers: ours, the
/// peer's.
pub(crate) fn halves(config: &FecConfig, mss: u32, ours: u32, peers: u32) -> (Outgoing, Incoming) {
    (Outgoing::new(*config, mss, Key([ours, peers])), Incoming::new(Key([peers, ours])))
}

/// What the check of a block depends on besides its data: whoever cannot see the connection cannot compute it.
#[derive(Clone, Copy, Debug)]
struct Key([u32; 2]);

impl Key {
    /// The check of a block that begins at `start` and has so many sources, of its data and where they belong.
    fn check(self, start: u64, sources: u8, data: &[u8]) -> u32 {
        let place = start << 8 | u64::from(sources);
        let keys = (u64::from(self.0[0]) << 32 | u64::from(self.0[1]), place);
        SipHasher13::new_with_keys(keys.0, keys.1).hash(data) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever forges a repair has to know both initial sequence numbers; and two ends compute the same.
    #[test]
    fn a_check_depends_on_all_of_the_key() {
        let check = |key: [u32; 2]| Key(key).check(3, 4, b"data of a block");
        let right = check([1, 2]);
        assert_eq!(
            right,
            SipHasher13::new_with_keys(1 << 32 | 2, 3 << 8 | 4).hash(b"data of a block") as u32
        );
        for forged in [[0, 2], [1, 0], [1, 3], [3, 2], [2, 1], [0, 0]] {
            assert_ne!(check(forged), right, "{forged:?}");
        }
    }
}
