//! Room that queues keep once they have been long. Their owners count it as memory, so it has to go when they are short again.

use std::collections::VecDeque;

/// Gives back most of the room of a queue that is far shorter than it was. Each element that comes or goes pays for a move or two.
#[inline]
pub(crate) fn give_back<T>(queue: &mut VecDeque<T>) {
    let room = queue.capacity();
    if room > KEPT && queue.len() < room / 8 {
        queue.shrink_to(KEPT.max(2 * queue.len()));
    }
}

/// Bytes that the room of a queue takes.
#[inline]
pub(crate) fn room<T>(queue: &VecDeque<T>) -> usize {
    queue.capacity() * size_of::<T>()
}

/// Elements for which a queue always keeps room. Ours: a few hundred of them are a tenth of what a tunnel may always have.
const KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_was_long_keeps_room_for_little_and_what_is_in_it() {
        let mut queue: VecDeque<u32> = (0..10_000).collect();
        for left in [5000, 1000, 300, 7, 0] {
            queue.truncate(left);
            give_back(&mut queue);
            assert!(queue.capacity() <= 8 * left.max(KEPT) + 16, "room for {} with {left}", queue.capacity());
            assert!(queue.iter().copied().eq(0..left as u32));
        }
        assert_eq!(room(&queue), 4 * queue.capacity());
    }
}
