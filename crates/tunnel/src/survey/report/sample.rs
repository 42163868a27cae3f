//! What two reports tell together.

use base::{Duration, Instant};

use crate::survey::silence::Silence;

/// Datagrams, and their bytes without the carrier's headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Totals {
    /// Counts datagrams of `bytes` bytes altogether.
    pub const fn add(&mut self, datagrams: u64, bytes: u64) {
        self.datagrams += datagrams;
        self.bytes += bytes;
    }

    /// What was added since.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            datagrams: self.datagrams.saturating_sub(earlier.datagrams),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// What an answer to a stamp tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the stamp left.
    pub sent_at: Instant,
    /// From its leaving to the answer, without the time that the other end held it.
    pub round_trip: Duration,
    /// One-way delay of the stamp in ns, plus an unknown constant.
    pub delay: i64,
    /// What happened since the stamp that was answered before; `None` for the first.
    pub span: Option<Span>,
    /// Reports since then whose stamps nobody answered.
    pub missed: usize,
    /// What has left since the stamp.
    pub after: Totals,
    /// Of what left and arrived in the span, datagrams longer than every path carries.
    pub long: Long,
    /// What of the span was a silence.
    pub silence: Silence,
}

/// Datagrams longer than every path carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Long {
    /// Those that left.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
}

/// What left between two stamps, and what of it arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// What left.
    pub sent: Totals,
    /// In this time.
    pub sent_in: Duration,
    /// What arrived.
    pub received: Totals,
    /// In this time.
    pub received_in: Duration,
}

impl Span {
    /// What is left of it without a time in which nothing arrived.
    #[must_use]
    pub fn without(mut self, silence: Silence) -> Self {
        let lost = self.sent.since(self.received);
        let datagrams = silence.datagrams.min(lost.datagrams);
        if datagrams > 0 {
            // Which of those that were lost is not known: of average length.
            let bytes = u128::from(lost.bytes) * u128::from(datagrams) / u128::from(lost.datagrams);
            self.sent = self.sent.since(Totals { datagrams, bytes: bytes as u64 });
            self.sent_in = self.sent_in.saturating_sub(silence.time);
            self.received_in = self.received_in.saturating_sub(silence.time);
        }
        self
    }

    /// Takes in what happened next.
    pub fn add(&mut self, next: &Self) {
        self.sent.add(next.sent.datagrams, next.sent.bytes);
        self.sent_in += next.sent_in;
        self.received.add(next.received.datagrams, next.received.bytes);
        self.received_in += next.received_in;
    }
}
