//! Which frames an idle line should carry once more before anything is heard of them: wide COTMLL's policy.
//!
//! Ours: while TCP is still opening its window, and for whoever waits for a page, nothing is lost then that would take a round
//! trip to find.

use std::collections::VecDeque;

use crate::slack;

use super::policy::{OnLoss, Policy};

/// Frames that are to be copied.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// In the order of their transmissions; some may have been received.
    queue: VecDeque<u64>,
}

/// What is lost goes again until it has come.
impl Policy for Copies {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn on_lost(&mut self, _sequence: u64, _transmissions: u8) -> OnLoss {
        OnLoss::Retransmit
    }

    fn on_sent(&mut self, sequence: u64, transmissions: u8, loss: u8) {
        if transmissions < transmissions_for(loss) {
            self.queue.push_back(sequence);
        }
    }

    fn forget_before(&mut self, base: u64) {
        while self.queue.pop_front_if(|sequence| *sequence < base).is_some() {}
        slack::give_back(&mut self.queue);
    }

    fn has_copies(&self) -> bool {
        !self.queue.is_empty()
    }

    fn poll_copy(&mut self) -> Option<u64> {
        self.queue.pop_front()
    }

    fn tells_floor(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        slack::room(&self.queue)
    }
}

/// How often an idle line carries a frame, if so many 256ths of all frames are lost: until fewer than one in a thousand is lost
/// each time.
fn transmissions_for(loss: u8) -> u8 {
    if loss == 0 {
        return 1;
    }
    let (mut transmissions, mut all_lost) = (1, u64::from(loss) << 8);
    while all_lost > 65 && transmissions < MOST_TRANSMISSIONS {
        all_lost = (all_lost * u64::from(loss)) >> 8;
        transmissions += 1;
    }
    transmissions
}

/// Where half of all frames are lost.
const MOST_TRANSMISSIONS: u8 = 10;
