//! Class 010: packets that are sent once.
//!
//! The thesis defines the class and no more. Its frames are counted apart from those of class 001, outside window
//! and acknowledgements, since a frame that is never sent again would leave a gap there that never closes. The count shows
//! the receiver that a frame is missing: it then gives up the packet that it was putting together.

use base::Packet;

use crate::endpoint::Discard;
use crate::marks::Marks;
use crate::ready::Ready;
use crate::reassembly::Reassembly;

/// The packet that is being cut.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pending: Option<Packet>,
    /// Its marks.
    marks: Marks,
    cut: usize,
    next: u64,
}

impl Sender {
    /// Whether a packet waits to be cut, wholly or partly.
    #[inline]
    pub(crate) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes the next packet; none may be pending.
    pub(crate) fn offer(&mut self, packet: Packet) {
        debug_assert!(!self.is_pending(), "one packet at a time");
        self.marks = Marks::of(&packet);
        self.pending = Some(packet);
        self.cut = 0;
    }

    /// Appends the payload of a frame, of at most `room` bytes; `None` if there is none.
    pub(crate) fn poll(&mut self, room: usize, out: &mut Vec<u8>) -> Option<Cut> {
        let packet = self.pending.as_ref()?;
        let start = self.cut;
        let end = packet.len().min(start + room);
        let (first, last) = (start == 0, end == packet.len());
        let cut = Cut { first, last, number: self.next, marks: self.marks };
        out.extend_from_slice(&packet[start..end]);
        self.next += 1;
        self.cut = end;
        if cut.last {
            self.pending = None;
        }
        Some(cut)
    }

    /// Bytes of memory that the packet takes.
    pub(crate) fn memory(&self) -> usize {
        self.pending.as_ref().map_or(0, Packet::capacity)
    }

    /// Starts to count anew; a packet that was partly sent starts again.
    pub(crate) fn reset(&mut self) {
        self.cut = 0;
        self.next = 0;
    }
}

/// A frame whose payload is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) number: u64,
    pub(crate) marks: Marks,
}

/// Whose turn it is. Where class 001 has something to send too, each has half of the line, by bytes: frame by frame in turn, a call's short
/// packets would fall behind a file's long ones, and acknowledgements behind a film's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    /// Bytes by which class 010 is behind class 001; below zero if it is ahead.
    behind: i64,
    /// Frames of class 010 in a row.
    run: u32,
}

/// What class 001 has to do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    /// Something waits to be sent, new or again.
    Sending,
    /// Frames are unacknowledged.
    Waiting,
    Nothing,
}

impl Turns {
    /// Whether a frame of class 010 may go.
    pub(crate) fn is_here(self, meanwhile: Meanwhile) -> bool {
        match meanwhile {
            Meanwhile::Sending => self.behind >= 0,
            Meanwhile::Waiting => self.run < LONGEST_RUN,
            Meanwhile::Nothing => true,
        }
    }

    /// A frame of class 010 went.
    pub(crate) fn on_frame(&mut self, len: usize, meanwhile: Meanwhile) {
        self.run = self.run.saturating_add(1);
        if meanwhile == Meanwhile::Sending {
            self.behind -= len as i64;
        }
    }

    /// Another frame went, with so many bytes of class 001. A class that has nothing to send saves up no more than a frame.
    pub(crate) fn on_other(&mut self, len: usize) {
        self.run = 0;
        let len = len as i64;
        self.behind = (self.behind + len).min(self.behind.max(len));
    }
}

/// Puts the frames together as they come. On the air there are `SPACE` different numbers.
#[derive(Debug, Default)]
pub(crate) struct Receiver<const SPACE: u64> {
    /// Frames up to the latest, wrapping with the numbers on the air; `None` before the first.
    next: Option<u64>,
    /// Which of the last `OVERTAKEN` numbers have come, a bit each, the lowest for the latest; `None` if packets keep their order.
    come: Option<u128>,
    reassembly: Reassembly,
    late: u64,
    missing: u64,
}

impl<const SPACE: u64> Receiver<SPACE> {
    /// Lets a packet that is whole in its frame come out behind later ones, as when a call goes on over a nearer line: it is as good as it was.
    pub(crate) fn take_late(&mut self) {
        self.come.get_or_insert(0);
    }

    /// Takes a frame; a packet that it completes goes to `ready`.
    pub(crate) fn handle(
        &mut self,
        number: u32,
        first: bool,
        last: bool,
        payload: &[u8],
        ready: &mut Ready,
    ) -> Result<(), Discard> {
        let next = self.next.unwrap_or(0);
        let skipped = u64::from(number).wrapping_sub(next) % SPACE;
        let late = if self.come.is_some() { OVERTAKEN } else { LATE };
        if self.next.is_some() && skipped >= SPACE - late {
            self.late += 1;
            let place = 1 << (SPACE - skipped - 1);
            match &mut self.come {
                Some(come) if *come & place == 0 && first && last => *come |= place,
                _ => return Err(Discard::Late(number.into())),
            }
            ready.push(Packet::from_slice(payload));
            return Ok(());
        }
        if skipped > 0 {
            self.missing += skipped;
            self.reassembly.abort();
        }
        self.next = Some(next + skipped + 1);
        self.come = self.come.map(|come| come.checked_shl(skipped as u32 + 1).unwrap_or(0) | 1);
        if let Some(packet) = self.reassembly.push(first, last, payload) {
            ready.push(packet);
        }
        Ok(())
    }

    /// Forgets the sender.
    pub(crate) fn reset(&mut self) {
        (self.next, self.come) = (None, self.come.map(|_| 0));
        self.reassembly.abort();
    }

    /// Bytes of memory that the packet in the making takes.
    pub(crate) fn memory(&self) -> usize {
        self.reassembly.memory()
    }

    /// Frames that came after later ones.
    pub(crate) const fn late(&self) -> u64 {
        self.late
    }

    /// Frames that were skipped, modulo the sequence space in each gap.
    pub(crate) const fn missing(&self) -> u64 {
        self.missing
    }

    /// Packets of which a fragment was missing.
    pub(crate) const fn incomplete(&self) -> u64 {
        self.reassembly.incomplete()
    }
}

/// A number so little behind the expected one is a late frame's; any other tells of a gap. Ours: the line keeps order, so a number
/// far ahead nearly always means that a blockage swallowed many; 32 are enough for a carrier's duplicates.
const LATE: u64 = 32;
/// The same where a nearer line may overtake. Ours: a quarter of a second of 500 packets a second, and two seconds of a voice.
const OVERTAKEN: u64 = 128;

/// Frames of class 010 in a row while frames of class 001 are unacknowledged. Ours: an eighth of the line is enough to
/// find what was lost, and little for a voice to miss.
pub(crate) const LONGEST_RUN: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the packets that come out, each whole in a frame, where those of `frames` come in this order; and which of them were refused.
    fn taken(frames: &[u32]) -> (Vec<u8>, Vec<u32>) {
        let (mut receiver, mut ready) = (Receiver::<1024>::default(), Ready::holding(10));
        receiver.take_late();
        let is_refused = |&number: &u32| {
            receiver.handle(number % 1024, true, true, &[number as u8; 20], &mut ready).is_err()
        };
        let refused = frames.iter().copied().filter(is_refused).collect();
        (core::iter::from_fn(|| ready.pop()).map(|packet| packet[0]).collect(), refused)
    }

    /// What was overtaken comes out once, on either side of the numbers' end.
    #[test]
    fn a_whole_packet_may_be_late() {
        assert_eq!(
            taken(&[250, 253, 251, 252, 251, 253, 254]),
            (vec![250, 253, 251, 252, 254], vec![251, 253])
        );
        assert_eq!(taken(&[1022, 1025, 1023, 1024, 1024, 1022]), (vec![254, 1, 255, 0], vec![1024, 1022]));
        // 128 behind the next one at most; what is further behind is taken for a gap.
        assert_eq!(taken(&[300, 440, 313, 313]), (vec![44, 184, 57], vec![313]));
        assert_eq!(taken(&[300, 440, 312, 312]), (vec![44, 184, 56], vec![312]));
    }

    /// A part of a packet is of no use without the others, and harms none that is being put together.
    #[test]
    fn a_late_part_is_refused() {
        let (mut receiver, mut ready) = (Receiver::<1024>::default(), Ready::holding(10));
        receiver.take_late();
        let mut handle =
            |number, first, last| receiver.handle(number, first, last, &[number as u8; 4], &mut ready);
        handle(0, true, true).unwrap();
        handle(4, true, false).unwrap();
        assert_eq!(handle(1, true, false), Err(Discard::Late(1)));
        assert_eq!(handle(2, false, true), Err(Discard::Late(2)));
        handle(3, true, true).unwrap();
        handle(5, false, true).unwrap();
        let packets: Vec<_> = core::iter::from_fn(|| ready.pop()).map(|packet| packet.to_vec()).collect();
        assert_eq!(packets, [vec![0; 4], vec![3; 4], vec![4, 4, 4, 4, 5, 5, 5, 5]]);
    }
}
