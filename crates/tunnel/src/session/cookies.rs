//! Cookies: proofs that whoever shows one receives at its address, and has lately heard from us.
//!
//! After WireGuard's cookies (Donenfeld 2017, section 5.3) and QUIC's path validation (RFC 9000, section 8.2).
//!
//! Deviations: a cookie says when it was issued, by the clock of the side that issues and checks it. That bounds its life
//! without a rotating secret, and ranks handshakes by when they were asked for, whatever calendars say. It also says to which peer it was
//! given, if it was given to one. Only its issuer can read either, so cookies of one peer look as unlike as any. No two are the same, so
//! each belongs to one life of one peer. Nothing is kept for those that are out.

use core::fmt;

use base::{Duration, Instant};
use ring::hmac;

use crate::path::Path;
use crate::random::Random;

/// A masked [`Issued`], and a tag over that and the path it went to.
pub(super) type Cookie = [u8; COOKIE_LEN];

/// Bytes of a cookie.
pub(super) const COOKIE_LEN: usize = ISSUED_LEN + 32;
const ISSUED_LEN: usize = 8 + 4;
/// Until the next renewal of keys, and no longer than keys live.
const LIFETIME: Duration = Duration::from_secs(300);

/// When a cookie was issued, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issued {
    /// In nanoseconds of our clock; no two cookies have the same.
    pub(super) at: u64,
    /// The number of a peer that has shown who it is.
    pub(super) to: Option<u32>,
}

/// Issues and checks cookies.
pub(super) struct Cookies {
    secret: hmac::Key,
    mask: hmac::Key,
    /// When the last one was issued; those that are issued at the same time get later times.
    last: u64,
}

impl Cookies {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut key = || hmac::Key::new(hmac::HMAC_SHA256, &random.draw::<32>());
        Self { secret: key(), mask: key(), last: 0 }
    }

    /// A new cookie for whoever receives on `path`, who is the peer of the number `to` if that is proved.
    pub(super) fn issue(&mut self, now: Instant, path: Path, to: Option<u32>) -> Cookie {
        self.last = now.as_nanos().max(self.last + 1);
        let issued = Issued { at: self.last, to }.to_bytes();
        let tag = hmac::sign(&self.secret, &tagged(issued, path));
        let mut cookie = [0; COOKIE_LEN];
        cookie[..ISSUED_LEN].copy_from_slice(&self.masked(issued, tag.as_ref()));
        cookie[ISSUED_LEN..].copy_from_slice(tag.as_ref());
        cookie
    }

    /// What `cookie`, shown from `path`, was issued for, unless that was too long ago or never.
    pub(super) fn issued(&self, now: Instant, path: Path, cookie: &Cookie) -> Option<Issued> {
        let (masked, tag) = cookie.split_first_chunk().expect("a cookie is longer");
        let bytes = self.masked(*masked, tag);
        let issued = Issued::from_bytes(bytes);
        let fresh = now.as_nanos() <= issued.at.saturating_add(LIFETIME.as_nanos());
        (fresh && hmac::verify(&self.secret, &tagged(bytes, path), tag).is_ok()).then_some(issued)
    }

    fn masked(&self, mut issued: [u8; ISSUED_LEN], tag: &[u8]) -> [u8; ISSUED_LEN] {
        let mask = hmac::sign(&self.mask, tag);
        issued.iter_mut().zip(mask.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
        issued
    }
}

impl Issued {
    fn to_bytes(self) -> [u8; ISSUED_LEN] {
        let mut bytes = [0; ISSUED_LEN];
        bytes[..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..].copy_from_slice(&self.to.map_or(0, |to| to + 1).to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; ISSUED_LEN]) -> Self {
        let (at, to) = bytes.split_at(8);
        let to = u32::from_le_bytes(to.try_into().expect("four bytes"));
        Self { at: u64::from_le_bytes(at.try_into().expect("eight bytes")), to: to.checked_sub(1) }
    }
}

/// What a cookie's tag covers.
fn tagged(issued: [u8; ISSUED_LEN], path: Path) -> [u8; ISSUED_LEN + Path::LEN] {
    let mut bytes = [0; ISSUED_LEN + Path::LEN];
    bytes[..ISSUED_LEN].copy_from_slice(&issued);
    bytes[ISSUED_LEN..].copy_from_slice(&path.to_bytes());
    bytes
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").field("last", &self.last).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Address;

    #[test]
    fn a_cookie_says_when_and_to_whom_to_its_issuer_alone() {
        let mut cookies = Cookies::new(&mut Random::seeded(1));
        let [here, there] = [1, 2].map(|port| Path::from(Address::Udp(([192, 0, 2, 1], port).into())));
        let now = Instant::from_nanos(5);
        let first = cookies.issue(now, here, Some(0));
        let second = cookies.issue(now, here, None);
        assert_eq!(cookies.issued(now, here, &first), Some(Issued { at: 5, to: Some(0) }));
        assert_eq!(cookies.issued(now, here, &second), Some(Issued { at: 6, to: None }));
        assert_eq!(cookies.issued(now, there, &first), None);
        // Neither the time nor the number can be seen to be alike.
        assert!((0..ISSUED_LEN).filter(|at| first[*at] == second[*at]).count() < 3);
        let other = Cookies::new(&mut Random::seeded(2));
        assert_eq!(other.issued(now, here, &first), None);
        for at in 0..COOKIE_LEN {
            let mut forged = first;
            forged[at] ^= 1;
            assert_eq!(cookies.issued(now, here, &forged), None, "byte {at}");
        }
    }
}
