//! What a gateway shows over HTTP: numbers to Prometheus, and a page to people.

use core::fmt;
use core::str::FromStr;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use zeroize::Zeroizing;

use super::carrier::{SOCKET, address_with_port};

/// Numbers for Prometheus, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Metrics {
    /// Local address and port at which they are told, such as "127.0.0.1:9469". There is no password: whoever reaches it reads them.
    #[serde(deserialize_with = "address_with_port")]
    #[schemars(extend("pattern" = SOCKET, "examples" = ["127.0.0.1:9469"]))]
    pub listen: SocketAddr,
}

/// A page that shows how the gateway is doing, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Page {
    /// Local address and port at which it is shown, such as "127.0.0.1:9470".
    #[serde(deserialize_with = "address_with_port")]
    #[schemars(extend("pattern" = SOCKET, "examples" = ["127.0.0.1:9470"]))]
    pub listen: SocketAddr,
    /// What who looks has to know: they open http://ADDRESS:PORT/?token=TOKEN. Required unless it is shown on a loopback address.
    #[serde(default)]
    pub token: Option<Token>,
}

impl Page {
    /// Why it may not be shown like that, if so.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        let is_open = !self.listen.ip().is_loopback() && self.token.is_none();
        is_open.then_some(
            "others can reach this address, so [page] needs a token; allowed without is a loopback address such as \"127.0.0.1:9470\"",
        )
    }
}

/// 16 to 128 letters, digits, hyphens and underscores.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent, extend("pattern" = "^[A-Za-z0-9_-]{16,128}$"))]
pub struct Token(#[schemars(with = "String")] Zeroizing<String>);

impl Token {
    /// Whether it is this; how long that takes tells nothing but the length.
    #[must_use]
    pub fn is(&self, given: &str) -> bool {
        let differ = |(a, b): (u8, u8)| a ^ b;
        self.0.len() == given.len()
            && self.0.bytes().zip(given.bytes()).map(differ).fold(0, |all, one| all | one) == 0
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (16..=128).contains(&text.len()) && text.chars().all(is_plain) {
            return Ok(Self(Zeroizing::new(text.to_owned())));
        }
        Err("a token has 16 to 128 letters, digits, hyphens and underscores; `openssl rand -hex 16` makes one".to_owned())
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Zeroizing::new(String::deserialize(deserializer)?).parse().map_err(de::Error::custom)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
