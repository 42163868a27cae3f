//! A connection's settings as plain data.

mod acknowledging;
mod congestion;
mod ecn;
mod presets;
mod starting;

use core::net::IpAddr;

use base::units::Size;
use base::wire::{ip, tcp};
use base::{Duration, SeqNum};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::ensemble::{EnsembleConfig, Sharing};
pub use acknowledging::DelayedAcks;
pub use congestion::{Congestion, FastConfig, HyblaConfig, SlowStart, VegasConfig};
pub use ecn::EcnUse;
pub use presets::PRESETS;
pub use starting::InitialWindow;

/// How one end of a connection behaves. In TOML every key may be left out; `preset` names the settings, one of
/// [`PRESETS`], that the missing ones are taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Maximum segment size in bytes, 64 to 65495: announced, and the most that is sent if the peer allows it.
    /// As RFC 6691 says it counts no options: with timestamps, segments carry 12 bytes less. By default what an
    /// MTU of 1500 bytes leaves after IP and TCP headers.
    #[serde(deserialize_with = "mss_in_range")]
    pub mss: Option<u16>,
    /// How lost segments are found and repaired.
    pub recovery: Recovery,
    /// Report data that came twice (RFC 2883), where selective acknowledgements are in use.
    pub dsack: bool,
    /// Whether the first two duplicate acknowledgements let new data out (RFC 3042; RFC 6675, 5, step 3).
    pub limited_transmit: bool,
    /// NewReno: which partial acknowledgements restart the retransmission timer (RFC 6582, 3.2, step 3).
    pub partial_acks: PartialAcks,
    /// NewReno: the window when fast recovery ends (RFC 6582, 3.2, step 3); for `immediate` reduction.
    pub exit_window: ExitWindow,
    /// NewReno: after a time-out, take duplicates for a loss where little was acknowledged before them
    /// (RFC 6582, 4.1).
    pub ack_heuristic: bool,
    /// How the window goes down to the controller's during fast recovery.
    pub reduction: Reduction,
    /// What congestion takes its share of: data in flight, or the window, of which less may have been in use.
    pub reduce_from: ReduceFrom,
    /// Whether the first duplicate, and the first two acknowledgements after a retransmission, send an overdue segment
    /// again at once (TCP Vegas: Brakmo and Peterson 1995, 3.1). By default they do for Vegas alone.
    pub fine_grained_expiry: Option<bool>,
    /// Whether a time-out was needed is found out by what new data bring (RFC 5682).
    pub f_rto: ForwardRto,
    /// Whether a time-out was needed is found out by the timestamps (RFC 3522), where these are in use.
    pub eifel_detection: bool,
    /// What to do about a time-out that was not needed.
    pub spurious_response: SpuriousResponse,
    /// Congestion controller.
    pub congestion: Congestion,
    /// How slow start ends, for the controllers that have the usual one: Reno, CUBIC and Westwood.
    pub slow_start: SlowStart,
    /// Whether segments are spaced out over the round trip for controllers that do not ask for it themselves.
    pub pacing: bool,
    /// What Vegas aims at.
    pub vegas: VegasConfig,
    /// What FAST aims at, and how fast.
    pub fast: FastConfig,
    /// Whom Hybla imitates.
    pub hybla: HyblaConfig,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnUse,
    /// Window at the start, and again after an idle time (`idle-restart`).
    pub initial_window: InitialWindow,
    /// Slow start threshold at the start; by default there is none (RFC 5681, 3.1).
    pub initial_ssthresh: Option<Size>,
    /// Segments that one acknowledgement can open the window by in slow start: L of RFC 3465. 1 in RFC 5681 (3.1).
    #[serde(deserialize_with = "one_or_more")]
    pub byte_counting_limit: u32,
    /// Whether a sender that was idle for a retransmission time-out starts again from the initial window
    /// (RFC 5681, 4.1).
    pub idle_restart: bool,
    /// Retransmission time-out before the first round-trip sample. RFC 6298 (2.1): 1 s; 3 s in RFC 1122 and Linux 2.4.
    #[serde(deserialize_with = "timeout_in_range")]
    pub initial_rto: Duration,
    /// Least retransmission time-out. RFC 6298 (2.4): 1 s; 200 ms in Linux.
    #[serde(deserialize_with = "timeout_in_range")]
    pub min_rto: Duration,
    /// Most that back-off makes of the time-out. RFC 6298 (2.5): 60 s or more; 120 s in Linux.
    #[serde(deserialize_with = "timeout_in_range")]
    pub max_rto: Duration,
    /// Least that the time-out exceeds the smoothed round-trip time: G of RFC 6298 (2.3). Linux has its 200 ms here.
    pub rto_margin: Duration,
    /// How the time-out follows from round-trip samples.
    pub rto_estimator: RtoEstimator,
    /// Retransmissions of a SYN or SYN-ACK before the attempt fails. 6 in Linux (127 s).
    pub syn_retries: u32,
    /// Consecutive time-outs without progress before the connection fails; R2 of RFC 1122 (4.2.3.5). 15 in Linux.
    pub data_retries: u32,
    /// Time without progress on sent data before the connection fails (RFC 9293, 3.8.3); by default only
    /// `data_retries` counts.
    pub user_timeout: Option<Duration>,
    /// How long TIME-WAIT lasts, and how long any connection can be asked for statistics after it ended.
    /// 2 MSL is 4 min in RFC 9293; 60 s in Linux.
    pub time_wait: Duration,
    /// Whether acknowledgements wait for a second segment (RFC 5681, 4.2).
    pub delayed_acks: DelayedAcks,
    /// How long they wait, with `quick-acks` at least. At most 500 ms (RFC 1122, 4.2.3.2); 40 ms in Linux, 200 ms in BSD.
    pub delayed_ack_timeout: Duration,
    /// Nagle's algorithm (RFC 1122, 4.2.3.4): small segments wait while data is unacknowledged.
    pub nagle: bool,
    /// Offer window scaling (RFC 7323, 2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323, 3): round-trip samples on retransmitted data, and PAWS.
    pub timestamps: bool,
    /// Receive buffer, and so the largest window. Memory is taken as data come.
    #[serde(deserialize_with = "buffer_in_range")]
    pub receive_buffer: Size,
    /// Send buffer: data that was written and is not yet acknowledged. Memory is taken as data come.
    #[serde(deserialize_with = "buffer_in_range")]
    pub send_buffer: Size,
    /// Half-open connections that a listener holds; further SYNs are dropped and counted.
    #[serde(deserialize_with = "one_or_more")]
    pub backlog: u32,
    /// What connections to one destination share.
    pub sharing: Sharing,
    /// The parameters of `sharing`.
    pub ensemble: EnsembleConfig,
    /// The initial sequence number, for tests of its wrap; by default chosen as in RFC 6528.
    #[serde(skip)]
    pub initial_sequence: Option<SeqNum>,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: None,
            recovery: Recovery::Sack,
            dsack: true,
            limited_transmit: true,
            partial_acks: PartialAcks::Impatient,
            exit_window: ExitWindow::FlightSize,
            ack_heuristic: false,
            reduction: Reduction::Immediate,
            reduce_from: ReduceFrom::FlightSize,
            fine_grained_expiry: None,
            f_rto: ForwardRto::Off,
            eifel_detection: false,
            spurious_response: SpuriousResponse::Halve,
            congestion: Congestion::Reno,
            slow_start: SlowStart::Standard,
            pacing: false,
            vegas: VegasConfig::default(),
            fast: FastConfig::default(),
            hybla: HyblaConfig::default(),
            ecn: EcnUse::Off,
            initial_window: InitialWindow::Segments(2),
            initial_ssthresh: None,
            byte_counting_limit: 1,
            idle_restart: true,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            rto_margin: Duration::from_millis(200),
            rto_estimator: RtoEstimator::Rfc6298,
            syn_retries: 6,
            data_retries: 15,
            user_timeout: None,
            time_wait: Duration::from_secs(60),
            delayed_acks: DelayedAcks::On,
            delayed_ack_timeout: Duration::from_millis(40),
            nagle: true,
            window_scaling: true,
            timestamps: true,
            receive_buffer: Size(256 * 1024),
            send_buffer: Size(512 * 1024),
            backlog: 128,
            sharing: Sharing::None,
            ensemble: EnsembleConfig::default(),
            initial_sequence: None,
        }
    }
}

/// How lost segments are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// RFC 5681 (3.2): the first new acknowledgement ends fast recovery; selective acknowledgements are not negotiated.
    Reno,
    /// RFC 6582; selective acknowledgements are not negotiated.
    #[serde(rename = "newreno")]
    NewReno,
    /// RFC 6675; NewReno if the peer does not know selective acknowledgements.
    Sack,
    /// Forward acknowledgement as in Linux 2.4; NewReno likewise.
    Fack,
    /// RACK-TLP (RFC 8985), as in Linux; NewReno likewise.
    Rack,
}

impl Recovery {
    /// Whether selective acknowledgements are offered.
    #[must_use]
    pub const fn uses_sack(self) -> bool {
        !matches!(self, Self::Reno | Self::NewReno)
    }
}

/// Which partial acknowledgements restart the retransmission timer (RFC 6582, 3.2, step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// The first alone: many losses in a window end in a time-out and slow start.
    Impatient,
    /// Each: a loss a round trip is repaired, however many there are.
    SlowButSteady,
}

/// NewReno's window when fast recovery ends (RFC 6582, 3.2, step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitWindow {
    /// Option 1: min(ssthresh, max(`FlightSize`, SMSS) + SMSS), which prevents a burst.
    FlightSize,
    /// Option 2: ssthresh.
    Ssthresh,
}

/// How the window goes down to the controller's during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// At once; without selective acknowledgements, duplicates inflate it (RFC 5681, 3.2; RFC 6582; RFC 6675).
    Immediate,
    /// In proportion to what is delivered (RFC 9937).
    Prr,
    /// By a segment for every two acknowledgements, as Linux 2.4 did.
    RateHalving,
}

/// Detection of time-outs that were not needed (RFC 5682).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardRto {
    /// None.
    Off,
    /// From cumulative acknowledgements (section 2).
    Basic,
    /// From selective ones (section 3); basic if the peer does not know them.
    Sack,
}

/// What to do about a time-out that was not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpuriousResponse {
    /// Window and threshold become half of what was outstanding: as conservative as after a loss.
    Halve,
    /// Window, threshold and timer as before, as RFC 4015 says.
    Eifel,
    /// Window and threshold stay as the time-out made them; nothing is sent again.
    None,
}

/// What congestion takes its share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReduceFrom {
    /// `FlightSize` (RFC 5681, 3.1, equation 4; RFC 9438, 4.6).
    FlightSize,
    /// cwnd, as Linux: where the peer's window held data back, it is larger.
    Cwnd,
}

/// How the retransmission time-out follows from round-trip samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RtoEstimator {
    /// RFC 6298.
    Rfc6298,
    /// Linux since 2.4: the variation is the largest of a round trip and falls slowly; `rto-margin` is its floor.
    Linux,
}

impl TcpConfig {
    /// The MSS to announce to a peer at `remote`.
    #[must_use]
    pub fn mss_for(&self, remote: IpAddr) -> u16 {
        self.mss.unwrap_or((ETHERNET_MTU - ip::header_len_for(remote) - tcp::HEADER_LEN) as u16)
    }

    /// Whether overdue segments are looked for: what `fine_grained_expiry` says, or else whether Vegas, which it is a
    /// part of, is the controller. Where STCP is, `congestion` is not.
    #[must_use]
    pub fn expires_finely(&self) -> bool {
        let vegas = self.congestion == Congestion::Vegas && self.sharing != Sharing::Stcp;
        self.fine_grained_expiry.unwrap_or(vegas)
    }
}

/// Bytes of the IP packets that a connection assumes to pass when nobody says otherwise.
const ETHERNET_MTU: usize = 1500;
/// Bytes of the least MSS: room for data beside 40 bytes of options.
const MIN_MSS: u16 = 64;
/// Bytes of the largest MSS: what the largest IPv4 packet leaves after IP and TCP headers.
const MAX_MSS: u16 = 65_495;
/// The least retransmission time-out that may be configured, so that time passes between two.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// Bytes of the largest buffer: a window of 2^30 (RFC 7323, 2.3).
const MAX_BUFFER: u64 = 1 << 30;

fn mss_in_range<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    match Option::<u16>::deserialize(deserializer)? {
        Some(mss) if !(MIN_MSS..=MAX_MSS).contains(&mss) => {
            Err(de::Error::custom(format!("an MSS of {mss} bytes; allowed are {MIN_MSS} to {MAX_MSS}")))
        }
        mss => Ok(mss),
    }
}

fn timeout_in_range<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let timeout = Duration::deserialize(deserializer)?;
    if timeout < MIN_TIMEOUT {
        return Err(de::Error::custom(format!(
            "a time-out of {timeout}; allowed are {MIN_TIMEOUT} and more"
        )));
    }
    Ok(timeout)
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(de::Error::custom("0 is too few; allowed are 1 and more")),
        count => Ok(count),
    }
}

fn buffer_in_range<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
    let size = Size::deserialize(deserializer)?;
    match size.0 {
        1..=MAX_BUFFER => Ok(size),
        _ => Err(de::Error::custom(format!("a buffer of {size}; allowed are 1 B to 1 GiB"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::config;

    #[test]
    fn an_empty_table_is_the_default() {
        assert_eq!(config::parse::<TcpConfig>("t", ""), Ok(TcpConfig::default()));
    }

    #[test]
    fn values_read_as_written() {
        let text = "recovery = \"newreno\"\nmss = 512\ninitial-rto = \"3 s\"\nreceive-buffer = \"64 KiB\"\nnagle = false";
        let read: TcpConfig = config::parse("t", text).unwrap();
        assert_eq!((read.recovery, read.mss, read.nagle), (Recovery::NewReno, Some(512), false));
        assert_eq!((read.initial_rto, read.receive_buffer), (Duration::from_secs(3), Size(65_536)));
    }

    #[test]
    fn recovery_reads_as_written() {
        let text = "recovery = \"rack\"\nlimited-transmit = false\ndsack = false\npartial-acks = \"slow-but-steady\"\n\
            exit-window = \"ssthresh\"\nack-heuristic = true\nreduction = \"rate-halving\"\nf-rto = \"sack\"\n\
            eifel-detection = true\nspurious-response = \"eifel\"\nfine-grained-expiry = true\n\
            rto-estimator = \"linux\"";
        let expected = TcpConfig {
            recovery: Recovery::Rack,
            limited_transmit: false,
            dsack: false,
            partial_acks: PartialAcks::SlowButSteady,
            exit_window: ExitWindow::Ssthresh,
            ack_heuristic: true,
            reduction: Reduction::RateHalving,
            f_rto: ForwardRto::Sack,
            eifel_detection: true,
            spurious_response: SpuriousResponse::Eifel,
            fine_grained_expiry: Some(true),
            rto_estimator: RtoEstimator::Linux,
            ..TcpConfig::default()
        };
        assert_eq!(config::parse("t", text), Ok(expected));
        let unknown = config::parse::<TcpConfig>("t", "recovery = \"tahoe\"").unwrap_err().to_string();
        for name in ["reno", "newreno", "sack", "fack", "rack"] {
            assert!(unknown.contains(name), "{unknown}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_place() {
        for (text, complaint) in [
            ("max-rto = \"0 s\"", "t:1: max-rto = \"0 s\": a time-out of 0 s; allowed are 1 ms and more"),
            ("mss = 65496", "t:1: mss = 65496: an MSS of 65496 bytes; allowed are 64 to 65495"),
            ("backlog = 0", "t:1: backlog = 0: 0 is too few; allowed are 1 and more"),
            ("mss = 10", "t:1: mss = 10: an MSS of 10 bytes; allowed are 64 to 65495"),
            (
                "initial-window = 0",
                "t:1: initial-window = 0: 0 is no window; allowed is a number of segments from 1 on, or \"rfc3390\"",
            ),
            (
                "initial-window = \"iw10\"",
                "t:1: initial-window = \"iw10\": \"iw10\" is no window; allowed is a number of segments from 1 on, or \"rfc3390\"",
            ),
            (
                "receive-buffer = \"2 GiB\"",
                "t:1: receive-buffer = \"2 GiB\": a buffer of 2 GiB; allowed are 1 B to 1 GiB",
            ),
        ] {
            assert_eq!(config::parse::<TcpConfig>("t", text).unwrap_err().to_string(), complaint);
        }
        let unknown = config::parse::<TcpConfig>("t", "cwnd = 3").unwrap_err().to_string();
        assert!(unknown.contains("unknown field `cwnd`"), "{unknown}");
    }

    #[test]
    fn the_default_mss_fills_an_ethernet_frame() {
        let config = TcpConfig::default();
        assert_eq!(config.mss_for("10.0.0.1".parse().unwrap()), 1460);
        assert_eq!(config.mss_for("fd00::1".parse().unwrap()), 1440);
    }
}
