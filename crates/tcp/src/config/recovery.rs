//! `[tcp.recovery]`: how losses and needless time-outs are found, and what follows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loss recovery. In TOML `recovery = "sack"` is short for its `scheme` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct RecoveryConfig {
    /// How lost segments are found and repaired.
    pub scheme: Recovery,
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
    /// Whether a retransmission that is lost in fast recovery reduces the threshold a second time (RFC 5681, 4.3), whether RACK or a time-out finds it.
    pub second_reduction: bool,
    /// Whether the acknowledgement that ends fast recovery, or that shows a recovery or a time-out to have been needless, also opens the window
    /// by what it delivers, as in Linux (`tcp_cong_control`) with selective acknowledgements. RFC 5681 (3.2, step 6) has it set the window,
    /// and leaves the rest open.
    pub exit_growth: bool,
    /// Whether the first duplicate, and the first two acknowledgements after a retransmission, send an overdue segment
    /// again at once (TCP Vegas: Brakmo and Peterson 1995, 3.1). By default they do for Vegas alone.
    pub fine_grained_expiry: Option<bool>,
    /// Whether to detect unneeded time-outs by the acknowledgements of new data (RFC 5682).
    pub f_rto: ForwardRto,
    /// Whether to detect unneeded time-outs by timestamps (RFC 3522), where these are in use.
    pub eifel_detection: bool,
    /// Whether to detect a fast recovery that was not needed: by the timestamps (RFC 3522) and by reports that what was sent
    /// again came twice (RFC 3708); the latter for time-outs too.
    pub undo: bool,
    /// What to do about a time-out or a fast recovery that was not needed.
    pub spurious_response: SpuriousResponse,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            scheme: Recovery::Sack,
            limited_transmit: true,
            partial_acks: PartialAcks::Impatient,
            exit_window: ExitWindow::FlightSize,
            ack_heuristic: false,
            reduction: Reduction::Immediate,
            reduce_from: ReduceFrom::FlightSize,
            second_reduction: true,
            exit_growth: false,
            fine_grained_expiry: None,
            f_rto: ForwardRto::Off,
            eifel_detection: false,
            undo: false,
            spurious_response: SpuriousResponse::Halve,
        }
    }
}

/// How lost segments are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAcks {
    /// The first alone: many losses in a window end in a time-out and slow start.
    Impatient,
    /// Each: a loss a round trip is repaired, however many there are.
    SlowButSteady,
}

/// NewReno's window when fast recovery ends (RFC 6582, 3.2, step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitWindow {
    /// Option 1: min(ssthresh, max(`FlightSize`, SMSS) + SMSS), which prevents a burst.
    FlightSize,
    /// Option 2: ssthresh.
    Ssthresh,
}

/// How the window goes down to the controller's during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// At once; without selective acknowledgements, duplicates inflate it (RFC 5681, 3.2; RFC 6582; RFC 6675).
    Immediate,
    /// In proportion to what is delivered (RFC 9937).
    Prr,
    /// By a segment for every two acknowledgements, as Linux 2.4 did.
    RateHalving,
}

/// What congestion takes its share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReduceFrom {
    /// `FlightSize` (RFC 5681, 3.1, equation 4; RFC 9438, 4.6).
    FlightSize,
    /// cwnd, as Linux: where the peer's window held data back, it is larger.
    Cwnd,
}

/// Detection of time-outs that were not needed (RFC 5682).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardRto {
    /// None.
    Off,
    /// From cumulative acknowledgements (section 2).
    Basic,
    /// From selective ones (section 3); basic if the peer does not know them.
    Sack,
}

/// What to do about a time-out, or a fast recovery, that was not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpuriousResponse {
    /// Window and threshold become half of what was outstanding: as conservative as after a loss. Fast recovery has
    /// done that.
    Halve,
    /// Window, threshold and timer as before, as RFC 4015 says.
    Eifel,
    /// Window and threshold as before, the timer as the samples make it: `tcp_undo_cwr` of Linux 2.4.
    Undo,
    /// Window and threshold as before without a bound on what goes out at once, the timer as the samples make it:
    /// `tcp_undo_cwnd_reduction` of today's Linux.
    Restore,
    /// Window and threshold stay as the time-out made them; nothing is sent again.
    None,
}
