//! `TCP_INFO` of a connection of ours, in the kernel's units.

use longhaul_tcp::{CongestionState, Connection, State};
use packetdrill::Field;

/// A field's value. What is counted in segments here is bytes in full segments, rounded up.
pub(crate) fn value(connection: &Connection, field: Field) -> i64 {
    let (statistics, sent) = (connection.statistics(), connection.sender_statistics());
    let mss = u64::from(connection.mss()).max(1);
    let segments = |bytes: u64| bytes.div_ceil(mss);
    let value = match field {
        Field::State => state(connection.state()),
        Field::CaState => match connection.congestion_state() {
            CongestionState::Open => 0,
            CongestionState::Disorder => 1,
            CongestionState::Recovery => 3,
            CongestionState::Loss => 4,
        },
        Field::Retransmits => connection.retries().into(),
        Field::Backoff => connection.backoff().into(),
        Field::Rto => connection.rto().as_micros(),
        Field::SndMss => mss,
        Field::Unacked => segments(connection.flight_size()),
        Field::Sacked => segments(connection.sacked()),
        Field::Lost => segments(connection.lost()),
        Field::Retrans => segments(connection.resent()),
        Field::Rtt => connection.srtt().unwrap_or_default().as_micros(),
        Field::RttVar => connection.rttvar().as_micros(),
        Field::SndSsthresh => connection.ssthresh().map_or(NO_THRESHOLD, |bytes| bytes / mss),
        Field::SndCwnd => connection.cwnd() / mss,
        Field::TotalRetrans => sent.retransmissions + u64::from(sent.syn_retransmissions),
        Field::BytesAcked => sent.bytes_acked,
        Field::BytesReceived => statistics.bytes_received,
        Field::NotsentBytes => connection.unsent() as u64,
        Field::MinRtt => connection.rtt_min().unwrap_or_default().as_micros(),
        Field::BytesRetrans => sent.bytes_retransmitted,
        Field::DsackDups => sent.dsacks_received.into(),
        Field::SndWnd => connection.peer_window(),
    };
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// `TCP_INFINITE_SSTHRESH`.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

const fn state(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}
