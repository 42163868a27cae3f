//! What a worker's thread does: the same turns as the first worker's loop, without what only that one has.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError};

use base::{Duration, Instant};
use tunnel::path::MOST_CARRIERS;
use tunnel::{Hub, PeerId};

use super::bell::Bell;
use super::orders::{Change, Order, Report};
use super::{Paths, Post, Whereabouts, Worker, super_segment};
use crate::clock::Clock;
use crate::daemon::GatewayError;
use crate::daemon::account::Then;
use crate::privileges::{self, Kept};
use crate::readiness::{Interest, Ready, joined, wait, wake_exactly};
use crate::tun::Tun;

/// A worker, for a thread of its own.
#[derive(Debug)]
pub(super) struct Turns {
    worker: Worker,
    /// Whether its queue is attached to no device.
    is_detached: bool,
    watched: Watched,
    /// What was told of super-segments, and when that and the whereabouts are looked at again.
    told: Option<Option<Option<u32>>>,
    follow_at: Instant,
    /// The account that it is giving: for the status of this number, from this peer on.
    giving: Option<(u64, u32)>,
}

/// A worker's peers, before there is anything that it could do for them.
#[derive(Debug)]
pub(super) struct Members {
    hub: Hub,
    watched: Watched,
}

/// Peers that are known by name, and what was told of each.
type Watched = Vec<(PeerId, Whereabouts)>;

/// Where it leaves what it has to tell.
#[derive(Debug)]
pub(super) struct Outbox {
    number: u32,
    reports: SyncSender<(u32, Report)>,
    /// The first worker's.
    bell: Bell,
    /// What has found no room.
    held: VecDeque<Report>,
}

/// Between two looks at what the first worker is to know, and until it may have room again.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_millis(10);

impl Members {
    pub(super) const fn new(hub: Hub) -> Self {
        Self { hub, watched: Vec::new() }
    }

    pub(super) fn change(&mut self, now: Instant, changes: Vec<Change>) {
        change(now, &mut self.hub, &mut self.watched, changes);
    }

    pub(super) fn super_segment(&self) -> Option<Option<u32>> {
        super_segment(&self.hub)
    }
}

impl Turns {
    pub(super) fn new(clock: Clock, tun: Tun, paths: Paths, members: Members, post: Post) -> Self {
        let Members { hub, watched } = members;
        let worker = Worker::new(clock, tun, paths, hub, Some(post));
        Self { worker, is_detached: false, watched, told: None, follow_at: Instant::ZERO, giving: None }
    }

    pub(super) fn number(&self) -> u32 {
        self.worker.hub.worker().number()
    }

    /// Its bell.
    ///
    /// # Panics
    /// If it is the only worker, which has none.
    pub(super) fn bell(&self) -> Bell {
        self.worker.post.as_ref().expect("one of several has a post").bell.clone()
    }

    /// Runs until it is told to end; how many connections were split then.
    ///
    /// # Errors
    /// The socket is gone, or the kernel says otherwise.
    pub(super) fn run(
        &mut self,
        orders: &Receiver<Order>,
        outbox: &mut Outbox,
    ) -> Result<usize, GatewayError> {
        // Its device and socket are open, and the first worker attaches the device again: it needs no right at all.
        privileges::give_up(None, Kept::Nothing).map_err(GatewayError::Rights)?;
        wake_exactly();
        let mut ready = [Ready::default(); 2 + MOST_CARRIERS];
        loop {
            let [from_tun, from_bell, from_carriers @ ..] = ready;
            let now = self.worker.clock.now();
            if from_bell.read {
                self.worker.post.as_ref().into_iter().for_each(Post::answer);
                if self.take_orders(now, orders) {
                    return Ok(self.worker.close(now));
                }
            }
            self.worker.hub.handle_timeout(now);
            self.worker.receive(now, &from_carriers)?;
            if from_bell.read {
                self.worker.take_parcels(now);
            }
            self.worker.unblock(now, &from_carriers);
            if from_tun.read {
                self.worker.read_tun(now).or_else(|error| self.on_device_gone(error))?;
            }
            self.worker.transmit(false);
            self.worker.deliver(now);
            self.tell(now, outbox);
            self.give_account(outbox);
            let now = self.worker.clock.now();
            let timeout = self.next_wake(now, outbox).map(|due| due.saturating_since(now));
            let post = self.worker.post.as_ref().map(Post::fd);
            let device = (!self.is_detached).then(|| self.worker.tun.as_fd());
            let interests = [
                Interest::either_if_any(device, self.worker.hub.wants_packets(), false),
                Interest::read_if_any(post),
            ];
            ready = wait(joined(interests, self.worker.interests()), timeout)?;
        }
    }

    /// Does what it is told; whether it is to end.
    fn take_orders(&mut self, now: Instant, orders: &Receiver<Order>) -> bool {
        loop {
            match orders.try_recv() {
                Ok(Order::Change(changes)) => {
                    change(now, &mut self.worker.hub, &mut self.watched, changes);
                    self.follow_at = now;
                }
                Ok(Order::Call(id, address)) => {
                    if let Some(tunnel) = self.worker.hub.tunnel_mut(id) {
                        tunnel.call_at(now, address);
                    }
                }
                Ok(Order::Restored) => self.is_detached = false,
                Ok(Order::Tell(number)) => self.giving = Some((number, 0)),
                Ok(Order::End) | Err(TryRecvError::Disconnected) => return true,
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    /// If the device was removed, waits until it is there again, which the first worker sees to.
    fn on_device_gone(&mut self, error: io::Error) -> io::Result<()> {
        if error.raw_os_error() != Some(libc::EBADFD) {
            return Err(error);
        }
        self.is_detached = true;
        Ok(())
    }

    /// Tells what has happened, as far as there is room.
    fn tell(&mut self, now: Instant, outbox: &mut Outbox) {
        outbox.flush();
        while outbox.has_room()
            && let Some((from, reason)) = self.worker.complaints.poll()
        {
            outbox.say(Report::Refused(from, reason));
        }
        while outbox.has_room()
            && let Some((id, event)) = self.worker.hub.poll_event()
        {
            outbox.say(Report::Event(id, event));
        }
        if now < self.follow_at {
            return;
        }
        self.follow_at = now + FOLLOW_INTERVAL;
        let super_segment = super_segment(&self.worker.hub);
        if self.told.replace(super_segment) != Some(super_segment) {
            outbox.say(Report::SuperSegment(super_segment));
        }
        for (id, told) in &mut self.watched {
            let present = self.worker.hub.tunnel(*id).map(|tunnel| Whereabouts::of(now, tunnel));
            if let Some(present) = present.filter(|present| present != told) {
                *told = present;
                outbox.say(Report::Whereabouts(*id, present));
            }
        }
    }

    /// Gives a part of the account that is wanted, if there is room.
    fn give_account(&mut self, outbox: &mut Outbox) {
        if let Some((number, from)) = self.giving.take_if(|_| outbox.has_room()) {
            let part = self.worker.account(from);
            if let Then::From(next) = part.then {
                self.giving = Some((number, next));
            }
            outbox.say(Report::Account(number, part));
        }
    }

    /// When something is due, if nothing arrives before.
    fn next_wake(&mut self, now: Instant, outbox: &Outbox) -> Option<Instant> {
        let follow = (!self.watched.is_empty()).then_some(self.follow_at);
        let retry = (!outbox.has_room()).then(|| now + RETRY);
        let giving = (self.giving.is_some() && retry.is_none()).then_some(now);
        let carriers = self.worker.carriers_due();
        [self.worker.hub.poll_timeout(now), self.worker.retry_at, carriers, follow, retry, giving]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Peers change, in this order.
fn change(now: Instant, hub: &mut Hub, watched: &mut Watched, changes: Vec<Change>) {
    for change in changes {
        match &change {
            Change::Settle(id, _, true) => watched.push((*id, Whereabouts::default())),
            Change::Remove(id) => watched.retain(|(watched, _)| watched != id),
            _ => {}
        }
        change.apply(now, hub);
    }
}

impl Outbox {
    pub(super) const fn new(number: u32, reports: SyncSender<(u32, Report)>, bell: Bell) -> Self {
        Self { number, reports, bell, held: VecDeque::new() }
    }

    /// Whether what is said next need not wait. What happens waits in the hub otherwise.
    pub(super) fn has_room(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn say(&mut self, report: Report) {
        self.held.push_back(report);
        self.flush();
    }

    pub(super) fn flush(&mut self) {
        while let Some(report) = self.held.pop_front() {
            if let Err(TrySendError::Full((_, report))) = self.reports.try_send((self.number, report)) {
                self.held.push_front(report);
                break;
            }
            self.bell.ring();
        }
    }

    /// Says the last.
    pub(super) fn end(&mut self, result: Result<(), GatewayError>) {
        // It waits for room, unless nobody hears it any more.
        let _ = self.reports.send((self.number, Report::Ended(result)));
        self.bell.ring();
    }
}
