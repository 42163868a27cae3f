//! What an endpoint tells observers: what its frames say, and what it concludes.
//!
//! The lab's event log is made of these. An endpoint that nobody observes keeps none.

use std::collections::VecDeque;

use base::Packet;

use crate::cotmll::Trailer;

/// Something that an endpoint said, heard or concluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The latest frame is complete, with these fields. Follows
    /// [`Endpoint::poll_frame`](crate::Endpoint::poll_frame) if that completed the frame, otherwise
    /// [`Endpoint::seal_frame`](crate::Endpoint::seal_frame).
    Sent(Header),
    /// The frame that just arrived has these fields.
    Received(Header),
    /// These frames are now taken for lost, and will be sent again unless they turn out to have arrived. Sequence
    /// numbers as they are on the air, in the order of the window.
    TakenForLost(Box<[u16]>),
    /// This packet will not arrive whole: a frame of it was lost as often as the protocol sends one. The link lost it, not congestion, which is
    /// what an explicit loss notification to TCP would say (Kojo et al. 2005, section 7).
    GivenUp(Packet),
}

/// The protocol fields of a frame, one variant for each protocol that has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// COTMLL's trailer.
    Cotmll(Trailer),
}

/// Events that wait for an observer.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// None while nobody observes.
    kept: Option<VecDeque<Event>>,
    dropped: u64,
}

impl Events {
    /// From now on events are kept.
    pub(crate) fn observe(&mut self) {
        self.kept.get_or_insert_default();
    }

    #[inline]
    pub(crate) const fn is_observed(&self) -> bool {
        self.kept.is_some()
    }

    /// Keeps an event if somebody observes.
    #[inline]
    pub(crate) fn push(&mut self, event: impl FnOnce() -> Event) {
        if let Some(kept) = &mut self.kept {
            if kept.len() < LIMIT {
                kept.push_back(event());
            } else {
                self.dropped += 1;
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.kept.as_mut()?.pop_front()
    }

    /// Events that found no room because the observer did not read them.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Events. Ours: a call makes two or three, and an observer reads them after each call.
const LIMIT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_for_an_observer_only_and_not_without_end() {
        let mut events = Events::default();
        let flag = |n: usize| move || Event::TakenForLost(Box::new([n as u16]));
        events.push(flag(0));
        assert_eq!((events.pop(), events.is_observed()), (None, false));
        events.observe();
        (0..LIMIT + 3).for_each(|n| events.push(flag(n)));
        // To observe again forgets nothing.
        events.observe();
        assert_eq!(events.dropped(), 3);
        for n in 0..LIMIT {
            assert_eq!(events.pop(), Some(flag(n)()));
        }
        assert_eq!(events.pop(), None);
    }
}
