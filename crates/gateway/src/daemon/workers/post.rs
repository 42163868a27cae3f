//! What workers pass to each other: packets and datagrams that the kernel gave to the wrong one, and calls that the first has admitted.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::mpsc::{self, Receiver, SyncSender};

use base::Packet;
use base::wire::ip::Ecn;
use tunnel::WorkerId;
use tunnel::counters::Counter;
use tunnel::hub::Handover;
use tunnel::path::Path;

use super::bell::Bell;

/// Something for another worker.
#[derive(Debug)]
pub(in crate::daemon) enum Parcel {
    /// From the LAN, for one of its peers.
    Packet(Packet),
    /// From the carrier, for one of its sessions.
    Datagram(Path, Ecn, Vec<u8>),
    /// To be answered.
    Call(Handover),
}

/// Where one worker finds what the others have for it, and leaves what it has for them.
#[derive(Debug)]
pub(in crate::daemon) struct Post {
    worker: WorkerId,
    inbox: Receiver<Parcel>,
    pub(super) bell: Bell,
    /// By number; its own is never used.
    others: Vec<(SyncSender<Parcel>, Bell)>,
    counts: Counts,
}

/// What was passed to others, and what found no room there.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(in crate::daemon) struct Counts {
    packets: Counter,
    packets_without_room: Counter,
    datagrams: Counter,
    datagrams_without_room: Counter,
    calls: Counter,
    calls_without_room: Counter,
    /// Packets that were another worker's again when they came, since peers had changed meanwhile.
    packets_astray: Counter,
}

/// Parcels that wait for a worker, at most: what a gigabit brings in 10 ms. With super-segments they are up to 64 MiB.
const ROOM: usize = 1024;

impl Post {
    /// One for each of `count` workers; none for a single one.
    ///
    /// # Errors
    /// There is no room for a pipe.
    pub(in crate::daemon) fn all(count: u32) -> io::Result<impl Iterator<Item = Self>> {
        let (mut inboxes, mut others) = (Vec::new(), Vec::new());
        for worker in WorkerId::all(count).filter(|worker| !worker.is_only()) {
            let (sender, inbox) = mpsc::sync_channel(ROOM);
            let bell = Bell::new()?;
            others.push((sender, bell.clone()));
            inboxes.push((worker, inbox, bell));
        }
        let post = move |(worker, inbox, bell)| {
            let (others, counts) = (others.clone(), Counts::default());
            Self { worker, inbox, bell, others, counts }
        };
        Ok(inboxes.into_iter().map(post))
    }

    /// The number of the worker that a datagram is for, if it is another one.
    pub(in crate::daemon) fn is_for(&self, datagram: &[u8]) -> Option<u32> {
        Some(self.worker.of_datagram(datagram)).filter(|worker| *worker != self.worker.number())
    }

    /// Passes something to the worker of this number, or drops and counts it.
    pub(in crate::daemon) fn send(&mut self, worker: u32, parcel: Parcel) {
        let counts = &mut self.counts;
        let (passed, without_room) = match &parcel {
            Parcel::Packet(_) => (&mut counts.packets, &mut counts.packets_without_room),
            Parcel::Datagram(..) => (&mut counts.datagrams, &mut counts.datagrams_without_room),
            Parcel::Call(_) => (&mut counts.calls, &mut counts.calls_without_room),
        };
        let (to, bell) = &self.others[worker as usize];
        match to.try_send(parcel) {
            Ok(()) => passed.increment(),
            // It may have ended, which the first worker hears of.
            Err(_) => without_room.increment(),
        }
        bell.ring();
    }

    /// Passes something to all others.
    pub(in crate::daemon) fn send_all(&mut self, parcel: impl Fn() -> Parcel) {
        let own = self.worker.number();
        (0..self.worker.count())
            .filter(|worker| *worker != own)
            .for_each(|worker| self.send(worker, parcel()));
    }

    /// What becomes readable when there is something.
    pub(in crate::daemon) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// It was readable: [`Post::poll`] until there is nothing, or [`Post::remind`].
    pub(in crate::daemon) fn answer(&self) {
        self.bell.answer();
    }

    /// Something is left for later.
    pub(in crate::daemon) fn remind(&self) {
        self.bell.ring();
    }

    /// What has come.
    pub(in crate::daemon) fn poll(&mut self) -> Option<Parcel> {
        self.inbox.try_recv().ok()
    }

    /// A packet that has come is another worker's again.
    pub(in crate::daemon) fn on_astray(&mut self) {
        self.counts.packets_astray.increment();
    }

    pub(in crate::daemon) const fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;
    use crate::readiness::{Interest, wait};

    fn is_rung(post: &Post) -> bool {
        wait([Interest::read(post.fd())], Some(Duration::ZERO)).unwrap()[0].read
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        assert_eq!(Post::all(1).unwrap().count(), 0, "the only worker has nobody to pass anything to");
        let mut posts: Vec<_> = Post::all(3).unwrap().collect();
        for number in 0..ROOM as u32 + 5 {
            posts[0].send(2, Parcel::Packet(Packet::from_slice(&number.to_le_bytes())));
        }
        let Counts { packets, packets_without_room, .. } = posts[0].counts();
        assert_eq!((packets.get(), packets_without_room.get()), (ROOM as u64, 5));
        assert_eq!(posts.iter().map(is_rung).collect::<Vec<_>>(), [false, false, true]);
        posts[2].answer();
        for number in 0..ROOM as u32 {
            let Some(Parcel::Packet(packet)) = posts[2].poll() else { panic!("the oldest stay") };
            assert_eq!(&packet[..], number.to_le_bytes());
        }
        assert!(posts[2].poll().is_none() && !is_rung(&posts[2]));
    }

    #[test]
    fn a_datagram_is_for_who_its_index_names() {
        let posts: Vec<_> = Post::all(2).unwrap().collect();
        let sealed = |index: u8| [4, 0, 0, 0, index, 9, 9, 9];
        let is_for = |datagram: &[u8]| [0, 1].map(|at: usize| posts[at].is_for(datagram));
        assert_eq!(is_for(&sealed(6)), [None, Some(0)]);
        assert_eq!(is_for(&sealed(7)), [Some(1), None]);
        assert_eq!(is_for(&[1; 208]), [None, Some(0)], "the first admits");
    }
}
