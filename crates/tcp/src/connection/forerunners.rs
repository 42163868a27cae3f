//! Segments of a proxy that came before the answer to our SYN.
//!
//! A proxy sends data right behind its SYN-ACK, and the link between two keeps no order between packets that it treats differently.
//! To drop them, as RFC 9293 (3.10.7.3, fifth) has it, would cost the peer its retransmission time-out.

use base::Instant;
use base::wire::ip::Ecn;
use base::wire::tcp::{self, Flags};

use super::Connection;

/// Segments that wait for the SYN-ACK, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Forerunners {
    segments: Vec<Forerunner>,
    /// Bytes of memory that they take.
    memory: usize,
}

#[derive(Debug)]
struct Forerunner {
    ecn: Ecn,
    segment: tcp::Repr,
    payload: Box<[u8]>,
}

impl Connection {
    /// Keeps a segment that acknowledges our SYN and is none itself until the SYN-ACK has come, if the peer may be a proxy and there
    /// is room for it; whether it was kept.
    pub(super) fn keep_forerunner(&mut self, ecn: Ecn, segment: &tcp::Repr, payload: &[u8]) -> bool {
        let matters = !payload.is_empty() || segment.flags.has(Flags::FIN);
        if !self.sender.negotiated.paired || !matters {
            return false;
        }
        let kept = self.forerunners.get_or_insert_default();
        let memory = kept.memory + size_of::<Forerunner>() + payload.len();
        if memory > MOST.min(self.receiver.reassembly.room()) {
            return false;
        }
        kept.memory = memory;
        kept.segments.push(Forerunner { ecn, segment: *segment, payload: payload.into() });
        true
    }

    /// The SYN-ACK has come: what came before it counts now, if a proxy sent it.
    pub(super) fn take_forerunners(&mut self, now: Instant) {
        let Some(kept) = self.forerunners.take().filter(|_| self.sender.negotiated.paired) else { return };
        for Forerunner { ecn, segment, payload } in kept.segments {
            // Err is a segment of no use, as of any other connection that these two had.
            let _ = self.handle_synchronized(now, ecn, &segment, &payload);
        }
    }

    /// Bytes of memory that waiting segments take.
    pub(super) fn forerunners_memory(&self) -> usize {
        self.forerunners.as_ref().map_or(0, |kept| size_of::<Forerunners>() + kept.memory)
    }
}

/// Bytes of memory that segments take before the SYN-ACK. Ours: 100 Mbit/s for 20 ms, by which one class of packets may overtake
/// another; what is dropped is sent again.
const MOST: usize = 256 * 1024;
