//! Links of a scenario that their protocol cannot fill.

use base::Rate;
use channel::duplex;
use link::{Edge, LineLimits, efl};

use super::{Framing, Link, Suite};

impl Suite {
    /// Each link that its protocol cannot fill, by name and scheme, as of the rates at the start.
    #[must_use]
    pub fn edges(&self) -> Vec<(&str, &str, Edge)> {
        let links = self.schemes.iter().flat_map(|(scheme, scenario)| {
            scenario.link.iter().map(move |(name, link)| (name.as_str(), scheme.as_str(), link))
        });
        links.filter_map(|(name, scheme, link)| Some((name, scheme, link.edge()?))).collect()
    }
}

impl Link {
    /// What keeps the protocol from filling the link's faster direction, if something does.
    fn edge(&self) -> Option<Edge> {
        let faster = |channel: &duplex::Config| channel.rate.max(channel.up_rate.unwrap_or(channel.rate));
        let rate = self.channels().fold(0, |sum: u64, channel| sum.saturating_add(faster(channel).as_bps()));
        let delay = self.channels().map(duplex::Config::greatest_delay).max()?;
        let line = LineLimits::new(self.framing.frame_limit(), Some(Rate::from_bps(rate)));
        self.protocol.as_ref()?.edge(&line, delay.saturating_mul(2))
    }
}

impl Framing {
    /// Bytes of the longest frame.
    pub(crate) const fn frame_limit(self) -> usize {
        match self {
            Self::Ideal => usize::MAX,
            Self::Efl | Self::EncryptedEfl => efl::MAX_BODY,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_demo_is_within_its_edge_and_a_faster_link_is_not() {
        let edges = |rate: &str| {
            let text = include_str!("../../../../scenarios/demo/download.toml");
            let change = format!("link.satellite.channel.rate=\"{rate}\"").parse().unwrap();
            let suite = Suite::parse("download.toml", text, Path::new(""), &[change]).unwrap();
            suite.edges().iter().map(|(link, _, edge)| format!("{link}: {edge}")).collect::<Vec<_>>()
        };
        assert_eq!(edges("256 kbit/s"), [""; 0]);
        let said = edges("20 Mbit/s");
        assert!(
            !said.is_empty() && said[0].starts_with("satellite: cotmll-thesis carries at most "),
            "{said:?}"
        );
    }
}
