//! Which frames an idle line should carry once more before anything is heard of them: wide COTMLL's policy.
//!
//! Ours: while TCP is still opening its window, and for whoever waits for a page, nothing is lost then that would take a round
//! trip to find.

use std::collections::VecDeque;

use crate::slack;

use super::policy::{Fate, Policy};

/// Frames that are to be copied.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// In the order of their sendings; some may have been received.
    queue: VecDeque<u64>,
}

/// What is lost goes again until it has come.
impl Policy for Copies {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn on_lost(&mut self, _sequence: u64, _sendings: u8) -> Fate {
        Fate::Again
    }

    fn on_sent(&mut self, sequence: u64, sendings: u8, loss: u8) {
        if sendings < sendings_for(loss) {
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
fn sendings_for(loss: u8) -> u8 {
    if loss == 0 {
        return 1;
    }
    let (mut sendings, mut all_lost) = (1, u64::from(loss) << 8);
    while all_lost > 65 && sendings < MOST_SENDINGS {
        all_lost = (all_lost * u64::from(loss)) >> 8;
        sendings += 1;
    }
    sendings
}

/// Where half of all frames are lost.
const MOST_SENDINGS: u8 = 10;
