//! The other workers, as the first one sees them: threads that are told what concerns their peers, and tell what happens.
//!
//! Nothing is shared. What the first worker says is an [`Order`], what the others say is a [`Report`], and what passes between any two is a
//! [`Parcel`]; all three wait in queues of limited length. No thread waits for another, but the first one for room for an order, which each
//! worker makes in every turn of its loop. A gateway with one worker has none of this.

mod bell;
mod hubs;
mod orders;
mod post;
mod thread;

use std::collections::HashMap;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Builder, JoinHandle};

use base::Instant;
use tunnel::{Hub, PeerId};

use super::worker::{Paths, Worker};
use super::{Gateway, GatewayError, Notice};
use crate::clock::Clock;
use crate::tun::Tun;
use bell::Bell;
pub(super) use hubs::Hubs;
pub(super) use orders::Whereabouts;
use orders::{Change, Order, Report};
pub(super) use post::{Parcel, Post};
use thread::{Members, Outbox, Turns};

/// All workers but the first.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// Those that have no device yet, and those whose threads have not started.
    unequipped: Vec<Members>,
    idle: Vec<Turns>,
    threads: Threads,
    /// Handles of their queues of the device, since the right to attach these again is the first worker's.
    queues: Vec<Tun>,
    /// What each is to be told of peers.
    changes: Vec<Vec<Change>>,
    /// What the tunnels of each take; `None` for those without.
    super_segments: Vec<Option<Option<u32>>>,
    /// Of peers that are known by name.
    whereabouts: HashMap<PeerId, Whereabouts>,
}

/// Their threads, which end with this.
#[derive(Debug, Default)]
struct Threads {
    /// By number, from 1.
    running: Vec<Running>,
    reports: Option<Receiver<(u32, Report)>>,
}

/// A worker's thread.
#[derive(Debug)]
struct Running {
    orders: SyncSender<Order>,
    bell: Bell,
    /// Ends with the number of connections that were split.
    thread: JoinHandle<usize>,
}

/// Orders that wait for a worker, and reports of all that wait for the first, at most.
const MOST_ORDERS: usize = 64;
const MOST_REPORTS: usize = 1024;

impl Workers {
    /// Those with these hubs.
    pub(super) fn new(hubs: Vec<Hub>) -> Self {
        Self {
            changes: hubs.iter().map(|_| Vec::new()).collect(),
            super_segments: vec![None; hubs.len()],
            unequipped: hubs.into_iter().map(Members::new).collect(),
            ..Self::default()
        }
    }

    /// Gives each its queue of the device, its socket and its post.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn equip(
        &mut self,
        clock: Clock,
        equipment: impl Iterator<Item = ((Tun, Paths), Post)>,
    ) -> io::Result<()> {
        for (members, ((tun, carriers), post)) in self.unequipped.drain(..).zip(equipment) {
            self.queues.push(tun.duplicate()?);
            self.idle.push(Turns::new(clock, tun, carriers, members, post));
        }
        Ok(())
    }

    /// Starts their threads, which have the rights that are left here and give those up too. They ring the bell of the first.
    ///
    /// # Errors
    /// There is no room for a thread.
    fn start(&mut self, first: Option<&Post>) -> io::Result<()> {
        let Some(bell) = first.map(|post| post.bell.clone()).filter(|_| !self.idle.is_empty()) else {
            return Ok(());
        };
        let (reports, receiver) = mpsc::sync_channel(MOST_REPORTS);
        self.threads.reports = Some(receiver);
        for mut turns in self.idle.drain(..) {
            let outbox = Outbox::new(turns.number(), reports.clone(), bell.clone());
            let own_bell = turns.bell();
            self.threads.start(outbox, own_bell, move |orders, outbox| turns.run(orders, outbox))?;
        }
        Ok(())
    }

    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Has a worker told of a change, when all are.
    fn change(&mut self, worker: u32, change: Change) {
        self.changes[worker as usize - 1].push(change);
    }

    /// Tells them all changes so far.
    pub(super) fn commit(&mut self, now: Instant) {
        for at in 0..self.changes.len() {
            let changes = std::mem::take(&mut self.changes[at]);
            if changes.is_empty() {
                continue;
            }
            match self.unequipped.get_mut(at) {
                Some(members) => {
                    members.change(now, changes);
                    self.super_segments[at] = members.super_segment();
                }
                None => self.threads.order(at as u32 + 1, Order::Change(changes)),
            }
        }
    }

    /// Attaches all their queues to the device again.
    ///
    /// # Errors
    /// As [`Tun::attach`].
    pub(super) fn attach(&self) -> io::Result<()> {
        self.queues.iter().try_for_each(Tun::attach)?;
        self.threads.order_all(|| Order::Restored);
        Ok(())
    }

    /// What all tunnels take: these, and those of the first worker's hub.
    pub(super) fn super_segment(&self, first: &Hub) -> Option<u32> {
        if self.is_empty() {
            return first.super_segment();
        }
        let others = self.super_segments.iter().copied().flatten();
        others.chain(super_segment(first)).min().flatten()
    }

    /// Asks all whose threads run for their accounts, for the status of this number.
    pub(super) fn ask(&self, number: u64) -> impl Iterator<Item = u32> {
        self.threads.order_all(|| Order::Tell(number));
        1..=self.threads.running.len() as u32
    }

    /// Ends them; how many connections they had split.
    pub(super) fn end(&mut self) -> usize {
        self.threads.end()
    }

    fn poll(&self) -> Option<(u32, Report)> {
        self.threads.reports.as_ref()?.try_recv().ok()
    }
}

impl Threads {
    /// Starts the next worker's thread: `run` until it has ended, which is told however that came.
    fn start(
        &mut self,
        mut outbox: Outbox,
        bell: Bell,
        run: impl FnOnce(&Receiver<Order>, &mut Outbox) -> Result<usize, GatewayError> + Send + 'static,
    ) -> io::Result<()> {
        let number = self.running.len() as u32 + 1;
        let (orders, ordered) = mpsc::sync_channel(MOST_ORDERS);
        let whole = move || {
            let ended = panic::catch_unwind(AssertUnwindSafe(|| run(&ordered, &mut outbox)));
            let panicked = |_| Err(GatewayError::Worker { number, reason: "it has panicked".to_owned() });
            // Nobody is to wait for its turns any more.
            drop(ordered);
            let ended = ended.unwrap_or_else(panicked);
            let split = *ended.as_ref().unwrap_or(&0);
            outbox.end(ended.map(drop));
            split
        };
        let thread = Builder::new().name(format!("worker {number}")).spawn(whole)?;
        self.running.push(Running { orders, bell, thread });
        Ok(())
    }

    /// Ends them; how many connections they had split.
    fn end(&mut self) -> usize {
        // Nobody hears what they still have to tell, and nobody waits for that.
        self.reports = None;
        self.order_all(|| Order::End);
        let ended = self.running.drain(..).map(|Running { orders, thread, .. }| {
            drop(orders);
            thread.join().unwrap_or(0)
        });
        ended.sum()
    }

    fn order(&self, worker: u32, order: Order) {
        if let Some(running) = self.running.get(worker as usize - 1) {
            // One that has ended has told why.
            let _ = running.orders.send(order);
            running.bell.ring();
        }
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        (1..).zip(&self.running).for_each(|(worker, _)| self.order(worker, order()));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

impl Gateway {
    /// Starts the other workers' threads.
    pub(super) fn start_workers(&mut self) -> Result<(), GatewayError> {
        self.workers.start(self.worker.post.as_ref()).map_err(GatewayError::System)
    }

    /// The bell was rung: takes packets, datagrams and calls. Reports are looked at in every turn.
    pub(super) fn take_post(&mut self, now: Instant) {
        self.worker.post.as_ref().into_iter().for_each(Post::answer);
        self.worker.take_parcels(now);
    }

    /// Takes what the other workers have told.
    ///
    /// # Errors
    /// One of them has failed.
    pub(super) fn take_reports(
        &mut self,
        now: Instant,
        notify: &mut impl FnMut(Notice),
    ) -> Result<(), GatewayError> {
        while let Some((worker, report)) = self.workers.poll() {
            match report {
                Report::Event(id, event) => self.tell_event(id, event, notify),
                Report::Refused(from, reason) => notify(self.refusal(from, reason)),
                Report::SuperSegment(bytes) => {
                    self.workers.super_segments[worker as usize - 1] = bytes;
                    self.follow_at = now;
                }
                Report::Whereabouts(id, whereabouts) => {
                    self.workers.whereabouts.insert(id, whereabouts);
                    self.follow_at = now;
                }
                Report::Account(number, part) => self.telling.handle_part(number, worker, part, &self.peers),
                Report::Ended(Err(error)) => {
                    return Err(match error {
                        GatewayError::Worker { .. } => error,
                        error => GatewayError::Worker { number: worker, reason: error.to_string() },
                    });
                }
                Report::Ended(Ok(())) => self.telling.on_ended(worker),
            }
        }
        Ok(())
    }
}

/// The largest super-segment that the tunnels of a hub take; `None` if it has none.
fn super_segment(hub: &Hub) -> Option<Option<u32>> {
    hub.peers().next().map(|_| hub.super_segment())
}

impl Whereabouts {
    /// Of a peer with this tunnel.
    fn of(now: Instant, tunnel: &tunnel::Tunnel) -> Self {
        Self { is_heard: tunnel.session().is_heard(now), address: tunnel.session().peer() }
    }
}

#[cfg(test)]
mod tests;
