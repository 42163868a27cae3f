//! Bandwidth on demand as DVB-RCS has it (ETSI EN 301 790; Kojo et al. 2005, section 4): a terminal asks the network control centre for
//! capacity and sends in the slots that it is granted.
//!
//! - *CRA*, constant rate: granted in any case, without signalling.
//! - *RBDC*, by rate: the terminal asks for a rate, up to a ceiling; the request is effective until it is updated or times out.
//! - *VBDC*, by volume: the terminal asks for what waits in its MAC buffer; served in the order of requests from what the other two leave.
//!
//! Time is cut into [superframes](Slots). In each a terminal has one opportunity for a request, at the start; the plan for a superframe
//! is made one hop and the time for processing earlier ([`Control`]). So with hops of 250 ms, superframes of 250 ms and processing of as
//! long, what comes into an empty buffer leaves 0.75 to 1 s later. Requests and plans are never lost: they have strong coding of their own.
//!
//! A [`Terminal`]'s MAC buffer lies *below* the link-layer protocol, and is first in, first out: what the protocol sends again queues behind
//! what is there. A protocol with flow control is asked for a frame when the buffer has room; without it frames come as they
//! will, and the buffer drops what it has no room for.
//!
//! Deviations from the standard: rates are asked for in slots a superframe, not in multiples of 2 kbit/s; volumes have no upper limit but
//! the buffer; each terminal has a carrier of its own, so that capacity is counted and slots have no places in common.

mod control;
mod demand;
mod slots;
mod terminal;

use base::units::Size;
use base::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use control::{Control, Grant, Request, Subscription, TerminalId};
pub use slots::Slots;
pub use terminal::{Counters, Cycle, Departure, Terminal};

/// A terminal's share of a network, as a scenario describes it.
///
/// ```toml
/// vbdc = true                    # ask for volume
/// rbdc = "128 kbit/s"            # or for rates up to this
/// cra = "16 kbit/s"              # or be granted this always; any of them together
/// mac-buffer = "14400 B"
/// flow-control = true            # the protocol above waits until the buffer has room
/// network = "beam"               # [dama.beam]; default: one of its own
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "Terminal")]
pub struct Config {
    /// The network whose capacity the terminal shares. Default: one of its own, with the capacity of its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Constant rate that is always granted. Default: none.
    pub cra: Rate,
    /// Highest rate that the terminal requests. Default: none.
    pub rbdc: Rate,
    /// Which rate the terminal requests.
    pub rbdc_request: RateRequest,
    /// Number of superframes for which a rate request is effective, 1 to 15, or 0 for no end. Default: 4; EN 301 790 has 2.
    pub rbdc_timeout: RbdcTimeout,
    /// Whether the terminal requests volume. Default: no.
    pub vbdc: bool,
    /// Size of the MAC buffer in bytes of cell payload. Default: 14,400 (Kojo et al. 2005, section 4).
    pub mac_buffer: Size,
    /// Whether the protocol above waits while the buffer is full. Default: yes.
    pub flow_control: bool,
}

/// Which rate a terminal requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateRequest {
    /// The one at which data came since the last opportunity. Without new data the last request stays as it is; once it has timed out, the
    /// rate that would carry what is left in one superframe.
    #[default]
    Arrivals,
    /// The one that empties the MAC buffer while the request is effective: its fill over the time-out. "The resulting RBDC allocation request
    /// is made for the data in the MAC buffer" (Kojo et al. 2005, section 5).
    Backlog,
}

/// Superframes for which a rate request is effective: 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(extend("minimum" = 0, "maximum" = 15))]
pub struct RbdcTimeout(u32);

/// A number of superframes that is no time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time-out of {0} superframes; allowed are 0 (without end) to 15")]
pub struct NotATimeout(u32);

impl RbdcTimeout {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for RbdcTimeout {
    type Error = NotATimeout;
    fn try_from(superframes: u32) -> Result<Self, NotATimeout> {
        if superframes <= 15 { Ok(Self(superframes)) } else { Err(NotATimeout(superframes)) }
    }
}

impl From<RbdcTimeout> for u32 {
    fn from(timeout: RbdcTimeout) -> Self {
        timeout.0
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            network: None,
            cra: Rate::from_bps(0),
            rbdc: Rate::from_bps(0),
            rbdc_request: RateRequest::default(),
            rbdc_timeout: RbdcTimeout(4),
            vbdc: false,
            mac_buffer: Size(14_400),
            flow_control: true,
        }
    }
}

impl Config {
    /// Whether it may ever send.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.vbdc || self.cra.as_bps() > 0 || self.rbdc.as_bps() > 0
    }
}

/// What terminals share, as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "DamaNetwork")]
pub struct NetworkConfig {
    /// Bits per second, cell headers included. Default: the sum of the terminals' lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Rate>,
    /// How often plans are made and requests sent. Default: 250 ms.
    pub superframe: Duration,
    /// Time that the control centre takes to make a plan. Default: 250 ms.
    pub processing: Duration,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            capacity: None,
            superframe: Duration::from_millis(250),
            processing: Duration::from_millis(250),
        }
    }
}
