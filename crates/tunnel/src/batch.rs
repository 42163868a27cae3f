//! Sealed datagrams on their way to one send call.
//!
//! The kernel segments a batch at a fixed size and gives all parts one header, so all datagrams of a batch are as long as
//! its first, and have its marks; only the last may be shorter. A datagram that does not go with the others waits behind
//! them for the next batch.
//!
//! The room for a batch is lent from turn to turn: of a thousand tunnels each would write to memory that has left the cache.

use link::Marks;

/// Datagrams, back to back.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Length of each datagram but the last; zero while there is none.
    segment: usize,
    marks: Marks,
    count: usize,
    /// Whether nothing more fits.
    closed: bool,
    /// Where the datagram starts that does not go with the others, and its marks.
    apart: Option<(usize, Marks)>,
}

/// Room for batches that nobody uses, what was used last on top.
#[derive(Debug, Default)]
pub struct Rooms(Vec<Vec<u8>>);

/// Rooms that are kept: as many batches as wait for more packets at a time, usually.
const MOST_ROOMS: usize = 8;

/// Bytes of a batch: what one IP packet can hold, less its headers.
const BATCH_LIMIT: usize = 65_535 - 48;

/// Datagrams that one send takes, where the carrier takes that many: `UDP_MAX_SEGMENTS` of older kernels.
const MOST_DATAGRAMS: usize = 64;

/// How many datagrams of `len` bytes a batch holds: one at least, however long.
#[must_use]
pub fn datagrams_of(len: usize) -> usize {
    (BATCH_LIMIT / len).clamp(1, MOST_DATAGRAMS)
}

impl Batch {
    /// Takes room that nobody uses, unless it has its own.
    pub fn borrow(&mut self, rooms: &mut Rooms) {
        if self.bytes.capacity() == 0
            && let Some(room) = rooms.0.pop()
        {
            self.bytes = room;
        }
    }

    /// Leaves its room to others if it is empty.
    pub fn give_back(&mut self, rooms: &mut Rooms) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            let room = core::mem::take(&mut self.bytes);
            if rooms.0.len() < MOST_ROOMS {
                rooms.0.push(room);
            }
        }
    }

    /// Whether a datagram of up to `len` bytes can be appended, where a call takes `limit` datagrams. One that is longer than
    /// that, though it should not be, leaves alone.
    #[must_use]
    pub fn has_room(&self, len: usize, limit: usize) -> bool {
        let is_open = !self.closed && self.apart.is_none() && self.segment <= len;
        let fits = self.count < limit && self.bytes.len() + len <= BATCH_LIMIT;
        self.is_empty() || (is_open && fits)
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes for one call, and the length of each datagram but the last.
    #[must_use]
    pub fn contents(&self) -> (&[u8], usize) {
        let end = self.apart.map_or(self.bytes.len(), |(start, _)| start);
        (&self.bytes[..end], self.segment.max(1))
    }

    /// What the headers of all its datagrams say.
    #[must_use]
    pub const fn marks(&self) -> Marks {
        self.marks
    }

    /// The buffer, to append a datagram to; [`Batch::finish_datagram`] follows.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The datagram that starts at `start` is complete, and goes with `marks`.
    pub fn finish_datagram(&mut self, start: usize, marks: Marks) {
        let len = self.bytes.len() - start;
        if self.count == 0 {
            (self.segment, self.marks) = (len, marks);
        } else if len > self.segment || marks != self.marks {
            self.apart = Some((start, marks));
            return;
        }
        self.count += 1;
        self.closed |= len < self.segment;
    }

    /// Datagrams for one call.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Forgets what [`Batch::contents`] gave, and keeps its room. A datagram that did not go with that is the next batch.
    pub fn on_sent(&mut self) {
        let apart = self.apart.take();
        self.bytes.drain(..apart.map_or(self.bytes.len(), |(start, _)| start));
        (self.segment, self.count, self.closed) = (0, 0, false);
        if let Some((_, marks)) = apart {
            self.finish_datagram(0, marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::wire::ip::Ecn;

    const EF: Marks = Marks::new(46, Ecn::NotEct);

    fn push(batch: &mut Batch, len: usize, marks: Marks) {
        let start = batch.buffer().len();
        batch.buffer().resize(start + len, 0);
        batch.finish_datagram(start, marks);
    }

    /// Bytes, segment, datagrams and marks.
    fn contents(batch: &Batch) -> (usize, usize, usize, Marks) {
        let (bytes, segment) = batch.contents();
        (bytes.len(), segment, batch.len(), batch.marks())
    }

    #[test]
    fn only_the_last_datagram_may_be_shorter() {
        let mut batch = Batch::default();
        assert!(batch.is_empty() && batch.has_room(1000, 64));
        push(&mut batch, 1000, EF);
        push(&mut batch, 1000, EF);
        assert!(batch.has_room(1000, 64) && !batch.has_room(1000, 2));
        push(&mut batch, 900, EF);
        assert!(!batch.has_room(900, 64), "a shorter one closes the batch");
        assert_eq!(contents(&batch), (2900, 1000, 3, EF));
        batch.on_sent();
        assert!(batch.is_empty() && batch.has_room(1000, 64));
    }

    #[test]
    fn a_longer_datagram_waits_for_the_next_batch() {
        let mut batch = Batch::default();
        push(&mut batch, 10, EF);
        push(&mut batch, 11, EF);
        assert!(!batch.has_room(10, 64));
        assert_eq!(contents(&batch), (10, 10, 1, EF));
        batch.on_sent();
        assert_eq!(contents(&batch), (11, 11, 1, EF));
        assert!(batch.has_room(11, 64), "others may go with it");
    }

    #[test]
    fn a_datagram_with_other_marks_waits_for_the_next_batch() {
        for other in [Marks::new(46, Ecn::Ect0), Marks::new(0, Ecn::NotEct)] {
            let mut batch = Batch::default();
            push(&mut batch, 10, EF);
            push(&mut batch, 10, EF);
            push(&mut batch, 7, other);
            assert!(!batch.has_room(10, 64));
            assert_eq!(contents(&batch), (20, 10, 2, EF));
            batch.on_sent();
            assert_eq!(contents(&batch), (7, 7, 1, other));
            push(&mut batch, 7, other);
            assert_eq!(contents(&batch), (14, 7, 2, other));
            batch.on_sent();
            assert!(batch.is_empty());
        }
    }

    #[test]
    fn what_is_longer_than_anything_should_be_leaves_alone() {
        let mut batch = Batch::default();
        push(&mut batch, 10, EF);
        push(&mut batch, 30, EF);
        batch.on_sent();
        assert!(!batch.has_room(20, 64));
        assert_eq!(contents(&batch), (30, 30, 1, EF));
        batch.on_sent();
        assert!(batch.has_room(20, 64));
    }

    #[test]
    fn a_batch_fits_one_packet() {
        let mut batch = Batch::default();
        while batch.has_room(1472, 64) {
            push(&mut batch, 1472, EF);
        }
        assert_eq!((batch.len(), datagrams_of(1472), datagrams_of(500)), (44, 44, 64));
    }

    /// A batch that waits keeps its room; one that has left leaves it to the next, of another tunnel.
    #[test]
    fn room_goes_from_one_batch_to_the_next() {
        let (mut rooms, mut batches) = (Rooms::default(), [(); 10].map(|()| Batch::default()));
        let [one, other, ..] = &mut batches;
        for batch in [&mut *one, &mut *other] {
            batch.borrow(&mut rooms);
            push(batch, 1000, EF);
            batch.give_back(&mut rooms);
        }
        assert_eq!((rooms.0.len(), contents(one)), (0, (1000, 1000, 1, EF)), "they wait");
        one.on_sent();
        let place = one.buffer().as_ptr();
        one.give_back(&mut rooms);
        assert_eq!((rooms.0.len(), one.bytes.capacity()), (1, 0));
        one.borrow(&mut rooms);
        assert_eq!((rooms.0.len(), one.buffer().as_ptr()), (0, place));
        for batch in &mut batches {
            push(batch, 1000, EF);
            batch.on_sent();
        }
        for batch in &mut batches {
            batch.give_back(&mut rooms);
        }
        assert_eq!(rooms.0.len(), MOST_ROOMS);
    }

    /// A path of jumbo packets: IPv4's longest datagram leaves by itself.
    #[test]
    fn the_longest_datagram_is_a_batch() {
        let mut batch = Batch::default();
        for _ in 0..2 {
            assert!(batch.has_room(65_507, 64));
            push(&mut batch, 65_507, EF);
            assert!(!batch.has_room(65_507, 64));
            batch.on_sent();
        }
        assert_eq!(datagrams_of(65_507), 1);
    }
}
