//! Whether the congestion window is what limits a sender: a window that nobody uses is no reason for a larger one
//! (RFC 9293 and RFC 5681 leave that open). After Linux's `tcp_cwnd_validate`, by bytes.

/// How much of its window a sender used in the last round trip in which it sent new data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    /// The window kept new data back.
    pub(super) limited: bool,
    /// The most bytes that were outstanding; a window is below 2^30 (RFC 7323, 2.3).
    most: u32,
    /// What was sent by then is acknowledged at its end: an offset, modulo 2^32.
    until: u32,
}

impl WindowUse {
    /// New data left, or had to wait for the window, which is `limited` then; outstanding is what lies between the offsets
    /// `una` and `nxt`.
    pub(super) const fn note(&mut self, una: u64, nxt: u64, limited: bool) {
        let outstanding = (nxt - una) as u32;
        let is_over = (una as u32).wrapping_sub(self.until) as i32 >= 0;
        if is_over || limited || (!self.limited && outstanding > self.most) {
            *self = Self { limited, most: outstanding, until: nxt as u32 };
        }
    }

    /// The most bytes that were outstanding.
    pub(super) const fn most(&self) -> u64 {
        self.most as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That the window kept data back counts until what was out then is acknowledged.
    #[test]
    fn a_limit_counts_for_a_round_trip() {
        let mut used = WindowUse::default();
        used.note(0, 10_000, true);
        used.note(2000, 10_500, false);
        assert!(used.limited);
        used.note(10_000, 10_600, false);
        assert!(!used.limited);
        assert_eq!(used.most(), 600);
    }

    /// Offsets go on where 32 bits end.
    #[test]
    fn a_round_trip_may_wrap() {
        let (mut used, edge) = (WindowUse::default(), 1 << 32);
        used.note(edge - 2000, edge + 1000, true);
        used.note(edge + 999, edge + 1999, false);
        assert!(used.limited);
        used.note(edge + 1000, edge + 2000, false);
        assert!(!used.limited);
    }

    /// Without a limit the most of the round trip counts, not what is left of it.
    #[test]
    fn the_most_that_was_outstanding_counts() {
        let mut used = WindowUse::default();
        used.note(0, 4000, false);
        used.note(3000, 5000, false);
        assert_eq!(used.most(), 4000);
        used.note(4000, 5500, false);
        assert_eq!(used.most(), 1500);
        used.note(4000, 6500, false);
        assert_eq!(used.most(), 2500);
    }
}
