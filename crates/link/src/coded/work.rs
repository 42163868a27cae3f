//! What a peer may have its sums cost: bytes that are received pay for bytes that are computed.
//!
//! Ours. Whoever takes a sum apart adds multiples of frames and of other sums to it, and a short frame may name many of them. So a sum is
//! taken in only while there is credit, and one for which it runs out is given up before anything is promised of it. What was promised
//! is always computed, on credit if need be, and paid for before the next sum.

/// Credit for bytes that are computed.
#[derive(Debug)]
pub(super) struct Work {
    /// Below zero while what was promised is being paid for.
    credit: i64,
    /// All that was ever spent.
    #[cfg(test)]
    pub(super) spent: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            credit: MOST_SAVED,
            #[cfg(test)]
            spent: 0,
        }
    }
}

impl Work {
    /// A frame of `len` bytes has come.
    pub(super) fn earn(&mut self, len: usize) {
        self.credit = (self.credit + WORK_PER_BYTE * (OVERHEAD + len) as i64).min(MOST_SAVED);
    }

    /// Multiples of so many bytes are added.
    pub(super) fn spend(&mut self, bytes: usize) {
        let cost = (STEP + bytes) as i64;
        self.credit -= cost;
        #[cfg(test)]
        {
            self.spent += cost as u64;
        }
    }

    /// Whether there is credit.
    pub(super) const fn is_paid(&self) -> bool {
        self.credit > 0
    }
}

/// Bytes computed for each that is received, on average. Ours: a core computes some 15 GB/s, so it takes 200 Mbit/s of the worst that a
/// peer can send to fill one. Eight downloads with the acknowledgements that they get, over 10 to 500 Mbit/s, 50 to 600 ms there and back
/// and 1 to 60 % lost, take 400 at most.
pub(super) const WORK_PER_BYTE: i64 = 512;

/// What a frame has on the wire beside its own bytes, at least: headers of IP and UDP, and the seal.
pub(super) const OVERHEAD: usize = 64;

/// Bytes computed at once, at most, but for what was promised. Ours: twice what those downloads have ever taken.
pub(super) const MOST_SAVED: i64 = 128 << 20;

/// What an addition costs however short it is, in bytes: the time it takes to find what is added.
pub(super) const STEP: usize = 640;

#[cfg(test)]
mod tests {
    use super::*;

    /// Credit that is spent to the last byte pays for nothing more, and no more is saved than is said.
    #[test]
    fn credit_ends_at_zero() {
        let mut work = Work::default();
        work.earn(1);
        work.spend(MOST_SAVED as usize - STEP - 1);
        assert!(work.is_paid(), "one is left");
        work.spend(0);
        assert!(!work.is_paid());
        // What is owed is paid first.
        let frame = WORK_PER_BYTE * (OVERHEAD as i64 + 10);
        let mut work = Work { credit: -frame, ..Work::default() };
        work.earn(10);
        assert!(!work.is_paid());
        work.earn(10);
        assert!(work.is_paid());
        // What a short frame takes on the wire counts, so short ones may have a share of sums, too.
        assert_eq!(work.credit, frame);
    }
}
