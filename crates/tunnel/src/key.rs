//! Keys as people write them: 32 bytes in base64, as WireGuard's are.
//!
//! A gateway is who holds its [`PrivateKey`]; others know it by the [`PublicKey`] that follows from it. A [`PresharedKey`] of two gateways
//! keeps what they say secret even from somebody who can compute private keys from public ones.

use core::fmt;
use core::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver as _, DefaultResolver};
use zeroize::{Zeroize as _, Zeroizing};

use crate::random::Random;

/// A gateway's secret half of its identity, for X25519 (RFC 7748). It is wiped from memory when it is dropped, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("pattern" = KEY))]
pub struct PrivateKey([u8; KEY_LEN]);

/// The half of a gateway's identity that others know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String", extend("pattern" = KEY, "examples" = [EXAMPLE]))]
pub struct PublicKey([u8; KEY_LEN]);

/// A secret that two gateways share besides their identities, wiped from memory when it is dropped. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("pattern" = KEY))]
pub struct PresharedKey([u8; KEY_LEN]);

/// Bytes of a key.
pub const KEY_LEN: usize = 32;

/// Base64 of 32 bytes.
const KEY: &str = r"^\s*[0-9A-Za-z+/]{43}=\s*$";
/// RFC 7748, 6.1: Alice's public key.
const EXAMPLE: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

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
    /// A public key with which every exchange has the same, public, result.
    #[error(
        "not a key: it is one of the few that give no secret; allowed are those that `longhaul pubkey` prints"
    )]
    Degenerate,
}

impl PrivateKey {
    /// The other half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut exchange =
            DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the resolver has X25519");
        exchange.set(&self.0);
        PublicKey(exchange.pubkey().try_into().expect("X25519 has public keys of 32 bytes"))
    }
}

impl PublicKey {
    /// The key of these bytes.
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

    /// Whether exchanges with it give the same result, whatever the private key (RFC 7748, 6.1, asks for a look at the result; a configuration
    /// with a thousand keys is to be read in no time).
    fn is_degenerate(self) -> bool {
        let mut bytes = self.0;
        // X25519 ignores the last bit.
        bytes[KEY_LEN - 1] &= 0x7f;
        SMALL_ORDER.contains(&bytes)
    }
}

/// The encodings of points of small order (Bernstein 2006, "Curve25519: new Diffie-Hellman speed records", and cr.yp.to/ecdh.html): of order
/// 1 and 2, of order 8, and those that are the same beyond the field's prime.
const SMALL_ORDER: [[u8; KEY_LEN]; 7] = {
    const fn ending(first: u8, others: u8, last: u8) -> [u8; KEY_LEN] {
        let mut bytes = [others; KEY_LEN];
        bytes[0] = first;
        bytes[KEY_LEN - 1] = last;
        bytes
    }
    [
        ending(0, 0, 0),
        ending(1, 0, 0),
        [
            0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
            0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
        ],
        [
            0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b,
            0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
        ],
        ending(0xec, 0xff, 0x7f),
        ending(0xed, 0xff, 0x7f),
        ending(0xee, 0xff, 0x7f),
    ]
};

impl PresharedKey {
    /// What stands for a key where two gateways have agreed on none.
    pub const NONE: Self = Self([0; KEY_LEN]);
}

/// What secrets have in common.
macro_rules! secret {
    ($name:ident) => {
        impl $name {
            /// A fresh key.
            #[must_use]
            pub fn generate(random: &mut Random) -> Self {
                Self(random.draw())
            }

            /// The key of these bytes.
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
            pub fn to_base64(&self) -> Zeroizing<String> {
                Zeroizing::new(STANDARD.encode(self.0))
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                self.0.zeroize();
            }
        }

        impl FromStr for $name {
            type Err = NotAKey;
            fn from_str(text: &str) -> Result<Self, NotAKey> {
                parse(text).map(|bytes| Self(*bytes))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(secret)"))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer)
            }
        }
    };
}

secret!(PrivateKey);
secret!(PresharedKey);

fn parse(text: &str) -> Result<Zeroizing<[u8; KEY_LEN]>, NotAKey> {
    let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| NotAKey::Encoding)?);
    bytes[..].try_into().map(Zeroizing::new).map_err(|_| NotAKey::Length(bytes.len()))
}

impl FromStr for PublicKey {
    type Err = NotAKey;
    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let key = Self(*parse(text)?);
        if key.is_degenerate() { Err(NotAKey::Degenerate) } else { Ok(key) }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64())
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The complaint must not repeat a nearly right secret.
fn deserialize<'de, D: Deserializer<'de>, K: FromStr<Err = NotAKey>>(deserializer: D) -> Result<K, D::Error> {
    Zeroizing::new(String::deserialize(deserializer)?).parse().map_err(de::Error::custom)
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_round_trip_and_stay_secret() {
        let mut random = Random::seeded(1);
        let private = PrivateKey::generate(&mut random);
        assert_eq!(private.to_base64().parse(), Ok(private.clone()));
        assert_ne!(private, PrivateKey::generate(&mut random));
        assert_eq!(format!("{private:?}"), "PrivateKey(secret)");
        let shared = PresharedKey::generate(&mut random);
        assert_eq!(shared.to_base64().parse(), Ok(shared.clone()));
        assert_eq!(format!("{shared:?}"), "PresharedKey(secret)");
    }

    /// RFC 7748, 6.1.
    #[test]
    fn the_public_half_follows_from_the_private_one() {
        let private: PrivateKey = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=".parse().unwrap();
        let public = private.public();
        assert_eq!(public.to_string(), EXAMPLE);
        assert_eq!(EXAMPLE.parse(), Ok(public));
        assert_eq!(format!("{public:?}"), format!("PublicKey({EXAMPLE})"));
    }

    #[test]
    fn a_wrong_key_says_why() {
        assert_eq!("c2hvcnQ=".parse::<PresharedKey>(), Err(NotAKey::Length(5)));
        assert_eq!("!".parse::<PrivateKey>(), Err(NotAKey::Encoding));
    }

    /// The list has all of them, and what is on it gives no secret.
    #[test]
    fn keys_that_give_no_secret_are_refused() {
        for bytes in SMALL_ORDER {
            let mut exchange = DefaultResolver.resolve_dh(&DHChoice::Curve25519).unwrap();
            exchange.set(&[9; KEY_LEN]);
            let mut shared = [7; KEY_LEN];
            let degenerate = exchange.dh(&bytes, &mut shared).is_err() || shared == [0; KEY_LEN];
            assert!(degenerate, "{bytes:?}");
            for last in [0, 0x80] {
                let mut bytes = bytes;
                bytes[KEY_LEN - 1] |= last;
                let text = PublicKey::from_bytes(bytes).to_base64();
                assert_eq!(text.parse::<PublicKey>(), Err(NotAKey::Degenerate));
            }
        }
        assert!(EXAMPLE.parse::<PublicKey>().is_ok());
    }
}
