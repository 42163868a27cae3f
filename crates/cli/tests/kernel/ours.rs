//! Our side of a case, and the case as a whole.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Duration, Instant};
use field::stack::exchange::{End, Plan};
use field::stack::{Application, Exchange, Hosts, Stack};
use gateway::clock::Clock;
use tcp::{ConnectionId, Event, Failure};

use super::case::{Case, Cut};
use super::place::{Place, addresses, listener, stack};
use super::{peer, place};
use crate::{Ended, Seen};

/// Far beyond what any case takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often to look whether the kernel's side has done.
const LOOK: Duration = Duration::from_millis(5);

/// Our exchange, which goes on answering until the kernel's side has done too.
struct Until<'a> {
    exchange: Exchange,
    done: &'a AtomicBool,
    look_at: Instant,
}

impl Application for Until<'_> {
    fn on_event(&mut self, now: Instant, hosts: &mut Hosts, address: IpAddr, id: ConnectionId, event: Event) {
        self.exchange.on_event(now, hosts, address, id, event);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout().into_iter().chain([self.look_at]).min()
    }

    fn handle_timeout(&mut self, now: Instant, hosts: &mut Hosts) {
        self.look_at = now + LOOK;
        if self.exchange.poll_timeout().is_some_and(|due| due <= now) {
            self.exchange.handle_timeout(now, hosts);
        }
    }

    fn is_finished(&self) -> bool {
        self.exchange.is_finished() && self.done.load(Ordering::Acquire)
    }
}

/// Runs a case in a namespace of its own; what we saw and what the kernel's side saw.
pub(crate) fn run(case: &Case) -> Result<[Seen; 2], String> {
    let place = Place::new(case)?;
    let case = case.clone();
    let work = move || in_place(&case);
    let thread = place.namespace.enter(work).map_err(|error| error.to_string())?;
    thread.join().map_err(|_| "a thread panicked".to_owned())?.map_err(|error| error.to_string())?
}

fn in_place(case: &Case) -> Result<[Seen; 2], String> {
    let wrong = |error: std::io::Error| error.to_string();
    let mut stack = Stack::open(&stack(case), Clock::start()).map_err(wrong)?;
    let [address, _] = addresses(case);
    let plan = Plan {
        outgoing: Arc::clone(&case.from_us),
        finishes: true,
        limit: case.from_kernel.len(),
        abort_after: if let Some(Cut::ByUs(after)) = case.cut { Some(after) } else { None },
        pace: case.our_pace,
    };
    let kernel = peer::Peer::new(case).map_err(wrong)?;
    let (now, hosts) = (stack.now(), stack.hosts_mut());
    let exchange = if case.we_connect {
        Exchange::connect(plan, hosts, address, now, listener(case), &case.config)
            .map_err(|e| e.to_string())?
    } else {
        Exchange::listen(plan, hosts, address, place::PORT, &case.config).map_err(|e| e.to_string())?
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let kernel = scope.spawn(|| {
            let seen = kernel.run(case, PATIENCE);
            done.store(true, Ordering::Release);
            seen
        });
        let mut application = Until { exchange, done: &done, look_at: Instant::ZERO };
        stack.run(&mut application, Instant::ZERO + PATIENCE).map_err(wrong)?;
        let exchange = application.exchange;
        let end = match exchange.end() {
            Some(End::Closed) => Ended::InOrder,
            Some(End::Failed(Failure::Aborted)) => Ended::Aborted,
            Some(End::Failed(Failure::Reset)) => Ended::Reset,
            Some(End::Failed(failure)) => Ended::Otherwise(failure.to_string()),
            None => Ended::Otherwise(format!("still open; {:?}", stack.counters)),
        };
        let ours = Seen { received: exchange.received().to_vec(), end };
        Ok([ours, kernel.join().map_err(|_| "the kernel's side panicked".to_owned())?])
    })
}
