//! What is on its way over a line.

use std::collections::VecDeque;

use base::{Instant, Packet};

use crate::node::insert_by_arrival;

/// Packets in the order of their arrival. The next one stands apart from those behind it: on most lines of a large network there
/// are none, and the line itself is all the memory that has to be looked at.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    next: Option<(Instant, Packet)>,
    behind: VecDeque<(Instant, Packet)>,
}

impl InFlight {
    /// When the next packet arrives; [`Instant::MAX`] if there is none, or it never does.
    #[inline]
    pub(super) fn next_arrival(&self) -> Instant {
        self.next.as_ref().map_or(Instant::MAX, |(at, _)| *at)
    }

    /// Adds a packet that arrives then, after those that arrive at the same time.
    #[inline]
    pub(super) fn push(&mut self, at: Instant, packet: Packet) {
        match &mut self.next {
            None => self.next = Some((at, packet)),
            Some((next, _)) if *next <= at => {
                insert_by_arrival(&mut self.behind, (at, packet), |(at, _)| *at);
            }
            Some(overtaken) => {
                let overtaken = core::mem::replace(overtaken, (at, packet));
                self.behind.push_front(overtaken);
            }
        }
    }

    /// Takes the next packet if it has arrived by `now`.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<Packet> {
        let (_, packet) = self.next.take_if(|(at, _)| *at <= now)?;
        self.next = self.behind.pop_front();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is sorted anew for each packet: by arrival, then by departure.
        #[test]
        fn packets_arrive_in_the_order_of_their_times(arrivals in proptest::collection::vec(0_u64..20, 0..40), pops in 0_u64..20) {
            let (mut in_flight, mut model) = (InFlight::default(), Vec::new());
            for (number, &at) in arrivals.iter().enumerate() {
                in_flight.push(Instant::from_nanos(at), Packet::from_slice(&[number as u8]));
                model.push((at, number as u8));
                model.sort_unstable();
                let first = model.first().map_or(Instant::MAX, |(at, _)| Instant::from_nanos(*at));
                prop_assert_eq!(in_flight.next_arrival(), first);
                let due = model.first().filter(|(at, _)| *at <= pops).copied();
                let popped = in_flight.pop(Instant::from_nanos(pops)).map(|packet| packet[0]);
                prop_assert_eq!(popped, due.map(|(_, number)| number));
                if due.is_some() {
                    model.remove(0);
                }
            }
        }
    }
}
