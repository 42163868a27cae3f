//! What may be between the hosts of a testbed that a benchmark builds.

use base::Rate;
use base::config::{self, ConfigError};
use field::testbed;
use tunnel::config::{Link, LinkRate};

/// Which rate gateways are configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GatewayRate {
    /// None: they measure it.
    Auto,
    /// The line's rate.
    Line,
    /// No limit: they send as fast as the carrier accepts.
    Max,
}

impl GatewayRate {
    /// The `rate` of a gateway in front of a line of this rate; `None` if that is zero.
    pub(crate) fn of(self, line: Rate) -> Option<LinkRate> {
        LinkRate::of(line).map(|rate| match self {
            Self::Auto => LinkRate::Auto,
            Self::Line => rate,
            Self::Max => LinkRate::Max,
        })
    }
}

/// What is between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scheme {
    None,
    Plain,
    Thesis,
    Wide,
    Slacp,
    PlainPep,
    PlainLt,
    WidePep,
    SlacpPep,
    Coded,
    CodedPep,
    WidePepEndToEnd,
}

impl Scheme {
    pub(crate) const USUAL: [Self; 6] =
        [Self::None, Self::Plain, Self::Thesis, Self::Wide, Self::Slacp, Self::WidePep];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Plain => "plain",
            Self::Thesis => "thesis",
            Self::Wide => "wide",
            Self::Slacp => "slacp",
            Self::PlainPep => "plain-pep",
            Self::PlainLt => "plain-lt",
            Self::WidePep => "wide-pep",
            Self::SlacpPep => "slacp-pep",
            Self::Coded => "coded",
            Self::CodedPep => "coded-pep",
            Self::WidePepEndToEnd => "wide-pep-end-to-end",
        }
    }

    /// The `[pep]` of both gateways.
    pub(crate) fn pep(self) -> Option<pep::Config> {
        let text = match self {
            Self::None | Self::Plain | Self::Thesis | Self::Wide | Self::Slacp | Self::Coded => return None,
            Self::PlainPep | Self::WidePep | Self::SlacpPep | Self::CodedPep => "",
            Self::PlainLt => "link.preset = \"proxy-link-lossy\"",
            Self::WidePepEndToEnd => "ack = \"end-to-end\"",
        };
        Some(config::parse("the gateways' proxy", text).unwrap_or_else(|error| unreachable!("{error}")))
    }

    /// The `[link]` of both gateways.
    const fn link_table(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Plain | Self::PlainPep => Some("protocol = \"plain\"\n"),
            // Marks are what the coded TCP takes for congestion.
            Self::PlainLt => Some("protocol = \"plain\"\nqueue = { fq-codel = {} }\n"),
            Self::Thesis => Some("protocol = \"cotmll-thesis\"\n"),
            Self::Wide | Self::WidePep | Self::WidePepEndToEnd => Some("protocol = \"cotmll\"\n"),
            Self::Slacp | Self::SlacpPep => Some("protocol = \"slacp\"\n"),
            Self::Coded | Self::CodedPep => Some("protocol = \"coded\"\n"),
        }
    }

    /// The gateways' link at this rate both ways; `None` without gateways.
    pub(crate) fn link(self, rate: LinkRate) -> Result<Option<testbed::Link>, ConfigError> {
        let config =
            self.link_table().map(|text| Link::parse_without_rate("the gateways' link", text)).transpose()?;
        Ok(config.map(|config| testbed::Link { config, up: rate, down: rate }))
    }
}
