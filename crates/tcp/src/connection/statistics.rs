//! What a connection counts.
//!
//! Counters of rare events are narrow, for many connections are idle, and stay at their end.

/// Counters of one connection since it began, but for its [sending half](SenderStatistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments received with a valid checksum, of any kind.
    pub segments_received: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// Segments of data received with a mark of congestion (RFC 3168).
    pub marks_received: u32,
    /// Segments whose data had all been received before.
    pub duplicates_received: u32,
    /// Segments that arrived beyond a gap.
    pub out_of_order_received: u32,
    /// Segments dropped, and not acknowledged, for want of memory: the host's, or for more gaps.
    pub memory_drops: u32,
    /// Segments refused: outside the window, old, or not acknowledging anything acceptable.
    pub discarded: u32,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u16,
    /// Window scales above 14 in the peer's SYN, which count as 14 (RFC 7323, 2.3).
    pub excessive_scales: u16,
}

/// Counters of a connection's sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStatistics {
    /// Segments with data or FIN that were sent for the first time.
    pub data_segments_sent: u64,
    /// Segments with data or FIN that were sent again.
    pub retransmissions: u64,
    /// Bytes of data that were sent again.
    pub bytes_retransmitted: u64,
    /// Bytes of data that the peer acknowledged.
    pub bytes_acked: u64,
    /// Expirations of the retransmission timer for data.
    pub timeouts: u32,
    /// Times that fast recovery began.
    pub recoveries: u32,
    /// Tail loss probes sent (RFC 8985, 7).
    pub tail_probes: u32,
    /// Reports of data that came twice (RFC 2883).
    pub dsacks_received: u32,
    /// Times that the peer's echo of a mark lowered the window.
    pub mark_reductions: u32,
    /// Duplicate acknowledgements received.
    pub duplicate_acks: u32,
    /// Time-outs found not to have been needed.
    pub spurious_timeouts: u16,
    /// Fast recoveries found not to have been needed.
    pub spurious_recoveries: u16,
    /// Probes of a closed window.
    pub window_probes: u16,
    /// SYNs and SYN-ACKs sent again.
    pub syn_retransmissions: u16,
}
