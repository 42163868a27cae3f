//! What a scenario or a gateway may say about `harq`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MAX_PACKET;
use crate::arq::{self, Order, Window};
use crate::capabilities::Capabilities;
use crate::limit::Limit;
use crate::line::LineLimits;

use super::code::BLOCK_FIELDS;
use super::header::HEADER_LEN;

/// The parameters of hybrid FEC/ARQ, or of FEC alone if each block is sent only once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", try_from = "Written")]
#[schemars(rename = "Harq", !try_from, default, deny_unknown_fields)]
pub struct Config {
    /// N: fragments per block, 1 to 64. Default: 10 (section IV-C.2).
    pub fragments: Limit<1, MOST_FRAGMENTS, 10>,
    /// K: how many of the fragments are data, 1 to `fragments`; any K that arrive restore the block. Default: 9 (section IV-C.2).
    pub data: Limit<1, MOST_FRAGMENTS, 9>,
    /// Maximum transmissions of a block, 1 to 16; with 1, nothing is acknowledged. Default: 4 (section IV.3: three retries).
    pub transmissions: Limit<1, 16, 4>,
    /// Whether the receiver combines fragments of different transmissions, each of which then has new ones. Default: no, as in the
    /// paper.
    pub combine: bool,
    /// Whether packets are delivered in the order in which they were sent.
    pub ordered: Ordered,
    /// Window: most blocks in flight, 1 to 131072. Default: what the line carries in 8 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// Whether packets are delivered in the order in which they were sent. Default: true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ordered(pub bool);

impl Default for Ordered {
    fn default() -> Self {
        Self(true)
    }
}

/// Fragments with numbers of their own: a number has six bits.
pub(super) const MOST_FRAGMENTS: u32 = 64;

/// The parameters as they are written, each by itself in its range.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
struct Written {
    fragments: Limit<1, MOST_FRAGMENTS, 10>,
    data: Limit<1, MOST_FRAGMENTS, 9>,
    transmissions: Limit<1, 16, 4>,
    combine: bool,
    ordered: Ordered,
    window: Option<Window>,
}

/// Parameters that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// More data than there are fragments.
    #[error("data = {data} of fragments = {fragments}; allowed are values up to fragments")]
    Data {
        /// Fragments with data.
        data: u32,
        /// All fragments.
        fragments: u32,
    },
    /// More fresh fragments than there are numbers.
    #[error("combine with {0} fragments in all transmissions of a block; allowed are up to 64")]
    Fresh(u32),
}

impl TryFrom<Written> for Config {
    type Error = Contradiction;
    fn try_from(written: Written) -> Result<Self, Contradiction> {
        let Written { fragments, data, transmissions, combine, ordered, window } = written;
        let config = Self { fragments, data, transmissions, combine, ordered, window };
        config.check().map(|()| config)
    }
}

impl Config {
    /// Whether the parameters go together.
    ///
    /// # Errors
    /// [`Contradiction`] says which do not.
    pub const fn check(&self) -> Result<(), Contradiction> {
        let (data, fragments) = (self.data.get(), self.fragments.get());
        if data > fragments {
            return Err(Contradiction::Data { data, fragments });
        }
        let all = fragments * self.transmissions.get();
        if self.combine && all > MOST_FRAGMENTS {
            return Err(Contradiction::Fresh(all));
        }
        Ok(())
    }

    /// What the protocol does with these parameters.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: self.repeats(),
            keeps_order: self.ordered.0 || !self.repeats(),
            // What three later blocks have overtaken counts as lost: that is further than carriers reorder.
            needs_order: false,
            // A block may be given up, and all of the packet with it.
            carries_super_segments: false,
            has_classes: false,
            wants_fillers: false,
            several_lines: false,
        }
    }

    /// Whether a block is ever sent again.
    pub(super) const fn repeats(&self) -> bool {
        self.transmissions.get() > 1
    }

    pub(super) const fn order(&self) -> Order {
        if self.ordered.0 { Order::Link } else { Order::None }
    }

    /// Bytes of a packet in a full frame on this line.
    #[must_use]
    pub fn frame_payload(&self, line: &LineLimits) -> usize {
        line.frame_limit().min(MAX_PACKET) - HEADER_LEN
    }

    /// Bytes of a packet in a block of full frames. A block carries one packet at most, a longer one needs several.
    #[must_use]
    pub fn block_payload(&self, line: &LineLimits) -> usize {
        self.data.get() as usize * self.frame_payload(line) - BLOCK_FIELDS
    }

    /// Blocks that may be in flight on this line.
    #[must_use]
    pub fn window(&self, line: &LineLimits) -> u32 {
        arq::window(line, self.block_payload(line), self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        base::config::parse("link.toml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_paper_s_values_are_the_defaults() {
        let config = Config::default();
        assert_eq!((config.fragments.get(), config.data.get(), config.transmissions.get()), (10, 9, 4));
        assert!(!config.combine && config.ordered.0);
        assert_eq!(read(""), Ok(config));
    }

    #[test]
    fn parameters_that_contradict_each_other_are_refused() {
        let error = read("fragments = 8").unwrap_err();
        assert!(error.contains("data = 9 of fragments = 8; allowed are values up to fragments"), "{error}");
        let error = read("combine = true\nfragments = 17").unwrap_err();
        assert!(error.contains("combine with 68 fragments in all transmissions"), "{error}");
        assert!(read("combine = true\nfragments = 16").is_ok());
        assert!(read("data = 10").is_ok() && read("fragments = 64\ntransmissions = 16").is_ok());
    }

    /// 1 Gbit/s over 600 ms, in packets of 1040 bytes.
    #[test]
    fn the_window_fills_a_satellite() {
        let line = LineLimits::new(1440, Some(base::Rate::from_bps(1_000_000_000)));
        assert!(u64::from(Config::default().window(&line)) * 1040 >= 75_000_000);
    }
}
