//! What a scenario or a gateway may say about `cotmll-thesis`.

use base::Duration;
use base::units::above_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::limit::Limit;

/// The parameters of COTMLL as in Faulkner's thesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(rename = "CotmllThesis")]
pub struct Config {
    /// Window: most frames in flight, 1 to 512. Default: 512, the thesis's baseline.
    pub window: Limit<1, 512, 512>,
    /// Whether packets are delivered in the order in which they were sent. Default: true.
    pub ordered: bool,
    /// Bytes of payload in a full frame. Default: 487, which gives 3968 bits with trailer and framing (Faulkner 2004, 2.3).
    pub frame_payload: Limit<1, 65_000, 487>,
    /// Time after the first transmission of a packet's first frame at which the packet is dropped. Choose several times what its
    /// frames take on the line. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// Maximum transmissions per frame, fillers included; after that its packet is dropped. Default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Limit<1, 1_000_000, 10>>,
    /// Which transmission of a block's frames decides which frames before it are flagged as lost. Default: the latest.
    pub flag_against: FlagAgainst,
    /// The moment whose state a frame's acknowledgement reports. Default: when its trailer leaves.
    pub acknowledge: Acknowledge,
    /// Which block beyond a gap the receiver reports. Default: the first.
    pub block: ToldBlock,
    /// Which acknowledgement the receiver sends first when a gap opens. Default: the block.
    #[serde(skip_serializing_if = "is_default")]
    pub gap_opens_with: GapOpensWith,
}

impl Config {
    /// What COTMLL does with these parameters. A packet is given up only where persistence is limited.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: true,
            keeps_order: self.ordered,
            needs_order: true,
            carries_super_segments: true,
            has_classes: false,
            wants_fillers: true,
            several_lines: false,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: Limit::default(),
            ordered: true,
            frame_payload: Limit::default(),
            persistence: None,
            attempts: None,
            flag_against: FlagAgainst::default(),
            acknowledge: Acknowledge::default(),
            block: ToldBlock::default(),
            gap_opens_with: GapOpensWith::default(),
        }
    }
}

/// How long a packet is sent again; more than no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Duration", into = "Duration")]
#[schemars(transform = above_zero)]
pub struct Persistence(Duration);

/// No time is no persistence: every packet would be given up once its first frame was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("0 s is out of range; allowed is any longer time, or no persistence at all for no limit")]
pub struct NoPersistence;

impl Persistence {
    /// The time.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<Duration> for Persistence {
    type Error = NoPersistence;
    fn try_from(time: Duration) -> Result<Self, NoPersistence> {
        if time.is_zero() { Err(NoPersistence) } else { Ok(Self(time)) }
    }
}

impl From<Persistence> for Duration {
    fn from(persistence: Persistence) -> Self {
        persistence.0
    }
}

/// Which transmission of the frames that a block newly acknowledges is compared with those before the block.
///
/// The text does not say. Only the sender can choose, so the lab may compare: a frame of kind
/// [`FrameKind::Retransmission`](crate::endpoint::FrameKind::Retransmission) is a flag that was acted upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlagAgainst {
    /// Finds losses soon after a blockage; some flags are false once frames have been cycled.
    #[default]
    Latest,
    /// No flag is false on a line that keeps order; hardly any is set after a blockage.
    First,
}

/// The moment that a frame's acknowledgement reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// When the trailer leaves: just in time (Faulkner 2004, 2.3).
    #[default]
    Trailer,
    /// When the frame starts, as a header would. For comparison.
    Start,
}

/// Which of several blocks beyond a gap a receiver reports. A trailer has room for one.
///
/// Any sender accepts both; the receiver alone chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToldBlock {
    /// The first (Faulkner 2004, 2.3). What is lost beyond it stays unknown until the gap before it is closed, and so does a
    /// retransmission that is lost too.
    #[default]
    First,
    /// The one with the latest frame (ours), so that every frame is reported at once. Frames of blocks that were never reported
    /// then look lost, and are sent twice.
    Latest,
}

/// Which of the two acknowledgements that alternate while there is a gap is sent first.
///
/// The thesis does not say (Faulkner 2004, 2.3). Any sender accepts both; the receiver alone chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GapOpensWith {
    /// The block, which reveals losses one frame earlier. It does not say where the gap starts, so frames that arrived in order
    /// since the last cumulative acknowledgement are taken for lost too.
    #[default]
    Block,
    /// The cumulative one, which says where the gap starts.
    Cumulative,
}

/// Left out where it says nothing, so that what is written stays as it was.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
