//! One established session: two keys, a counter, a window.
//!
//! The keys are wiped once `ring` has expanded them. What it expands them to it does not wipe, and gives nobody the means to.

use core::fmt;
use core::ops::Range;

use base::Instant;
use link::LineId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::handshake::Keys;
use super::replay::ReplayWindow;
use super::wire::{self, CLEAR_LEN, TAG_LEN};
use crate::control::Kind;

/// Datagrams that a session may send over each line, far below what AES-GCM's 64-bit counter part allows.
const COUNTER_LIMIT: u64 = 1 << 48;
/// Above these bits of a counter is the line's number.
const LINE_SHIFT: u32 = 56;

pub(super) struct Transport {
    /// Our index: the peer's datagrams carry it.
    pub(super) local: u32,
    /// The peer's index.
    pub(super) remote: u32,
    /// When the handshake was complete on our side.
    pub(super) since: Instant,
    /// Whether we began the handshake.
    pub(super) initiated: bool,
    seal: LessSafeKey,
    open: LessSafeKey,
    first: Numbers,
    /// Of further lines, as far as they are used.
    others: Vec<Numbers>,
}

/// What has passed over a line. Lines keep no order among each other, and a slow one must not fall out of a fast one's window.
#[derive(Default)]
struct Numbers {
    sent: u64,
    window: ReplayWindow,
}

/// Why a sealed datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Replayed,
    Forged,
}

impl Transport {
    pub(super) fn new(keys: &Keys, local: u32, remote: u32, since: Instant, initiated: bool) -> Self {
        Self {
            local,
            remote,
            since,
            initiated,
            seal: aes(&keys.seal),
            open: aes(&keys.open),
            first: Numbers::default(),
            others: Vec::new(),
        }
    }

    /// Whether the session has used up its counters.
    pub(super) fn is_spent(&self) -> bool {
        self.all().any(|numbers| numbers.sent >= COUNTER_LIMIT)
    }

    /// Whether a datagram with this counter has been sealed.
    pub(super) fn has_sent(&self, counter: u64) -> bool {
        let numbers = line_of(counter).and_then(|line| self.of(line));
        numbers.is_some_and(|numbers| number_of(counter) < numbers.sent)
    }

    /// Whether nothing has arrived yet.
    pub(super) fn is_unheard(&self) -> bool {
        self.all().all(|numbers| numbers.window.is_untouched())
    }

    /// Whether nothing has arrived yet over a line.
    pub(super) fn is_unheard_over(&self, line: LineId) -> bool {
        self.of(line).is_none_or(|numbers| numbers.window.is_untouched())
    }

    fn all(&self) -> impl Iterator<Item = &Numbers> {
        core::iter::once(&self.first).chain(&self.others)
    }

    fn of(&self, line: LineId) -> Option<&Numbers> {
        match usize::from(line.number()).checked_sub(1) {
            None => Some(&self.first),
            Some(place) => self.others.get(place),
        }
    }

    fn of_mut(&mut self, line: LineId) -> &mut Numbers {
        let Some(place) = usize::from(line.number()).checked_sub(1) else { return &mut self.first };
        if self.others.len() <= place {
            self.others.resize_with(place + 1, Numbers::default);
        }
        &mut self.others[place]
    }

    /// Seals the payload that starts [`HEADER_LEN`](super::HEADER_LEN) bytes after `start`, in place, and appends the tag. It leaves over `line`.
    pub(super) fn seal(&mut self, line: LineId, kind: Kind, buffer: &mut Vec<u8>, start: usize) {
        let numbers = self.of_mut(line);
        let counter = u64::from(line.number()) << LINE_SHIFT | numbers.sent;
        numbers.sent += 1;
        let (header, nonce) = (wire::sealed_header(self.remote, counter), nonce(counter));
        let datagram = &mut buffer[start..];
        datagram[..CLEAR_LEN].copy_from_slice(&header);
        datagram[CLEAR_LEN] = kind as u8;
        let tag = self
            .seal
            .seal_in_place_separate_tag(nonce, Aad::from(header), &mut datagram[CLEAR_LEN..])
            .expect("a datagram is shorter than what AES-GCM can seal");
        buffer.extend_from_slice(tag.as_ref());
    }

    /// Opens a sealed datagram in place; where its kind and its payload are, and how many before it were skipped if it is the newest so far.
    pub(super) fn open(
        &mut self,
        datagram: &mut [u8],
        counter: u64,
    ) -> Result<(Range<usize>, Option<u64>), Refused> {
        let number = number_of(counter);
        let Some(line) = line_of(counter).filter(|_| number < COUNTER_LIMIT) else {
            // No honest peer has so many lines, or counts so far.
            return Err(Refused::Forged);
        };
        if self.of(line).is_some_and(|numbers| !numbers.window.is_new(number)) {
            return Err(Refused::Replayed);
        }
        self.decrypt(datagram, counter)?;
        let skipped = self.of_mut(line).window.mark(number);
        Ok((CLEAR_LEN..datagram.len() - TAG_LEN, skipped))
    }

    /// Whether a datagram is authentic and its counter in the window. It is opened in place.
    pub(super) fn is_copy(&self, datagram: &mut [u8], counter: u64) -> bool {
        let numbers = line_of(counter).and_then(|line| self.of(line));
        numbers.is_some_and(|numbers| numbers.window.reaches(number_of(counter)))
            && self.decrypt(datagram, counter).is_ok()
    }

    fn decrypt(&self, datagram: &mut [u8], counter: u64) -> Result<(), Refused> {
        let (header, sealed) = datagram.split_at_mut(CLEAR_LEN);
        let aad = Aad::from(&*header);
        self.open.open_in_place(nonce(counter), aad, sealed).map(|_| ()).map_err(|_| Refused::Forged)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("local", &self.local)
            .field("remote", &self.remote)
            .field("since", &self.since)
            .field("sent", &self.first.sent)
            .finish_non_exhaustive()
    }
}

/// The line that a datagram with this counter comes over, if there can be such.
pub(super) fn line_of(counter: u64) -> Option<LineId> {
    LineId::new((counter >> LINE_SHIFT) as u8)
}

/// Which of that line's datagrams it is.
const fn number_of(counter: u64) -> u64 {
    counter & ((1 << LINE_SHIFT) - 1)
}

fn aes(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has the algorithm's length"))
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
