//! Sealed datagrams on their way to one send call.
//!
//! The kernel segments a batch at a fixed size, so all datagrams of a batch are as long as its first, and
//! only the last may be shorter.

/// Datagrams, back to back.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Length of each datagram but the last; zero while there is none.
    segment: usize,
    count: usize,
    /// Whether nothing more fits.
    closed: bool,
}

/// Bytes of a batch: what one IP packet can hold, less its headers.
const BATCH_LIMIT: usize = 65_535 - 48;

/// Datagrams that one send takes, where the carrier takes that many: `UDP_MAX_SEGMENTS` of older kernels.
const MOST_DATAGRAMS: usize = 64;

/// How many datagrams of `len` bytes a batch holds.
#[must_use]
pub const fn datagrams_of(len: usize) -> usize {
    let fitting = BATCH_LIMIT / len;
    if fitting < MOST_DATAGRAMS { fitting } else { MOST_DATAGRAMS }
}

impl Batch {
    /// Whether a datagram of up to `len` bytes can be appended, where a call takes `limit` datagrams.
    /// A batch that already waits takes no datagram that is longer than its first.
    #[must_use]
    pub fn has_room(&self, len: usize, limit: usize) -> bool {
        !self.closed && self.count < limit && self.bytes.len() + len <= BATCH_LIMIT
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes, and the length of each datagram but the last.
    #[must_use]
    pub fn contents(&self) -> (&[u8], usize) {
        (&self.bytes, self.segment.max(1))
    }

    /// The buffer, to append a datagram to; [`Batch::finish_datagram`] follows.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The datagram that starts at `start` is complete. False if it is longer than the batch's others: then
    /// it must leave by itself, the only one that [`Batch::keep_from`] keeps.
    pub fn finish_datagram(&mut self, start: usize) -> bool {
        let len = self.bytes.len() - start;
        if self.count == 0 {
            self.segment = len;
        } else if len > self.segment {
            return false;
        }
        self.count += 1;
        self.closed |= len < self.segment;
        true
    }

    /// Makes the datagram that starts at `start` the only one, after the others were sent.
    pub fn keep_from(&mut self, start: usize) {
        self.bytes.drain(..start);
        self.segment = self.bytes.len();
        self.count = 1;
        self.closed = false;
    }

    /// Datagrams in the batch.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Empties the batch and keeps its room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.segment = 0;
        self.count = 0;
        self.closed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(batch: &mut Batch, len: usize) -> bool {
        let start = batch.buffer().len();
        batch.buffer().resize(start + len, 0);
        batch.finish_datagram(start)
    }

    #[test]
    fn only_the_last_datagram_may_be_shorter() {
        let mut batch = Batch::default();
        assert!(batch.is_empty() && batch.has_room(1000, 64));
        assert!(push(&mut batch, 1000) && push(&mut batch, 1000));
        assert!(batch.has_room(1000, 64) && !batch.has_room(1000, 2));
        assert!(push(&mut batch, 900));
        assert!(!batch.has_room(900, 64), "a shorter one closes the batch");
        assert_eq!((batch.contents().0.len(), batch.contents().1, batch.len()), (2900, 1000, 3));
        batch.clear();
        assert!(push(&mut batch, 10) && !push(&mut batch, 11), "a longer one must start a batch");
        batch.keep_from(10);
        assert_eq!((batch.contents().0.len(), batch.contents().1, batch.len()), (11, 11, 1));
    }

    #[test]
    fn a_batch_fits_one_packet() {
        let mut batch = Batch::default();
        while batch.has_room(1472, 64) {
            assert!(push(&mut batch, 1472));
        }
        assert_eq!((batch.len(), datagrams_of(1472), datagrams_of(500)), (44, 44, 64));
    }
}
