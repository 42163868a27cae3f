//! Packet buffers that go back to a pool when they are dropped.
//!
//! A packet is real bytes, from the IP version nibble to the last byte of payload. Each thread keeps
//! bounded free lists, for packets without data, for those up to an Ethernet frame and for super-segments, so the
//! steady state of a run allocates nothing. The last buffer that came back goes out first, since it is still in the cache;
//! an acknowledgement in a long one would let it grow cold.

use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::Instant;

/// An owned run of bytes: one IP packet (or one frame) on its way.
pub struct Packet {
    bytes: Vec<u8>,
    /// [`Instant::MAX`] if it always is of use: packets are handed on by value, and this is a word less than an option.
    expires: Instant,
}

impl Packet {
    /// An empty packet with room for `capacity` bytes without growing, and always for an Ethernet frame.
    #[must_use]
    #[inline]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::in_buffer_of(capacity.max(SMALL))
    }

    /// An empty packet that becomes `len` bytes long and no longer: one without data takes a tiny buffer.
    #[must_use]
    #[inline]
    pub fn for_len(len: usize) -> Self {
        Self::in_buffer_of(len)
    }

    fn in_buffer_of(capacity: usize) -> Self {
        let pooled = POOL.try_with(|pool| pool.borrow_mut().take(capacity)).ok().flatten();
        let bytes = pooled.unwrap_or_else(|| Vec::with_capacity(class_size(capacity)));
        Self { bytes, expires: Instant::MAX }
    }

    /// An empty packet without a buffer.
    #[must_use]
    pub const fn empty() -> Self {
        Self { bytes: Vec::new(), expires: Instant::MAX }
    }

    /// When the packet is of no use any more, if somebody has said so. It is a note for those who have the packet here, and no part of
    /// its bytes.
    #[must_use]
    #[inline]
    pub fn expires(&self) -> Option<Instant> {
        (self.expires < Instant::MAX).then_some(self.expires)
    }

    /// From this time on the packet is of no use; `None` if it always is of use.
    #[inline]
    pub fn set_expiry(&mut self, at: Option<Instant>) {
        self.expires = at.unwrap_or(Instant::MAX);
    }

    /// A packet that holds a copy of `bytes`.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut packet = Self::with_capacity(bytes.len());
        packet.extend_from_slice(bytes);
        packet
    }

    /// A packet that holds a copy of `bytes` and may be kept for long: its buffer is a small one, or less than twice as long as they are.
    #[must_use]
    pub fn kept(bytes: &[u8]) -> Self {
        if Self::kept_size(bytes.len()) == bytes.len() {
            return Self { bytes: bytes.to_vec(), expires: Instant::MAX };
        }
        Self::from_slice(bytes)
    }

    /// Bytes that the buffer of a [kept](Packet::kept) packet of `len` bytes takes.
    #[must_use]
    pub fn kept_size(len: usize) -> usize {
        if len > SMALL && len <= LARGE / 2 { len } else { class_size(len.max(SMALL)) }
    }

    /// The packet in a buffer that is at most a quarter longer than it, or a small one: for where many long buffers wait.
    #[must_use]
    pub fn fitted(self) -> Self {
        let (len, capacity) = (self.len(), self.capacity());
        if capacity <= LONGEST_SMALL || capacity - len <= len / 4 {
            return self;
        }
        Self { bytes: self.bytes.to_vec(), expires: self.expires }
    }

    /// Appends `bytes`.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Sets the length; new bytes are zero.
    #[inline]
    pub fn resize(&mut self, len: usize) {
        self.bytes.resize(len, 0);
    }

    /// Drops everything past `len`.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Empties the packet and keeps its room.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Bytes that fit without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The buffer itself, for writers that append to a `Vec`.
    pub fn as_vec_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Deref for Packet {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Packet {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        if self.bytes.capacity() >= TINY {
            give_back(core::mem::take(&mut self.bytes));
        }
    }
}

impl Clone for Packet {
    fn clone(&self) -> Self {
        let mut copy = Self::from_slice(self);
        copy.expires = self.expires;
        copy
    }
}

impl Default for Packet {
    fn default() -> Self {
        Self::with_capacity(SMALL)
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Packet {}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}

/// Bytes of a tiny buffer: the headers of a segment without data, with all options.
const TINY: usize = 192;
/// Bytes of a tiny buffer that has grown once.
const LONGEST_TINY: usize = 2 * TINY;
/// Bytes that a tiny buffer has no room for.
const FIRST_SMALL: usize = TINY + 1;
/// Bytes of a small buffer: an Ethernet frame and any link's overhead.
const SMALL: usize = 1664;
/// Bytes of a large buffer: a 64 KiB super-segment and its metadata.
const LARGE: usize = 66 * 1024;
/// Bytes of a small buffer that has grown once.
const LONGEST_SMALL: usize = 2 * SMALL;
/// Tiny buffers that a thread keeps: 0.8 MiB, or 1.5 MiB if all have grown.
const TINY_KEPT: usize = 4096;
/// Small buffers that a thread keeps: 6.5 MiB, or 13 MiB if all have grown.
const SMALL_KEPT: usize = 4096;
/// Large buffers that a thread keeps: 8.3 MiB.
const LARGE_KEPT: usize = 128;

fn class_size(capacity: usize) -> usize {
    match capacity {
        ..=TINY => TINY,
        FIRST_SMALL..=SMALL => SMALL,
        _ => capacity.max(LARGE),
    }
}

fn give_back(bytes: Vec<u8>) {
    // Err only while the thread ends, when there is no pool to go back to.
    let _ = POOL.try_with(|pool| pool.borrow_mut().give(bytes));
}

struct Pool {
    tiny: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
}

impl Pool {
    fn take(&mut self, capacity: usize) -> Option<Vec<u8>> {
        match capacity {
            ..=TINY => self.tiny.pop(),
            FIRST_SMALL..=SMALL => self.small.pop(),
            _ if capacity <= LARGE => self.large.pop(),
            _ => None,
        }
    }

    fn give(&mut self, mut bytes: Vec<u8>) {
        let (list, kept) = match bytes.capacity() {
            TINY..=LONGEST_TINY => (&mut self.tiny, TINY_KEPT),
            SMALL..=LONGEST_SMALL => (&mut self.small, SMALL_KEPT),
            LARGE.. => (&mut self.large, LARGE_KEPT),
            // One that is long for a small packet would take the memory of many.
            _ => return,
        };
        if list.len() < kept {
            bytes.clear();
            list.push(bytes);
        }
    }
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { tiny: Vec::new(), small: Vec::new(), large: Vec::new() }) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_used_again() {
        for (len, next) in [(100, 40), (1000, 1500), (3000, 60_000)] {
            let mut first = Packet::for_len(len);
            first.resize(len);
            let address = first.as_ptr();
            drop(first);
            let second = Packet::for_len(next);
            assert_eq!((second.as_ptr(), second.len()), (address, 0));
        }
    }

    #[test]
    fn sizes_do_not_mix() {
        let tiny_at = Packet::for_len(10).as_ptr();
        let small_at = Packet::with_capacity(10).as_ptr();
        assert_ne!(tiny_at, small_at);
        let large = Packet::with_capacity(60_000);
        assert_ne!(large.as_ptr(), small_at);
        assert!(large.capacity() >= 60_000);
        drop(large);
        assert!(Packet::with_capacity(60_000).capacity() >= 60_000);
    }

    #[test]
    fn what_is_kept_takes_less_than_twice_its_bytes_or_a_small_buffer() {
        for len in [1, SMALL, SMALL + 1, 9000, LARGE / 2, LARGE / 2 + 1, 65_000] {
            let bytes = vec![7; len];
            let packet = Packet::kept(&bytes);
            assert_eq!(*packet, *bytes);
            assert!(packet.capacity() <= SMALL.max(2 * len), "{} for {len}", packet.capacity());
            drop(packet);
            assert!(
                Packet::with_capacity(1).capacity() <= LONGEST_SMALL,
                "a long buffer serves no short packet"
            );
        }
    }

    #[test]
    fn a_packet_is_fitted_with_its_bytes_and_its_expiry() {
        for (len, longest) in [(100, SMALL), (1800, 2250), (40_000, 50_000), (60_000, LARGE)] {
            let mut packet = Packet::with_capacity(len);
            packet.resize(len);
            packet[len - 1] = 7;
            packet.set_expiry(Some(Instant::ZERO));
            let before = packet.clone();
            let fitted = packet.fitted();
            assert!(fitted.capacity() <= longest, "{} for {len}", fitted.capacity());
            assert_eq!((&fitted, fitted.expires()), (&before, Some(Instant::ZERO)));
        }
    }

    #[test]
    fn an_expiry_goes_with_its_packet_and_with_no_other() {
        let mut packet = Packet::from_slice(b"late");
        packet.set_expiry(Some(Instant::ZERO));
        let copy = packet.clone();
        assert_eq!((copy.expires(), &copy), (Some(Instant::ZERO), &packet));
        drop(packet);
        assert_eq!(Packet::with_capacity(4).expires(), None, "the buffer that is used again has none");
        assert_eq!((Packet::empty().capacity(), Packet::empty().len()), (0, 0));
    }
}
