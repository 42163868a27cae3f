//! What `TCP_INFO` of Linux tells and no other getter does; bytes, where Linux counts segments.

use super::Connection;
use crate::recovery::Phase;

/// How recovery stands, in Linux's words (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionState {
    /// Nothing is in doubt.
    Open,
    /// Duplicate or selective acknowledgements came, and no loss is found.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a time-out.
    Loss,
}

impl Connection {
    /// How recovery stands. Linux's `TCP_CA_CWR`, a reduction without a loss, is no state of its own here.
    #[must_use]
    pub fn congestion_state(&self) -> CongestionState {
        let sender = &self.sender;
        match sender.recovery.phase() {
            Phase::FastRecovery => CongestionState::Recovery,
            Phase::Timeout => CongestionState::Loss,
            _ if sender.board.sacked() > 0 || sender.recovery.has_duplicates() => CongestionState::Disorder,
            _ => CongestionState::Open,
        }
    }

    /// Bytes that the peer has beyond its cumulative acknowledgement: `tcpi_sacked`.
    #[must_use]
    pub const fn sacked(&self) -> u64 {
        self.sender.board.sacked()
    }

    /// Outstanding bytes that are deemed lost, sent again or not: `tcpi_lost`.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.sender.board.lost()
    }

    /// Outstanding bytes that were sent again since they were deemed lost: `tcpi_retrans`.
    #[must_use]
    pub const fn resent(&self) -> u64 {
        self.sender.board.resent_bytes()
    }

    /// Time-outs in a row without an answer: `tcpi_retransmits`.
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.sender.timers.retries as u32
    }

    /// Bytes written and never sent: `tcpi_notsent_bytes`.
    #[must_use]
    pub const fn unsent(&self) -> usize {
        self.sender.unsent()
    }
}
