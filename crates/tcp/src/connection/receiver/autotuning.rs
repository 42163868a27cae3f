//! A receive window that grows with what the application reads in a round trip: dynamic right-sizing (Fisk and Feng,
//! "Dynamic Right-Sizing in TCP", 2001), as in Linux since 6.16 (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`,
//! `tcp_grow_window`, `tcp_rcv_rtt_update`).
//!
//! The buffer grows by what is read, ahead of a sender in slow start. The window follows it by two segments for
//! each that comes. While it does, Linux acknowledges every segment at once (`delaying` has the other reasons to): a
//! sender in slow start meets no delayed acknowledgement, on which HyStart's samples depend.
//!
//! Deviations:
//! - what was read is looked at when data come, not when they are read;
//! - memory for headers and metadata is not counted: the buffer is as large as the largest window.

use base::{Duration, Instant};

use super::Receiver;
use crate::buffer::reassembly::Reassembly;
use crate::sequence::ORIGIN;

/// What the receiver has found out about the sender's rhythm.
#[derive(Clone, Debug)]
pub(super) struct Autotuning {
    /// The largest window to advertise now, in bytes: `rcv_ssthresh`.
    pub(super) window: u64,
    /// Where the buffer's growth ends, in bytes.
    pub(super) ceiling: u64,
    /// The most that was read in a round trip, in bytes: `rcvq_space.space`.
    space: u64,
    /// When this round trip began, and what had been read by then.
    began_at: Instant,
    read: u64,
    /// The sender's round trip as seen from here; none before the first sample.
    rtt: Option<Duration>,
    /// The latest timestamp that gave a sample.
    last_echo: u32,
    /// Bytes of the largest segment seen.
    largest: u32,
    /// Without timestamps: a window's worth of data has come when this offset has, and when it began to.
    window_end: u64,
    window_began_at: Instant,
}

impl Autotuning {
    /// For a buffer that may grow to `ceiling` bytes, and a sender that begins with segments of `mss`.
    pub(super) fn new(ceiling: u64, mss: u16) -> Self {
        let window = ceiling.min(INITIAL);
        Self {
            window,
            ceiling,
            space: window.min(INITIAL_SEGMENTS * u64::from(mss)).max(1),
            began_at: Instant::ZERO,
            read: ORIGIN + 1,
            rtt: None,
            last_echo: 0,
            largest: 0,
            window_end: 0,
            window_began_at: Instant::ZERO,
        }
    }

    /// The time from an acknowledgement to the data that it lets out. `echo` is the timestamp that a segment
    /// of `len` echoes, and its age; a small one may have waited for the application.
    fn on_echo(&mut self, len: u32, (echo, age): (u32, Duration), all_read: bool) {
        let fresh = core::mem::replace(&mut self.last_echo, echo) != echo;
        self.largest = self.largest.max(len);
        if !fresh || len < self.largest {
            return;
        }
        let sample = age.max(CLOCK_GRANULARITY);
        match self.rtt {
            Some(rtt) if sample >= rtt && all_read => self.rtt = Some(rtt - rtt / 8 + sample / 8),
            Some(rtt) if sample >= rtt => {}
            _ => self.rtt = Some(sample),
        }
    }

    /// Without timestamps: no window's worth of data comes in less than a round trip.
    fn on_window(&mut self, now: Instant, next: u64, window: u64) {
        if next < self.window_end {
            return;
        }
        if self.window_end > 0 {
            let sample = now.saturating_since(self.window_began_at).max(CLOCK_GRANULARITY);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
        (self.window_end, self.window_began_at) = (next + window, now);
    }

    /// Once a round trip: what was read in it, and the buffer that it needs.
    fn adjust(&mut self, now: Instant, buffer: &mut Reassembly) {
        let Some(rtt) = self.rtt else { return };
        if now.saturating_since(self.began_at) < rtt {
            return;
        }
        let unread = buffer.unread() as u64;
        let read = buffer.next() - unread;
        let served = (read - self.read).saturating_sub(unread);
        if served > self.space {
            self.grow_buffer(served, buffer);
        }
        (self.began_at, self.read) = (now, read);
    }

    /// The buffer has room for twice the data read in a round trip, and for more while these grow, since the sender may be
    /// doubling its rate and the window is a round trip behind; what waits beyond a gap, so that recovery does not
    /// stop for want of a window, comes on top.
    fn grow_buffer(&mut self, served: u64, buffer: &mut Reassembly) {
        let growth = u128::from(2 * served) * u128::from(served - self.space) / u128::from(self.space);
        let waiting = buffer.waiting().last().map_or(0, |last| last.end - buffer.next());
        let wanted = u128::from(2 * served + waiting) + 2 * growth;
        let limit = wanted.min(u128::from(self.ceiling)) as usize;
        buffer.set_limit(limit.max(buffer.limit()));
        self.space = served;
    }

    /// The window follows the buffer; whether it grew.
    fn grow_window(&mut self, len: u32, mss: u16, buffer: &Reassembly) -> bool {
        let most = buffer.room() as u64;
        let grows = len >= SMALLEST && self.window < most;
        if grows {
            self.window = most.min(self.window + 2 * u64::from(len.max(u32::from(mss))));
        }
        grows
    }
}

impl Receiver {
    /// `len` bytes of data from `start` on came in a segment, which echoed a timestamp of this age, if any; `sack`: gaps are told
    /// selectively.
    pub(crate) fn autotune(
        &mut self,
        now: Instant,
        (start, len): (u64, u32),
        echoed: Option<(u32, Duration)>,
        sack: bool,
    ) {
        let (next, window, mss) = (self.nxt(), self.window(), self.mss);
        let Some(tuning) = &mut self.autotuning else { return };
        let buffer = &mut self.reassembly;
        match echoed {
            Some(echoed) => tuning.on_echo(len, echoed, buffer.unread() == 0),
            None => tuning.on_window(now, next, window),
        }
        tuning.adjust(now, buffer);
        if !buffer.waiting().is_empty() {
            tuning.grow_buffer(tuning.space, buffer);
        }
        // Without selective acknowledgements the sender has to see duplicates: their window may not change.
        if (sack || start <= next) && tuning.grow_window(len, mss, buffer) {
            self.quick_acks.allow_another();
        }
    }
}

/// Bytes; half of the middle value of `tcp_rmem`.
const INITIAL: u64 = 65_536;
/// `TCP_INIT_CWND`, segments that a sender begins with.
const INITIAL_SEGMENTS: u64 = 10;
/// Bytes; smaller segments do not open the window.
const SMALLEST: u32 = 128;
/// Our timestamps' tick.
const CLOCK_GRANULARITY: Duration = Duration::from_millis(1);
