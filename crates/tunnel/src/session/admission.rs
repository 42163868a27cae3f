//! Admission: which initiations are answered, and what the others cost.
//!
//! An answer costs two operations on the curve, some 100 us, and a place among the unconfirmed. To deserve it, an
//! initiation shows a cookie that we issued since we started, to the address that it comes from, and ranks above all
//! that were answered: first by when its cookie was issued, on our clock, then by its sender's count. So no recording
//! of an earlier time is ever answered, and no calendar is asked. Whoever has no such cookie gets one, at the
//! price of a round trip; each answer brings the next one, so that renewals take one round trip.
//!
//! Before that, [`Seal`] tells in a quarter of a microsecond whether a holder of the key made a datagram at all, and
//! [`Seen`] whether it has been here before.

use core::fmt;
use std::collections::VecDeque;

use base::{Duration, Instant};
use ring::hmac;

use super::Rejection;
use super::allowance::Allowance;
use super::cookies::{Cookie, Cookies};
use super::seen::Seen;
use super::wire::SEAL_LEN;
use crate::key::PresharedKey;
use crate::path::Path;
use crate::random::Random;

/// Authenticates handshake datagrams with a key that both sides derive from theirs: WireGuard's first MAC (section 5.4.4).
pub(super) struct Seal(hmac::Key);

impl Seal {
    pub(super) fn new(key: &PresharedKey) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        let derived = hmac::sign(&key, b"longhaul handshake datagrams");
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// Appends the seal to a datagram that is complete but for it.
    pub(super) fn append(&self, datagram: &mut Vec<u8>) {
        let tag = hmac::sign(&self.0, datagram);
        datagram.extend_from_slice(tag.as_ref());
    }

    /// Whether a holder of the key sealed `bytes`.
    pub(super) fn is_on(&self, bytes: &[u8], seal: &[u8; SEAL_LEN]) -> bool {
        hmac::verify(&self.0, bytes, seal).is_ok()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(secret)")
    }
}

/// What is to be done about an initiation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It deserves an answer.
    Answer,
    /// It may be old: its sender is to show this cookie.
    Challenge(Cookie),
}

/// Who was admitted, and who asked.
#[derive(Debug)]
pub(super) struct Admission {
    seen: Seen,
    /// The last initiations that got a challenge or an answer, and where.
    served: VecDeque<([u8; SEAL_LEN], Path)>,
    pub(super) cookies: Cookies,
    /// The rank of the last initiation that was answered: when its cookie was issued, and its number.
    answered: (u64, u64),
    answers: Allowance,
    /// Challenges for what was shown before: apart, so that recordings take none from those who show something new.
    repeated: Allowance,
}

/// Initiations remembered exactly, so that one that was captured can still be challenged where it was made.
const SERVED_KEPT: usize = 16;

impl Admission {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            seen: Seen::default(),
            served: VecDeque::new(),
            cookies: Cookies::new(random),
            answered: (0, 0),
            answers: Allowance::new(20, Duration::from_millis(100)),
            repeated: Allowance::new(64, Duration::from_millis(20)),
        }
    }

    /// What to do about an initiation by a holder of the key, of which `seal` is the seal.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        from: Path,
        seal: &[u8; SEAL_LEN],
        cookie: &Cookie,
        number: u64,
    ) -> Result<Verdict, Rejection> {
        let new = self.seen.insert(seal);
        let rank = self.cookies.issued(now, from, cookie).map(|issued| (issued, number));
        let Some(rank) = rank.filter(|rank| *rank > self.answered) else {
            return self.challenge(now, from, seal, new).map(Verdict::Challenge);
        };
        if !self.answers.take(now) {
            return Err(Rejection::TooManyHandshakes);
        }
        self.answered = rank;
        self.remember(from, seal);
        Ok(Verdict::Answer)
    }

    /// A cookie for an initiation that is `new`, or was new lately and is shown from elsewhere now: somebody may have
    /// captured it and been faster than its sender.
    fn challenge(
        &mut self,
        now: Instant,
        from: Path,
        seal: &[u8; SEAL_LEN],
        new: bool,
    ) -> Result<Cookie, Rejection> {
        let mut shown = self.served.iter().filter(|(known, _)| known == seal).peekable();
        if !new && (shown.peek().is_none() || shown.any(|(_, path)| *path == from)) {
            return Err(Rejection::Replayed);
        }
        if !new && !self.repeated.take(now) {
            return Err(Rejection::TooManyHandshakes);
        }
        let cookie = self.cookies.offer(now, from).ok_or(Rejection::TooManyHandshakes)?;
        self.remember(from, seal);
        Ok(cookie)
    }

    fn remember(&mut self, from: Path, seal: &[u8; SEAL_LEN]) {
        self.served.truncate(SERVED_KEPT - 1);
        self.served.push_front((*seal, from));
    }
}
