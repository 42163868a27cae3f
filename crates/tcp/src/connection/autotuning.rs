//! How the advertised window grows towards the whole buffer: Linux's receive-buffer autotuning (`tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`) and the slow start of its window (`tcp_grow_window`), as of Linux 6.18.
//!
//! Deviations:
//! - the memory that a packet takes up is its bytes: a kernel's overhead per packet is not modelled;
//! - the round trip is the sender's `srtt`, where Linux measures one at the receiver, too;
//! - what the application took is looked at when data come, not when it reads.

use base::{Duration, Instant};

use super::Connection;

/// A window on its way to the whole buffer. Positions are offsets of the peer's stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Autotuning {
    /// Most bytes that are advertised now: `rcv_ssthresh`.
    window: u64,
    /// What that may grow to: `window_clamp`.
    clamp: u64,
    /// Most bytes that the application took in a round trip: `rcvq_space.space`.
    taken: u64,
    /// How far the application had read when the round trip began, and when that was.
    read_to: u64,
    since: Instant,
}

impl Autotuning {
    /// A window of a buffer of `limit` bytes for segments of `mss`.
    pub(super) fn new(limit: u64, mss: u64) -> Self {
        let clamp = INITIAL_BUFFER.min(limit);
        // Whole segments (`tcp_select_initial_window`), if any fits.
        let window = if clamp > mss { clamp - clamp % mss } else { clamp };
        Self { window, clamp, taken: (INITIAL_SEGMENTS * mss).min(window), read_to: 0, since: Instant::ZERO }
    }

    /// Most bytes that may be advertised now.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// The stream begins at `position`.
    pub(super) const fn begin(&mut self, position: u64) {
        self.read_to = position;
    }

    /// At the end of a round trip: an application that took more than ever before gets room for twice that, and for what
    /// the sender's growth adds.
    fn measure(&mut self, now: Instant, read_to: u64, rtt: Duration, mss: u64, limit: u64) {
        if now.saturating_since(self.since) < rtt {
            return;
        }
        let taken = read_to.saturating_sub(self.read_to);
        if taken > self.taken {
            let twice = 2 * taken + ROUNDING_SEGMENTS * mss;
            let growth = u128::from(twice) * u128::from(taken - self.taken) / u128::from(self.taken.max(1));
            let wanted = twice.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX));
            self.clamp = self.clamp.max(wanted.min(limit));
            self.taken = taken;
        }
        (self.read_to, self.since) = (read_to, now);
    }

    /// A segment of `len` bytes came: the window opens by two segments for it; whether it did.
    fn open(&mut self, len: u64, mss: u64, room: u64) -> bool {
        let free = self.clamp.min(room).saturating_sub(self.window);
        if len < LEAST_SEGMENT || free == 0 {
            return false;
        }
        self.window += free.min(2 * mss.max(len));
        true
    }
}

impl Connection {
    /// `len` bytes of data came. A window that grows for them is told at once (`tcp_grow_window`).
    pub(super) fn autotune(&mut self, now: Instant, len: usize) {
        let receiver = &mut self.receiver;
        let Some(autotuning) = receiver.autotuning.as_deref_mut() else { return };
        let mss = u64::from(receiver.mss);
        let read_to = receiver.reassembly.next() - receiver.reassembly.unread() as u64;
        if let Some(rtt) = self.sender.rtt.srtt() {
            autotuning.measure(now, read_to, rtt, mss, receiver.reassembly.limit() as u64);
        }
        if autotuning.open(len as u64, mss, receiver.reassembly.room() as u64) {
            receiver.quick_acks.allow_one_more();
        }
    }
}

/// Bytes of window that a new socket's buffer allows: half of `tcp_rmem`'s default of 131,072 bytes.
const INITIAL_BUFFER: u64 = 65_536;
/// `TCP_INIT_CWND` of Linux: segments that an application is supposed to take in a round trip at first.
const INITIAL_SEGMENTS: u64 = 10;
/// Segments that `tcp_rcv_space_adjust` of Linux adds for rounding.
const ROUNDING_SEGMENTS: u64 = 16;
/// Shorter segments open no window (`tcp_event_data_recv`), in bytes.
const LEAST_SEGMENT: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1460;
    const RTT: Duration = Duration::from_millis(500);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// `tcp_select_initial_window`: 44 whole segments of 65,536 bytes.
    #[test]
    fn it_begins_with_whole_segments() {
        assert_eq!(Autotuning::new(3 << 20, MSS).window(), 64_240);
        assert_eq!(Autotuning::new(20_000, MSS).window(), 18_980);
        assert_eq!(Autotuning::new(1000, MSS).window(), 1000);
    }

    /// `tcp_grow_window`: two segments for one, up to the clamp and to the room that is left.
    #[test]
    fn a_segment_opens_the_window_by_two() {
        let mut window = Autotuning::new(3 << 20, MSS);
        assert!(window.open(MSS, MSS, 1 << 20));
        assert_eq!(window.window(), 65_536, "the clamp");
        assert!(!window.open(MSS, MSS, 1 << 20));
        window.clamp = 100_000;
        assert!(!window.open(100, MSS, 1 << 20), "too short");
        assert!(window.open(MSS, MSS, 1 << 20));
        assert_eq!(window.window(), 65_536 + 2 * MSS);
        assert!(!window.open(MSS, MSS, 50_000), "unread data leave no room");
    }

    /// `tcp_rcvbuf_grow`: 20 segments after 10 make 2 * 20 + 16, and twice that for a rate that doubles.
    #[test]
    fn a_faster_application_gets_a_larger_buffer() {
        let mut window = Autotuning::new(3 << 20, MSS);
        window.measure(at(500), 20 * MSS, RTT, MSS, 3 << 20);
        assert_eq!(window.clamp, 3 * (40 + 16) * MSS);
        window.measure(at(900), 100 * MSS, RTT, MSS, 3 << 20);
        assert_eq!(window.clamp, 3 * 56 * MSS, "the round trip is not over");
        window.measure(at(1000), 30 * MSS, RTT, MSS, 3 << 20);
        assert_eq!(window.clamp, 3 * 56 * MSS, "10 segments are no record");
        window.measure(at(1500), 3000 * MSS, RTT, MSS, 3 << 20);
        assert_eq!(window.clamp, 3 << 20, "the buffer");
    }
}
