//! The pre-shared key of two gateways: 32 random bytes, written as base64.

use core::fmt;
use core::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use zeroize::{Zeroize as _, Zeroizing};

use crate::random::Random;

/// A secret that both gateways of a link know, wiped from memory when it is dropped. `Debug` does not show it;
/// [`PresharedKey::to_base64`] does.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("pattern" = "^\\s*[0-9A-Za-z+/]{43}=\\s*$"))]
pub struct PresharedKey([u8; KEY_LEN]);

/// Bytes of a key.
pub const KEY_LEN: usize = 32;

/// A text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAKey {
    /// Not base64.
    #[error("not a key: it is not base64; allowed are 32 bytes in base64, as `longhaul keygen` prints")]
    Encoding,
    /// Base64 of another length.
    #[error(
        "not a key: {0} bytes instead of 32; allowed are 32 bytes in base64, as `longhaul keygen` prints"
    )]
    Length(usize),
}

impl PresharedKey {
    /// A fresh key.
    #[must_use]
    pub fn generate(random: &mut Random) -> Self {
        Self(random.draw())
    }

    /// A key of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// The text form.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }
}

impl Drop for PresharedKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl FromStr for PresharedKey {
    type Err = NotAKey;
    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| NotAKey::Encoding)?);
        bytes[..].try_into().map(Self).map_err(|_| NotAKey::Length(bytes.len()))
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(secret)")
    }
}

impl<'de> Deserialize<'de> for PresharedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The complaint must not repeat a nearly right secret.
        Zeroizing::new(String::deserialize(deserializer)?).parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_round_trips_and_stays_secret() {
        let mut random = Random::seeded(1);
        let key = PresharedKey::generate(&mut random);
        assert_eq!(key.to_base64().parse(), Ok(key.clone()));
        assert_ne!(key, PresharedKey::generate(&mut random));
        assert_eq!(format!("{key:?}"), "PresharedKey(secret)");
    }

    #[test]
    fn a_wrong_key_says_why() {
        assert_eq!("c2hvcnQ=".parse::<PresharedKey>(), Err(NotAKey::Length(5)));
        assert_eq!("!".parse::<PresharedKey>(), Err(NotAKey::Encoding));
    }
}
