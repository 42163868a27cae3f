//! Which connections are split.

use core::net::SocketAddr;
use core::ops::RangeInclusive;
use std::borrow::Cow;

use base::Prefix;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What to do with the connections that match this rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What to do with connections that match.
    pub action: Action,
    /// Destination ports of the connection. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
    /// Networks of which one contains either end of the connection. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Prefix>,
}

/// What the proxy does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Split it.
    Split,
    /// Let its packets pass unchanged.
    Pass,
}

impl Rule {
    fn fits(&self, caller: SocketAddr, called: SocketAddr) -> bool {
        let port = self.ports.is_empty() || self.ports.iter().any(|ports| ports.0.contains(&called.port()));
        let is_in = |network: &Prefix| network.contains(caller.ip()) || network.contains(called.ip());
        port && (self.networks.is_empty() || self.networks.iter().any(is_in))
    }
}

/// What `rules` say of a connection that `caller` opens to `called`.
pub(crate) fn decide(rules: &[Rule], caller: SocketAddr, called: SocketAddr) -> Action {
    rules.iter().find(|rule| rule.fits(caller, called)).map_or(Action::Split, |rule| rule.action)
}

/// One port, or several in a row: `22`, `"5000-5010"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(RangeInclusive<u16>);

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last {
            serializer.serialize_u16(*first)
        } else {
            serializer.collect_str(&format_args!("{first}-{last}"))
        }
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(i64),
            Range(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::One(port) => port.to_string(),
            Written::Range(text) => text,
        };
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let range =
            first.parse().ok().zip(last.parse().ok()).filter(|&(first, last)| 0 < first && first <= last);
        let wrong = || {
            de::Error::custom(format!(
                "\"{text}\" is not a port or range of ports; allowed are 1 to 65535, as in 22 or \"5000-5010\""
            ))
        };
        range.map(|(first, last)| Self(first..=last)).ok_or_else(wrong)
    }
}

impl JsonSchema for Ports {
    fn schema_name() -> Cow<'static, str> {
        "Ports".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One port, or several in a row.",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": u16::MAX },
                { "type": "string", "pattern": "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$" },
            ],
            "examples": [22, "5000-5010"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let text = "[[rule]]\naction = \"split\"\nports = [22]\nnetworks = [\"10.1.0.0/16\"]\n\
                    [[rule]]\naction = \"pass\"\nports = [22, \"5000-5010\"]\n\
                    [[rule]]\naction = \"pass\"\nnetworks = [\"fd00::/8\", \"192.0.2.0/24\"]";
        let config: Config = base::config::parse("t", text).unwrap();
        let of = |caller: &str, called: &str| {
            decide(&config.rule, caller.parse().unwrap(), called.parse().unwrap())
        };
        assert_eq!(of("10.1.0.9:40000", "10.2.0.1:22"), Action::Split);
        assert_eq!(of("10.3.0.9:40000", "10.2.0.1:22"), Action::Pass);
        assert_eq!(of("10.3.0.9:22", "10.2.0.1:80"), Action::Split, "the port of the end that is called");
        for (port, action) in
            [(4999, Action::Split), (5000, Action::Pass), (5010, Action::Pass), (5011, Action::Split)]
        {
            assert_eq!(of("10.3.0.9:1", &format!("10.2.0.1:{port}")), action, "{port}");
        }
        assert_eq!(of("[fd01::1]:9", "[2001:db8::1]:80"), Action::Pass);
        assert_eq!(of("10.3.0.9:1", "192.0.2.7:80"), Action::Pass);
    }

    #[test]
    fn rules_are_written_as_they_are_read() {
        let text = "[[rule]]\naction = \"pass\"\nports = [22, \"5000-5010\"]";
        let config: Config = base::config::parse("t", text).unwrap();
        let written = toml::to_string(&config.rule[0]).unwrap();
        assert!(
            written.contains("ports = [22, \"5000-5010\"]"),
            "connections are split that should pass: {written}"
        );
    }
}
