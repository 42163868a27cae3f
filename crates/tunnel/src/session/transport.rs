//! One established session: two keys, a counter, a window.
//!
//! The keys are wiped once `ring` has expanded them. What it expands them to it does not wipe, and gives nobody the means to.

use core::fmt;
use core::ops::Range;

use base::Instant;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::handshake::Keys;
use super::replay::ReplayWindow;
use super::wire::{self, CLEAR_LEN, TAG_LEN};
use crate::control::Kind;

/// Counters that a session may use, far below what AES-GCM's 64-bit counter part allows.
const COUNTER_LIMIT: u64 = 1 << 48;

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
    next_counter: u64,
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
            next_counter: 0,
            window: ReplayWindow::default(),
        }
    }

    /// Whether the session has used up its counters.
    pub(super) const fn is_spent(&self) -> bool {
        self.next_counter >= COUNTER_LIMIT
    }

    /// Whether a datagram with this counter has been sealed.
    pub(super) const fn has_sent(&self, counter: u64) -> bool {
        counter < self.next_counter
    }

    /// Whether nothing has arrived yet.
    pub(super) const fn is_unheard(&self) -> bool {
        self.window.is_untouched()
    }

    /// Seals the payload that starts [`HEADER_LEN`](super::HEADER_LEN) bytes after `start`, in place, and appends the tag.
    pub(super) fn seal(&mut self, kind: Kind, buffer: &mut Vec<u8>, start: usize) {
        let header = wire::sealed_header(self.remote, self.next_counter);
        let nonce = nonce(self.next_counter);
        self.next_counter += 1;
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
        if counter >= COUNTER_LIMIT {
            // No honest peer counts so far.
            return Err(Refused::Forged);
        }
        if !self.window.is_new(counter) {
            return Err(Refused::Replayed);
        }
        self.decrypt(datagram, counter)?;
        let skipped = self.window.mark(counter);
        Ok((CLEAR_LEN..datagram.len() - TAG_LEN, skipped))
    }

    /// Whether a datagram is authentic and its counter in the window. It is opened in place.
    pub(super) fn is_copy(&self, datagram: &mut [u8], counter: u64) -> bool {
        self.window.reaches(counter) && self.decrypt(datagram, counter).is_ok()
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
            .field("next_counter", &self.next_counter)
            .finish_non_exhaustive()
    }
}

fn aes(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has the algorithm's length"))
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
