//! How long an acknowledgement of data in order waits: RFC 5681 (4.2), delayed acknowledgements after slow start
//! (DAASS: RFC 2760, 3.2.3; Kojo et al. 2005, section 4), and Linux's quick acknowledgements (`tcp_event_data_recv`,
//! `tcp_incr_quickack`, `tcp_send_delayed_ack`, `tcp_event_data_sent`, `__tcp_cleanup_rbuf`).
//!
//! Deviations:
//! - DAASS ends by the bytes received, half of the largest window that the receiver can advertise; the paper's
//!   Linux counted segments of the size that it had seen;
//! - a second segment is acknowledged at once whatever its size, where Linux waits for more than a full one;
//! - the length of a full segment never shrinks; Linux's does after two shorter ones of equal length;
//! - Linux's clock has ticks, this one nanoseconds.

use base::{Duration, Instant};

use super::Receiver;
use crate::config::{AcknowledgementConfig, DelayedAcks};

/// How acknowledgements go out, as [`AcknowledgementConfig`] says; small, for each connection has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    timeout_us: u32,
    delay: DelayedAcks,
    pushed: bool,
    /// Data that come twice are reported (RFC 2883), if the handshake leaves it at that.
    pub(crate) dsack: bool,
}

impl Policy {
    pub(super) fn new(config: &AcknowledgementConfig) -> Self {
        Self {
            timeout_us: u32::try_from(config.timeout.as_micros()).unwrap_or(u32::MAX),
            delay: config.delay,
            pushed: config.pushed,
            dsack: config.dsack,
        }
    }

    const fn timeout(self) -> Duration {
        Duration::from_micros(self.timeout_us as u64)
    }
}

/// What Linux keeps of the peer's rhythm.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuickAcks {
    /// When data came last.
    received_at: Instant,
    /// How long an acknowledgement waits: `ato`; zero before the first data.
    wait_us: u32,
    /// Acknowledgements that still go out at once: `quick`.
    left: u8,
    /// [`ANSWERING`] and [`PUSHED`].
    marks: u8,
    /// The longest segment so far, in bytes: `rcv_mss`.
    longest: u16,
}

impl QuickAcks {
    pub(super) const fn new() -> Self {
        Self { received_at: Instant::ZERO, wait_us: 0, left: 0, marks: 0, longest: LEAST_MSS }
    }

    const fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// Whether its answers carry acknowledgements.
    const fn answers(&mut self, does: bool) {
        self.marks = if does { self.marks | ANSWERING } else { self.marks & !ANSWERING };
    }

    const fn wait(&self) -> Duration {
        Duration::from_micros(self.wait_us as u64)
    }

    const fn set_wait(&mut self, wait: Duration) {
        let us = wait.as_nanos() / 1000;
        self.wait_us = if us < u32::MAX as u64 { us as u32 } else { u32::MAX };
    }

    /// At least so many acknowledgements go out at once.
    const fn allow(&mut self, count: u8) {
        if count > self.left {
            self.left = count;
        }
    }

    /// One more goes out at once (`tcp_grow_window`).
    pub(super) const fn allow_another(&mut self) {
        self.left |= 1;
    }

    /// Data came: the wait follows the gaps between arrivals, and a pause means that the sender starts slowly again.
    fn on_data(&mut self, now: Instant, least: Duration, rto: Duration, quick: u8) {
        let gap = now.saturating_since(self.received_at);
        let wait = self.wait();
        if self.wait_us == 0 {
            self.allow(quick);
            self.set_wait(least);
        } else if gap <= least / 2 {
            self.set_wait(wait / 2 + least / 2);
        } else if gap < wait {
            self.set_wait((wait / 2 + gap).min(rto));
        } else if gap > rto {
            self.allow(quick);
        }
        self.received_at = now;
    }
}

impl Receiver {
    /// `len` bytes came in order, before which the next expected was `before`: the acknowledgement goes at once, or
    /// waits for a second segment or the timer.
    pub(crate) fn schedule_ack(&mut self, now: Instant, before: u64, rto: Duration, srtt: Option<Duration>) {
        if self.withholds() {
            // It would say again what was said.
            return;
        }
        self.ack_now |= match self.policy.delay {
            DelayedAcks::Off => true,
            DelayedAcks::On => false,
            DelayedAcks::AfterSlowStart => before - FIRST_BYTE < self.widest() / 2,
            DelayedAcks::QuickAcks => {
                let least = self.policy.timeout();
                let quick = self.segments_of_half_the_window();
                let state = &mut self.quick_acks;
                state.on_data(now, least, rto, quick);
                state.left > 0 && !state.has(ANSWERING)
            }
        };
        if !self.ack_now {
            self.ack_at = self.ack_at.min(now.saturating_add(self.ack_delay(srtt)));
        }
    }

    fn ack_delay(&self, srtt: Option<Duration>) -> Duration {
        let least = self.policy.timeout();
        if self.policy.delay != DelayedAcks::QuickAcks {
            return least;
        }
        let wait = self.quick_acks.wait();
        if wait <= least {
            return wait;
        }
        let rtt = srtt.map_or(MOST, |srtt| srtt.max(least));
        wait.min(rtt).min(MOST)
    }

    /// Data came in a segment of `len` bytes, which says `push` or not (`tcp_measure_rcv_mss`).
    pub(crate) fn note_push(&mut self, len: usize, push: bool) {
        let mss = self.mss;
        let state = &mut self.quick_acks;
        // A device may have joined several segments.
        let len = u16::try_from(len).unwrap_or(u16::MAX).min(mss);
        if push || len < state.longest.min(mss) {
            state.marks |= PUSHED;
        }
        state.longest = state.longest.max(len);
    }

    /// The application has read all that there is: what the sender pushed is acknowledged at once (`__tcp_cleanup_rbuf`).
    pub(crate) fn on_all_read(&mut self) {
        let state = &self.quick_acks;
        let hurries = state.has(PUSHED) && !state.has(ANSWERING);
        let heeds = self.policy.pushed && self.policy.delay == DelayedAcks::QuickAcks;
        if heeds && hurries && self.owes_ack() {
            self.ack_now = true;
        }
    }

    /// The delayed acknowledgement's timer expired: an answer did not come in time, or the peer waits for nothing.
    pub(crate) fn on_delayed_ack_timer(&mut self, rto: Duration) {
        self.ack_at = Instant::MAX;
        self.ack_now = true;
        let state = &mut self.quick_acks;
        let wait = if state.has(ANSWERING) { self.policy.timeout() } else { (state.wait() * 2).min(rto) };
        state.set_wait(wait);
        state.answers(false);
    }

    /// A segment with an acknowledgement, and with `len` bytes of data, is sent now.
    pub(crate) fn note_ack_sent(&mut self, now: Instant, len: u32) {
        self.ack_at = Instant::MAX;
        if self.policy.delay != DelayedAcks::QuickAcks {
            return;
        }
        let owed = self.owes_ack();
        let state = &mut self.quick_acks;
        state.marks &= ANSWERING;
        if owed && state.left > 0 {
            state.left -= 1;
            if state.left == 0 {
                state.set_wait(self.policy.timeout());
            }
        }
        if len > 0 && now.saturating_since(state.received_at) < state.wait() {
            state.answers(true);
        }
    }

    /// The sender is in trouble or its window small: `tcp_enter_quickack_mode`.
    pub(crate) fn hurry_acks(&mut self, most: u8) {
        if self.policy.delay != DelayedAcks::QuickAcks {
            return;
        }
        let quick = self.segments_of_half_the_window().min(most);
        let state = &mut self.quick_acks;
        state.allow(quick);
        state.answers(false);
        state.set_wait(self.policy.timeout());
    }
}

/// This side answers what it receives, and its answers carry acknowledgements: `pingpong`.
const ANSWERING: u8 = 1;
/// The sender has no more for now: `ICSK_ACK_PUSHED`.
const PUSHED: u8 = 1 << 1;
/// `TCP_MSS_DEFAULT` of Linux: the length of a full segment until a longer one has come.
const LEAST_MSS: u16 = 536;
/// The offset of the first byte of a stream.
const FIRST_BYTE: u64 = crate::sequence::ORIGIN + 1;
/// `TCP_DELACK_MAX` of Linux.
const MOST: Duration = Duration::from_millis(200);
/// `TCP_MAX_QUICKACKS` of Linux.
pub(crate) const MOST_QUICK_ACKS: u8 = 16;
