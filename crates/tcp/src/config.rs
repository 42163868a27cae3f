//! A connection's settings as plain data: a table for each concern, one a file.

mod acknowledgements;
mod congestion;
mod ecn;
mod fec;
mod limits;
mod path_mtu;
mod presets;
pub(crate) mod range;
mod recovery;
mod rto;
mod window;

use core::net::IpAddr;

use base::SeqNum;
use base::wire::{ip, tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ensemble::{Sharing, SharingConfig};
pub use acknowledgements::{AcknowledgementConfig, DelayedAcks};
pub use congestion::{
    Congestion, CubicConfig, CubicVariant, FastConfig, HyblaConfig, SlowStart, VegasConfig,
};
pub use ecn::EcnUse;
pub use fec::{Estimator, FecConfig, Layout, RepairRule};
pub use limits::LimitsConfig;
pub use path_mtu::PathMtu;
pub use presets::DIALECT;
pub use recovery::{
    ExitWindow, ForwardRto, PartialAcks, Recovery, RecoveryConfig, ReduceFrom, Reduction, SpuriousResponse,
};
pub use rto::{RtoConfig, RtoEstimator};
pub use window::{AfterIdle, InUse, InitialWindow, WindowConfig};

/// How one end of a connection behaves. In TOML every key may be left out; `preset` names the settings, one of
/// those of [`DIALECT`], that the missing ones are taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(
    !remote,
    rename = "Tcp",
    description = "How one end of a connection behaves. Keys that are missing are taken from the preset, if one is named, or else have their defaults.",
    transform = presets::complete
)]
pub struct TcpConfig {
    /// Maximum segment size in bytes, 64 to 65495: announced, and the most that is sent if the peer allows it.
    /// As RFC 6691 says it counts no options: with timestamps, segments carry 12 bytes less. By default what an
    /// MTU of 1500 bytes leaves after IP and TCP headers.
    #[serde(deserialize_with = "range::mss")]
    #[schemars(range(min = range::MIN_MSS, max = range::MAX_MSS))]
    pub mss: Option<u16>,
    /// How a sender finds out that packets are too big for the path.
    pub path_mtu: PathMtu,
    /// Nagle's algorithm (RFC 1122, 4.2.3.4): small segments wait while data is unacknowledged.
    pub nagle: bool,
    /// New data leave in bursts, as Linux hands them to a device that cuts them up: the last segment of each says PSH, which a receiver
    /// with `acknowledgements.pushed` does not let wait; and an odd segment may wait for the next acknowledgement.
    pub offload: bool,
    /// Offer timestamps (RFC 7323, 3): round-trip samples on retransmitted data, and PAWS.
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnUse,
    /// Whether segments are spaced out over the round trip for controllers that do not ask for it themselves.
    pub pacing: bool,
    /// Congestion controller, and its parameters.
    pub congestion: Congestion,
    /// An erasure code across segments, and segments that get smaller with the window.
    pub fec: FecConfig,
    /// Losses and needless time-outs.
    pub recovery: RecoveryConfig,
    /// Congestion window, receive window and buffers.
    pub window: WindowConfig,
    /// When received data are acknowledged.
    pub acknowledgements: AcknowledgementConfig,
    /// The retransmission time-out.
    pub rto: RtoConfig,
    /// When to give up.
    pub limits: LimitsConfig,
    /// What connections to one destination share.
    pub sharing: SharingConfig,
    /// Bytes of the longest IP packet, where that is not an Ethernet's, 576 or more; not in TOML.
    #[serde(skip)]
    pub mtu: Option<u16>,
    /// Bytes of the longest segment that is taken from a proxy of ours, and leave for it to send data on its SYN (as RFC 7413
    /// has it, without cookies: who shakes hands through a gateway's session has proved who it is); not in TOML.
    #[serde(skip)]
    pub proxy_mss: Option<u16>,
    /// That a proxy of ours is the peer is known, so SYNs say so however many are lost; not in TOML.
    #[serde(skip)]
    pub proxy_is_known: bool,
    /// What takes the place of `rto` and `limits` with a peer that proves to be no proxy of ours; not in TOML.
    #[serde(skip)]
    pub unpaired: Option<(RtoConfig, LimitsConfig)>,
    /// The initial sequence number, for tests of its wrap; by default chosen as in RFC 6528.
    #[serde(skip)]
    pub initial_sequence: Option<SeqNum>,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: None,
            path_mtu: PathMtu::Icmp,
            nagle: true,
            offload: false,
            timestamps: true,
            ecn: EcnUse::Off,
            pacing: false,
            congestion: Congestion::Reno,
            fec: FecConfig::default(),
            recovery: RecoveryConfig::default(),
            window: WindowConfig::default(),
            acknowledgements: AcknowledgementConfig::default(),
            rto: RtoConfig::default(),
            limits: LimitsConfig::default(),
            sharing: SharingConfig::default(),
            mtu: None,
            proxy_mss: None,
            proxy_is_known: false,
            unpaired: None,
            initial_sequence: None,
        }
    }
}

impl TcpConfig {
    /// These settings after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The MSS to announce to a peer at `remote`.
    #[must_use]
    pub fn mss_for(&self, remote: IpAddr) -> u16 {
        let mtu = self.mtu.map_or(ETHERNET_MTU, usize::from);
        self.mss.unwrap_or((mtu - ip::header_len_for(remote) - tcp::HEADER_LEN) as u16)
    }

    /// Whether overdue segments are looked for: what `fine-grained-expiry` says, or else whether Vegas, which it is a
    /// part of, is the controller. Where STCP is, `congestion` is not.
    #[must_use]
    pub fn expires_finely(&self) -> bool {
        let vegas = self.sharing.policy != Sharing::Stcp && matches!(self.congestion, Congestion::Vegas(_));
        self.recovery.fine_grained_expiry.unwrap_or(vegas)
    }
}

/// Bytes of the IP packets that a connection assumes to pass when nobody says otherwise.
const ETHERNET_MTU: usize = 1500;

#[cfg(test)]
mod tests {
    use super::*;
    use base::units::Size;
    use base::{Duration, config};

    #[test]
    fn an_empty_table_is_the_default() {
        assert_eq!(config::parse::<TcpConfig>("t", ""), Ok(TcpConfig::default()));
    }

    #[test]
    fn values_read_as_written() {
        let text = "recovery = \"newreno\"\nmss = 512\nrto.initial = \"3 s\"\nnagle = false\n\
                    acknowledgements = \"off\"\n[window]\nreceive-buffer = \"64 KiB\"";
        let read: TcpConfig = config::parse("t", text).unwrap();
        assert_eq!((read.recovery.scheme, read.mss, read.nagle), (Recovery::NewReno, Some(512), false));
        assert_eq!((read.rto.initial, read.window.receive_buffer), (Duration::from_secs(3), Size(65_536)));
        assert_eq!(read.acknowledgements.delay, DelayedAcks::Off);
    }

    #[test]
    fn recovery_reads_as_written() {
        let text = "rto.estimator = \"linux\"\nacknowledgements.dsack = false\n\
            [recovery]\nscheme = \"rack\"\nlimited-transmit = false\npartial-acks = \"slow-but-steady\"\n\
            exit-window = \"ssthresh\"\nack-heuristic = true\nreduction = \"rate-halving\"\nf-rto = \"sack\"\n\
            eifel-detection = true\nundo = true\nspurious-response = \"eifel\"\nfine-grained-expiry = true\nexit-growth = true";
        let recovery = RecoveryConfig {
            scheme: Recovery::Rack,
            limited_transmit: false,
            partial_acks: PartialAcks::SlowButSteady,
            exit_window: ExitWindow::Ssthresh,
            ack_heuristic: true,
            reduction: Reduction::RateHalving,
            reduce_from: ReduceFrom::FlightSize,
            second_reduction: true,
            exit_growth: true,
            f_rto: ForwardRto::Sack,
            eifel_detection: true,
            undo: true,
            spurious_response: SpuriousResponse::Eifel,
            fine_grained_expiry: Some(true),
        };
        let expected = TcpConfig { recovery, ..TcpConfig::default() }.with(|it| {
            it.acknowledgements.dsack = false;
            it.rto.estimator = RtoEstimator::Linux;
        });
        assert_eq!(config::parse("t", text), Ok(expected));
        let unknown = config::parse::<TcpConfig>("t", "recovery = \"tahoe\"").unwrap_err().to_string();
        for name in ["reno", "newreno", "sack", "fack", "rack"] {
            assert!(unknown.contains(name), "{unknown}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_place() {
        for (text, complaint) in [
            ("rto.max = \"0 s\"", "t:1: rto.max = \"0 s\": a time-out of 0 s; allowed are 1 ms or more"),
            ("mss = 65496", "t:1: mss = 65496: an MSS of 65496 bytes; allowed are 64 to 65495"),
            ("limits.backlog = 0", "t:1: limits.backlog = 0: 0 is too few; allowed are 1 or more"),
            (
                "limits.keep-alive = \"0 s\"",
                "t:1: limits.keep-alive = \"0 s\": a keep-alive after 0 s; allowed are 1 s or more",
            ),
            ("fec.min-mss = 63", "t:1: fec.min-mss = 63: 63 bytes; allowed are 64 to 65495"),
            ("fec.min-mss = 65496", "t:1: fec.min-mss = 65496: 65496 bytes; allowed are 64 to 65495"),
            ("mss = 10", "t:1: mss = 10: an MSS of 10 bytes; allowed are 64 to 65495"),
            (
                "[window]\ninitial = 0",
                "t:2: initial = 0: 0 is not a window; allowed is a number of segments from 1 on, or \"rfc3390\"",
            ),
            (
                "[window]\ninitial = \"iw10\"",
                "t:2: initial = \"iw10\": \"iw10\" is not a window; allowed is a number of segments from 1 on, or \"rfc3390\"",
            ),
            (
                "window.receive-buffer = \"2 GiB\"",
                "t:1: window.receive-buffer = \"2 GiB\": a buffer of 2 GiB; allowed are 1 B to 1 GiB",
            ),
        ] {
            assert_eq!(config::parse::<TcpConfig>("t", text).unwrap_err().to_string(), complaint);
        }
        let unknown = config::parse::<TcpConfig>("t", "cwnd = 3").unwrap_err().to_string();
        assert!(unknown.contains("unknown key `cwnd`"), "{unknown}");
    }

    /// What was one flat table is told from a typing error; what is written instead exists.
    #[test]
    fn a_key_of_old_names_its_successor() {
        let complaint =
            config::parse::<TcpConfig>("site.toml", "nagle = true\nmin-rto = \"1 s\"").unwrap_err();
        let expected = "site.toml:2: min-rto = \"1 s\": `min-rto` has moved; write `rto.min` instead";
        assert_eq!(complaint.to_string(), expected);
        for (old, new) in DIALECT.moved {
            let complaint = config::parse::<TcpConfig>("t", &format!("{old} = 3")).unwrap_err().to_string();
            assert!(complaint.ends_with(&format!("`{old}` has moved; write `{new}` instead")), "{complaint}");
            let unknown = config::parse::<TcpConfig>("t", &format!("{new} = [[]]")).unwrap_err().to_string();
            assert!(!unknown.contains("unknown"), "{unknown}");
        }
    }

    #[test]
    fn the_default_mss_fills_an_ethernet_frame() {
        let config = TcpConfig::default();
        assert_eq!(config.mss_for("10.0.0.1".parse().unwrap()), 1460);
        assert_eq!(config.mss_for("fd00::1".parse().unwrap()), 1440);
    }

    #[test]
    fn a_keep_alive_reads_as_written() {
        for (text, idle) in [("2 h", Duration::from_secs(7200)), ("1 s", Duration::from_secs(1))] {
            let text = format!("limits.keep-alive = \"{text}\"");
            assert_eq!(config::parse::<TcpConfig>("t", &text).map(|it| it.limits.keep_alive), Ok(Some(idle)));
        }
    }

    #[test]
    fn only_vegas_itself_expires_finely() {
        let vegas =
            TcpConfig { congestion: Congestion::Vegas(VegasConfig::default()), ..TcpConfig::default() };
        let shared = vegas.clone().with(|it| it.sharing.policy = Sharing::Stcp);
        let cases = [(vegas, true), (shared, false), (TcpConfig::default(), false)];
        for (config, expected) in cases {
            assert_eq!(config.expires_finely(), expected, "{config:?}");
        }
    }
}
