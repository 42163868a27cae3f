//! Frames that are longer than a datagram holds now, because they were made when the path carried longer packets: they leave in parts.
//!
//! A frame that was numbered cannot be made shorter, and a path that drops long packets would never carry it, however often it is
//! repeated. Nor can routers be asked to fragment it: the path may drop in silence. So the ends cut it and put it together again.
//!
//! | bytes of a part | field |
//! |---|---|
//! | 2 | number of the frame, little-endian |
//! | 1 | number of the part, from 0 |
//! | 1 | parts of the frame |
//!
//! Behind them are the frame's bytes. A frame of which a part is lost is lost.
//!
//! **Bounds**, whatever the peer sends: 32 frames of the longest length and as many notes about 255 parts each, 2.4 MB of memory. A frame that
//! would be longer is dropped. A part costs a look at each of the frames and at its parts.

use std::collections::VecDeque;

use base::wire::ip::Ecn;
use link::Marks;

/// Bytes before those of the frame.
const HEADER_LEN: usize = 4;
/// Frames that wait for parts; the oldest goes. Ours: more than parts are overtaken by.
const KEPT: usize = 32;
/// Bytes of a frame that was cut at most: those of the longest datagram.
const LONGEST: usize = 65_535;
/// Numbers by which parts of one time differ at most. Numbers come round, so what is left of a frame that is farther away is dropped,
/// or it would be taken for part of a later frame. Ours: far more than are on the way at once.
const REACH: u16 = 4096;

/// Parts on their way out and in.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    number: u16,
    /// Bodies that are still to leave, with the marks of their frame.
    leaving: VecDeque<(Vec<u8>, Marks)>,
    arriving: VecDeque<Arriving>,
    /// Frames that were cut.
    pub(crate) cut: u64,
}

/// A frame of which parts have come.
#[derive(Debug)]
struct Arriving {
    number: u16,
    parts: Vec<Option<Vec<u8>>>,
    /// Bytes in them.
    bytes: usize,
    ecn: Ecn,
}

impl Parts {
    /// Cuts `frame` into bodies of up to `limit` bytes, to be taken with [`Parts::pop`].
    pub(crate) fn cut(&mut self, frame: &[u8], limit: usize, marks: Marks) {
        let payload = limit.saturating_sub(HEADER_LEN).max(1);
        let chunks = frame.chunks(payload);
        let Ok(count) = u8::try_from(chunks.len()) else {
            debug_assert!(false, "a datagram is shorter than 255 of the shortest");
            return;
        };
        self.number = self.number.wrapping_add(1);
        self.cut += 1;
        for (at, chunk) in (0..count).zip(chunks) {
            let [low, high] = self.number.to_le_bytes();
            self.leaving.push_back(([&[low, high, at, count], chunk].concat(), marks));
        }
    }

    /// Forgets all parts: the peer has restarted, and a former life's frames must not meet its new state.
    pub(crate) fn restart(&mut self) {
        self.leaving.clear();
        self.arriving.clear();
    }

    /// Bytes of memory that they take. Of frames that arrive there are few.
    pub(crate) fn memory(&self) -> usize {
        let arriving = |frame: &Arriving| frame.bytes + frame.parts.capacity() * size_of::<Option<Vec<u8>>>();
        let leaving = self.leaving.front().map_or(0, |(body, _)| body.capacity());
        self.arriving.iter().map(arriving).sum::<usize>() + self.leaving.len() * leaving
    }

    /// Whether a part waits to leave.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The next part that leaves.
    pub(crate) fn pop(&mut self) -> Option<(Vec<u8>, Marks)> {
        self.leaving.pop_front()
    }

    /// Takes a part that came with this ECN field; the frame and its field, congestion on any part's way included, if it is complete now.
    pub(crate) fn handle(&mut self, ecn: Ecn, body: &[u8]) -> Option<(Vec<u8>, Ecn)> {
        let (&[low, high, at, count], chunk) = body.split_first_chunk::<HEADER_LEN>()?;
        let (number, at, count) = (u16::from_le_bytes([low, high]), usize::from(at), usize::from(count));
        if at >= count {
            return None;
        }
        let is_near = |other: u16| {
            let ahead = number.wrapping_sub(other);
            ahead.min(ahead.wrapping_neg()) <= REACH
        };
        self.arriving.retain(|frame| is_near(frame.number));
        let known = |frame: &Arriving| frame.number == number && frame.parts.len() == count;
        let place = self.arriving.iter().position(known).unwrap_or_else(|| {
            if self.arriving.len() == KEPT {
                self.arriving.pop_front();
            }
            self.arriving.push_back(Arriving { number, parts: vec![None; count], bytes: 0, ecn });
            self.arriving.len() - 1
        });
        let frame = &mut self.arriving[place];
        let before = frame.parts[at].replace(chunk.to_vec());
        frame.bytes = frame.bytes + chunk.len() - before.map_or(0, |chunk| chunk.len());
        if frame.bytes > LONGEST {
            self.arriving.remove(place);
            return None;
        }
        if ecn == Ecn::Ce {
            frame.ecn = ecn;
        }
        if frame.parts.iter().any(Option::is_none) {
            return None;
        }
        let Arriving { parts, ecn, .. } = self.arriving.remove(place)?;
        Some((parts.into_iter().flatten().collect::<Vec<_>>().concat(), ecn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(frame: &[u8], limit: usize) -> Vec<Vec<u8>> {
        let mut parts = Parts::default();
        parts.cut(frame, limit, Marks::default());
        core::iter::from_fn(|| parts.pop()).map(|(body, _)| body).collect()
    }

    proptest! {
        #[test]
        fn parts_in_any_order_and_repeated_make_the_frame(
            len in 1_usize..4000,
            limit in 20_usize..1500,
            seed in any::<u64>(),
        ) {
            let frame: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut bodies = cut(&frame, limit);
            prop_assert!(bodies.iter().all(|body| body.len() <= limit));
            let last = bodies.pop().unwrap();
            let mut rng = base::Rng::named(seed, "order");
            for at in (1..bodies.len()).rev() {
                bodies.swap(at, rng.below(at as u64 + 1) as usize);
            }
            let mut parts = Parts::default();
            for body in bodies.iter().chain(&bodies) {
                prop_assert_eq!(parts.handle(Ecn::Ect0, body), None);
            }
            prop_assert_eq!(parts.handle(Ecn::Ect0, &last), Some((frame, Ecn::Ect0)));
            prop_assert!(parts.arriving.is_empty());
        }

        #[test]
        fn no_bytes_panic(bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 0..80)) {
            let mut parts = Parts::default();
            for body in bodies {
                parts.handle(Ecn::NotEct, &body);
                prop_assert!(parts.arriving.len() <= KEPT);
            }
        }
    }

    /// Goal: parts without end take no more memory than the longest frames that may wait.
    #[test]
    fn parts_of_no_frame_take_bounded_memory() {
        let mut parts = Parts::default();
        let body = |number: u16, at: u8| {
            let [low, high] = number.to_le_bytes();
            [&[low, high, at, 255][..], &[7; 60_000]].concat()
        };
        for number in 0..40 {
            for at in 0..254 {
                assert_eq!(parts.handle(Ecn::NotEct, &body(number, at)), None);
                let held: usize = parts
                    .arriving
                    .iter()
                    .flat_map(|frame| frame.parts.iter().flatten())
                    .map(Vec::capacity)
                    .sum();
                assert!(held <= KEPT * LONGEST, "{held}");
            }
        }
        assert!(parts.arriving.len() <= KEPT);
        // The longest frame that there is still comes whole.
        let frame = vec![7; LONGEST];
        let whole: Vec<_> =
            cut(&frame, 1400).iter().filter_map(|body| parts.handle(Ecn::NotEct, body)).collect();
        assert_eq!(whole, [(frame, Ecn::NotEct)]);
    }

    #[test]
    fn congestion_on_the_way_of_any_part_counts() {
        let mut parts = Parts::default();
        let bodies = cut(&[7; 100], 44);
        assert_eq!(bodies.len(), 3);
        assert_eq!(parts.handle(Ecn::Ect0, &bodies[0]), None);
        assert_eq!(parts.handle(Ecn::Ce, &bodies[1]), None);
        assert_eq!(parts.handle(Ecn::Ect0, &bodies[2]), Some((vec![7; 100], Ecn::Ce)));
    }

    #[test]
    fn a_former_life_s_parts_make_no_frame_of_the_new_one() {
        let (mut sender, mut receiver) = (Parts::default(), Parts::default());
        sender.cut(&[7; 60], 44, Marks::default());
        assert_eq!(receiver.handle(Ecn::NotEct, &sender.pop().unwrap().0), None);
        let (last, _) = sender.pop().unwrap();
        receiver.restart();
        assert_eq!(receiver.handle(Ecn::NotEct, &last), None);
        sender.cut(&[7; 60], 44, Marks::default());
        assert!(sender.is_leaving());
        sender.restart();
        assert!(!sender.is_leaving());
    }

    /// Numbers come round: what is left of a frame must not become part of one that has its number much later.
    #[test]
    fn parts_of_long_ago_are_in_no_frame() {
        let (mut sender, mut receiver) = (Parts::default(), Parts::default());
        sender.cut(&[1; 120], 44, Marks::default());
        let old: Vec<_> = core::iter::from_fn(|| sender.pop()).collect();
        assert_eq!(old.len(), 3);
        assert_eq!(receiver.handle(Ecn::NotEct, &old[2].0), None);
        for round in 0..=u32::from(u16::MAX) {
            sender.cut(&round.to_le_bytes().repeat(30), 44, Marks::default());
            let whole = core::iter::from_fn(|| sender.pop());
            let whole: Vec<_> = whole.filter_map(|(body, _)| receiver.handle(Ecn::NotEct, &body)).collect();
            assert_eq!(whole, [(round.to_le_bytes().repeat(30), Ecn::NotEct)]);
        }
        assert!(receiver.arriving.is_empty());
    }

    #[test]
    fn a_frame_whose_part_is_lost_is_forgotten() {
        let (mut sender, mut receiver) = (Parts::default(), Parts::default());
        for round in 0..KEPT + 1 {
            sender.cut(&[round as u8; 60], 44, Marks::default());
            let (first, _) = sender.pop().unwrap();
            let _ = sender.pop();
            assert_eq!(receiver.handle(Ecn::NotEct, &first), None);
        }
        assert_eq!(receiver.arriving.len(), KEPT);
        sender.cut(&[9; 60], 44, Marks::default());
        let whole =
            core::iter::from_fn(|| sender.pop()).filter_map(|(body, _)| receiver.handle(Ecn::NotEct, &body));
        assert_eq!(whole.collect::<Vec<_>>(), [(vec![9; 60], Ecn::NotEct)]);
    }
}
