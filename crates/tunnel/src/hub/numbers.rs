//! Numbers of peers, by worker: which come next, and who has the fewest peers.

use super::PeerId;
use crate::worker::WorkerId;

#[derive(Debug)]
pub(super) struct Numbers(Vec<Column>);

/// The numbers of one worker's peers.
#[derive(Debug, Default)]
struct Column {
    /// Those that are free again.
    vacant: Vec<u32>,
    /// How many were ever used.
    used: u32,
}

impl Numbers {
    pub(super) fn new(worker: WorkerId) -> Self {
        Self((0..worker.count()).map(|_| Column::default()).collect())
    }

    /// The worker that has the fewest peers; the first of several.
    pub(super) fn least(&self) -> u32 {
        let counts = self.0.iter().map(|column| column.used - column.vacant.len() as u32);
        (0..).zip(counts).min_by_key(|(_, count)| *count).map_or(0, |(worker, _)| worker)
    }

    /// The number of the next peer of a worker, which is not taken yet.
    pub(super) fn next(&self, worker: u32) -> PeerId {
        let column = &self.0[worker as usize];
        PeerId(column.vacant.last().copied().unwrap_or(column.used * self.0.len() as u32 + worker))
    }

    /// That number is taken.
    pub(super) fn take(&mut self, worker: u32) {
        let column = &mut self.0[worker as usize];
        if column.vacant.pop().is_none() {
            column.used += 1;
        }
    }

    /// A number that was taken here is free again.
    pub(super) fn free(&mut self, id: PeerId) {
        let count = self.0.len();
        self.0[id.at() % count].vacant.push(id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(numbers: &mut Numbers) -> u32 {
        let worker = numbers.least();
        let id = numbers.next(worker);
        numbers.take(worker);
        assert_eq!(id.0 % 3, worker);
        id.0
    }

    #[test]
    fn peers_go_where_fewest_are_and_numbers_are_used_again() {
        let worker = WorkerId::all(3).next().unwrap();
        let mut numbers = Numbers::new(worker);
        let taken: Vec<_> = (0..7).map(|_| take(&mut numbers)).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6]);
        [1, 4].into_iter().for_each(|number| numbers.free(PeerId(number)));
        assert_eq!([(); 4].map(|()| take(&mut numbers)), [4, 1, 7, 8]);
    }
}
