//! Reception: which initiations are answered, and what the others cost.
//!
//! An answer costs four operations on the curve, some 200 us, and a place among the unconfirmed. To deserve it, an
//! initiation shows a cookie that we issued since we started, to the address that it comes from. So no recording
//! of an earlier life is ever answered, and no calendar is asked. Whoever has no such cookie gets one, at the
//! price of a round trip; each answer brings the next one, so that renewals take one round trip.
//!
//! Only then the curve tells who calls. A cookie that came with an answer names the peer, who has an allowance of his own; all who have
//! none yet share that of [`Strangers`]. So those who are no peers take nothing from those who are. An initiation must also rank above all
//! of this peer that were answered: first by when its cookie was issued, on our clock, then by its sender's count.
//!
//! Before all that, [`Seal`] tells in a quarter of a microsecond whether a datagram was made by somebody who knows whom he calls, and
//! [`Seen`] whether it has been here before.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Duration, Instant};

use super::Rejection;
use super::cookies::{Cookie, Cookies};
use super::handshake::Request;
use super::seal::Seal;
use super::seen::Seen;
use super::strangers::{ANSWERS, Buckets, CHALLENGES, Strangers};
use super::wire::{Datagram, Message, SEAL_LEN};
use crate::allowance::Allowance;
use crate::key::PrivateKey;
use crate::path::Path;
use crate::random::Random;

/// Where initiations come, of all peers.
#[derive(Debug)]
pub struct Reception {
    own: Arc<PrivateKey>,
    seal: Seal,
    random: Random,
    cookies: Cookies,
    seen: Seen,
    /// Those of which the curve has told who made them: once for each.
    read: Seen,
    /// The last initiations that got a challenge or an answer, and where.
    served: VecDeque<([u8; SEAL_LEN], Path)>,
    answers: Strangers,
    challenges: Strangers,
    /// In sum, and of each source, from the first one on: most gateways never have to.
    denials: (Allowance, Option<Buckets>),
    /// Challenges for what was shown before: apart, so that recordings take none from those who show something new.
    repeated: Allowance,
}

/// What becomes of an initiation.
#[derive(Debug)]
pub enum Received {
    /// It may be old: this goes back to where it came from.
    Challenged(Vec<u8>),
    /// It is for the session with the peer that it names.
    Call(Call),
}

/// An initiation that somebody who has the key it names made for us lately.
#[derive(Debug)]
pub struct Call {
    pub(super) request: Request,
    pub(super) from: Path,
    /// The caller's index.
    pub(super) sender: u32,
    /// When its cookie was issued.
    pub(super) issued: u64,
    seal: [u8; SEAL_LEN],
}

/// What goes into an answer besides the keys.
#[derive(Debug)]
pub struct Reply<'a> {
    pub(super) seal: &'a Seal,
    pub(super) cookie: Cookie,
    pub(super) random: &'a mut Random,
}

/// A call that is to be answered elsewhere: by another worker of this gateway.
#[derive(Debug)]
pub struct Admitted {
    call: Call,
    /// For the caller's next call, which comes here again.
    cookie: Cookie,
}

/// A denial costs a microsecond, and is a little longer than the shortest datagram that it denies.
const DENIALS: Allowance = Allowance::new(2000, Duration::from_millis(1));
/// To one source, which may send thousands of datagrams a second; and for how many sources there are allowances.
const DENIALS_EACH: (Allowance, usize) = (Allowance::new(4, Duration::from_millis(250)), 4096);
/// Initiations remembered exactly, so that one that was captured can still be challenged where it was made.
const SERVED_KEPT: usize = 256;

impl Reception {
    /// Of the gateway with this key.
    #[must_use]
    pub fn new(own: Arc<PrivateKey>, mut random: Random) -> Self {
        Self {
            seal: Seal::of(&own.public()),
            own,
            cookies: Cookies::new(&mut random),
            seen: Seen::default(),
            read: Seen::default(),
            served: VecDeque::new(),
            answers: Strangers::new(ANSWERS, &mut random),
            challenges: Strangers::new(CHALLENGES, &mut random),
            denials: (DENIALS, None),
            repeated: Allowance::new(64, Duration::from_millis(20)),
            random,
        }
    }

    /// Takes an initiation. `allows` says of the peer of a number whether it may have one more answer, and counts it; `None` if there is no
    /// such peer.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped.
    pub fn handle_initiation(
        &mut self,
        now: Instant,
        from: Path,
        datagram: &[u8],
        allows: impl FnOnce(u32) -> Option<bool>,
    ) -> Result<Received, Rejection> {
        let Datagram::Handshake { message: Message::Initiation { sender, cookie, noise }, sealed, seal } =
            Datagram::parse(datagram)?
        else {
            return Err(Rejection::UnknownType);
        };
        if !self.seal.is_on(sealed, &[], seal) {
            return Err(Rejection::ForgedHandshake);
        }
        let is_new = self.seen.insert(seal);
        let issued = self.cookies.issued(now, from, cookie).filter(|_| self.read.insert(seal));
        let Some(issued) = issued else {
            return self.challenge(now, from, sender, seal, is_new).map(Received::Challenged);
        };
        // Somebody who sees the peer's cookies may have used up what is its own.
        if issued.to.and_then(allows) != Some(true) && !self.answers.take(now, from) {
            return Err(Rejection::TooManyHandshakes);
        }
        let request = Request::read(&self.own, &mut self.random, noise);
        let request = request.map_err(|_| Rejection::ForgedHandshake)?;
        self.remember(from, seal);
        Ok(Received::Call(Call { request, from, sender, issued: issued.at, seal: *seal }))
    }

    /// What the answer to the peer of this number at `from` needs.
    pub fn reply(&mut self, now: Instant, from: Path, number: u32) -> Reply<'_> {
        let cookie = self.cookies.issue(now, from, Some(number));
        Reply { seal: &self.seal, cookie, random: &mut self.random }
    }

    /// Admits a call of the peer of this number, for which another worker's reception has [`Reception::take_over`].
    pub fn hand_over(&mut self, now: Instant, call: Call, number: u32) -> Admitted {
        Admitted { cookie: self.cookies.issue(now, call.from, Some(number)), call }
    }

    /// A call that another worker has admitted, and what its answer needs.
    pub fn take_over(&mut self, admitted: Admitted) -> (Call, Reply<'_>) {
        let Admitted { call, cookie } = admitted;
        (call, Reply { seal: &self.seal, cookie, random: &mut self.random })
    }

    /// A challenge for a call that ranks below one that was answered: it may have been held back, or it has been overtaken.
    ///
    /// # Errors
    /// There have been too many.
    pub fn challenge_again(&mut self, now: Instant, call: &Call) -> Result<Vec<u8>, Rejection> {
        self.offer(now, call.from, call.sender, &call.seal)
    }

    /// A cookie for an initiation that is new, or was new lately and is shown from elsewhere now: somebody may have captured it and been
    /// faster than its sender.
    fn challenge(
        &mut self,
        now: Instant,
        from: Path,
        sender: u32,
        seal: &[u8; SEAL_LEN],
        is_new: bool,
    ) -> Result<Vec<u8>, Rejection> {
        let mut shown = self.served.iter().filter(|(known, _)| known == seal).peekable();
        if !is_new && (shown.peek().is_none() || shown.any(|(_, path)| *path == from)) {
            return Err(Rejection::Replayed);
        }
        if !is_new && !self.repeated.take(now) {
            return Err(Rejection::TooManyHandshakes);
        }
        self.offer(now, from, sender, seal)
    }

    fn offer(
        &mut self,
        now: Instant,
        from: Path,
        receiver: u32,
        seal: &[u8; SEAL_LEN],
    ) -> Result<Vec<u8>, Rejection> {
        if !self.challenges.take(now, from) {
            return Err(Rejection::TooManyHandshakes);
        }
        self.remember(from, seal);
        let cookie = self.cookies.issue(now, from, None);
        Ok(Message::Challenge { receiver, cookie: &cookie }.write(&self.seal, seal))
    }

    /// What tells whoever sent a sealed datagram from `from` that its session is not known here.
    ///
    /// # Errors
    /// It is no sealed datagram, or there have been too many.
    pub fn deny(&mut self, now: Instant, from: Path, datagram: &[u8]) -> Result<Vec<u8>, Rejection> {
        let Datagram::Sealed { receiver, counter } = Datagram::parse(datagram)? else {
            return Err(Rejection::UnknownType);
        };
        let each = self.denials.1.get_or_insert_with(|| {
            let (each, sources) = DENIALS_EACH;
            Buckets::new(each, sources, &mut self.random)
        });
        if !each.of(&Path { local: None, ..from }.to_bytes()).take(now) || !self.denials.0.take(now) {
            return Err(Rejection::TooManyHandshakes);
        }
        Ok(Message::Denial { receiver, counter }.write(&self.seal, &[]))
    }

    fn remember(&mut self, from: Path, seal: &[u8; SEAL_LEN]) {
        self.served.truncate(SERVED_KEPT - 1);
        self.served.push_front((*seal, from));
    }
}

impl Admitted {
    /// The call.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }
}

impl Call {
    /// Who calls.
    #[must_use]
    pub const fn key(&self) -> crate::key::PublicKey {
        self.request.key
    }

    /// Where from.
    #[must_use]
    pub const fn from(&self) -> Path {
        self.from
    }

    /// When its cookie was issued, and its number.
    pub(super) const fn rank(&self) -> (u64, u64) {
        (self.issued, self.request.greeting.number)
    }
}
