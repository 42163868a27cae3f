//! Cookies: proofs that whoever shows one receives at its address, and has lately heard from us.
//!
//! After WireGuard's cookies (Donenfeld 2017, section 5.3) and QUIC's path validation (RFC 9000, section 8.2).
//!
//! Deviations: a cookie says when it was issued, by the clock of the side that issues and checks it. That bounds its life
//! without a rotating secret, and ranks handshakes by when they were asked for, whatever calendars say. No two are
//! the same, so each belongs to one life of one peer. Nothing is kept for those that are out.

use core::fmt;

use base::{Duration, Instant};
use ring::hmac;

use super::allowance::Allowance;
use crate::path::Path;
use crate::random::Random;

/// When it was issued, and a tag over that and the path it went to.
pub(super) type Cookie = [u8; COOKIE_LEN];

/// Bytes of a cookie.
pub(super) const COOKIE_LEN: usize = 8 + 32;
/// Until the next renewal of keys, and no longer than keys live.
const LIFETIME: Duration = Duration::from_secs(300);
/// Allowances for addresses that share one only if their tags fall together.
const SOURCES: usize = 64;

/// Issues and checks cookies.
pub(super) struct Cookies {
    secret: hmac::Key,
    /// When the last one was issued; those that are issued at the same time get later times.
    last: u64,
    sources: [Allowance; SOURCES],
}

impl Cookies {
    pub(super) fn new(random: &mut Random) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &random.draw::<32>());
        Self { secret, last: 0, sources: [Allowance::new(4, Duration::from_millis(250)); SOURCES] }
    }

    /// A new cookie for whoever receives on `path`.
    pub(super) fn issue(&mut self, now: Instant, path: Path) -> Cookie {
        self.last = now.as_nanos().max(self.last + 1);
        let mut cookie = [0; COOKIE_LEN];
        cookie[..8].copy_from_slice(&self.last.to_le_bytes());
        let tag = hmac::sign(&self.secret, &tagged(self.last, path));
        cookie[8..].copy_from_slice(tag.as_ref());
        cookie
    }

    /// The same, if the address has not asked for too many.
    pub(super) fn offer(&mut self, now: Instant, path: Path) -> Option<Cookie> {
        let source = hmac::sign(&self.secret, &tagged(0, Path { local: None, ..path }));
        let source = usize::from(source.as_ref()[0]) % SOURCES;
        self.sources[source].take(now).then(|| self.issue(now, path))
    }

    /// When `cookie`, shown from `path`, was issued for it, unless that was too long ago or never.
    pub(super) fn issued(&self, now: Instant, path: Path, cookie: &Cookie) -> Option<u64> {
        let (issued, tag) = cookie.split_first_chunk().expect("a cookie is longer");
        let issued = u64::from_le_bytes(*issued);
        let fresh = issued != 0 && now.as_nanos() <= issued.saturating_add(LIFETIME.as_nanos());
        (fresh && hmac::verify(&self.secret, &tagged(issued, path), tag).is_ok()).then_some(issued)
    }
}

/// What a cookie's tag covers.
fn tagged(issued: u64, path: Path) -> [u8; 8 + Path::LEN] {
    let mut bytes = [0; 8 + Path::LEN];
    bytes[..8].copy_from_slice(&issued.to_le_bytes());
    bytes[8..].copy_from_slice(&path.to_bytes());
    bytes
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").field("last", &self.last).finish_non_exhaustive()
    }
}
