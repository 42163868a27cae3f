//! Transmissions by age, those of each line by themselves.

use std::collections::VecDeque;

use crate::arq::lines::{LineId, Transmission};
use crate::slack;

/// Every transmission of a frame that may be unacknowledged. One that is out of date is dropped when it comes to the front.
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// Over the first line, oldest first: serial and frame.
    first: VecDeque<(u64, u64)>,
    /// Over the others.
    others: Vec<VecDeque<(u64, u64)>>,
}

impl Ages {
    /// The lines over which anything has left.
    pub(super) fn lines(&self) -> impl Iterator<Item = LineId> + use<> {
        (0..=self.others.len() as u8).filter_map(LineId::new)
    }

    /// The oldest over a line.
    pub(super) fn front(&self, line: LineId) -> Option<(u64, u64)> {
        match line.at().checked_sub(1) {
            None => self.first.front().copied(),
            Some(place) => self.others.get(place)?.front().copied(),
        }
    }

    pub(super) fn pop_front(&mut self, line: LineId) {
        self.of(line).pop_front();
    }

    pub(super) fn push(&mut self, Transmission { line, serial }: Transmission, sequence: u64) {
        self.of(line).push_back((serial, sequence));
    }

    /// Transmissions over a line, oldest first, that were out of date and are not any more. None of those that are there is older.
    pub(super) fn put_back(&mut self, line: LineId, transmissions: Vec<(u64, u64)>) {
        let ages = self.of(line);
        transmissions.into_iter().rev().for_each(|transmission| ages.push_front(transmission));
    }

    fn of(&mut self, line: LineId) -> &mut VecDeque<(u64, u64)> {
        let Some(place) = line.at().checked_sub(1) else { return &mut self.first };
        if self.others.len() <= place {
            self.others.resize_with(place + 1, VecDeque::new);
        }
        &mut self.others[place]
    }

    fn all(&mut self) -> impl Iterator<Item = (LineId, &mut VecDeque<(u64, u64)>)> {
        let others =
            self.others.iter_mut().zip(1..).filter_map(|(it, number)| Some((LineId::new(number)?, it)));
        core::iter::once((LineId::FIRST, &mut self.first)).chain(others)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.others.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Keeps those for which this holds: a transmission and its frame.
    pub(super) fn retain(&mut self, holds: impl Fn(Transmission, u64) -> bool) {
        for (line, ages) in self.all() {
            ages.retain(|(serial, sequence)| holds(Transmission { line, serial: *serial }, *sequence));
            slack::give_back(ages);
        }
    }

    pub(super) fn clear(&mut self) {
        self.all().for_each(|(_, ages)| ages.clear());
    }

    pub(super) fn give_back(&mut self) {
        self.all().for_each(|(_, ages)| slack::give_back(ages));
    }

    /// Bytes of memory that they take.
    pub(super) fn memory(&self) -> usize {
        slack::room(&self.first) + self.others.iter().map(slack::room).sum::<usize>()
    }
}
