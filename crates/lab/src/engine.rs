//! The event engine: nodes that exchange packets in virtual time.
//!
//! A node handles what arrives and tells, after every call, when it wants to be woken; there are no
//! timers to cancel. Packets handed from node to node travel in zero time and in the order in which they
//! were sent, so the only ordered structure is one deadline per node. Events happen in the order (time,
//! sequence): a run is a function of its scenario and seed, and its trace hash proves it.

mod trace;

use core::cell::RefCell;
use core::fmt::Debug;
use std::collections::VecDeque;
use std::rc::Rc;

use base::{Instant, Packet};
use rustc_hash::FxHashMap;

pub(crate) use base::Deadlines;
pub use trace::TraceHash;

/// A node's place in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One of a node's attachments, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// What happens to a node.
#[derive(Debug)]
pub enum Input {
    /// A packet came in at a port.
    Arrival(Port, Packet),
    /// The deadline that the node named is here.
    Wake,
}

/// A thing in the lab.
pub trait Node: Debug {
    /// Handles one input; packets go out through `cx`.
    fn handle(&mut self, cx: &mut Context<'_>, input: Input);

    /// When the node next wants [`Input::Wake`]. Read again after every [`Node::handle`].
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Whether an observed node sent or received a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The node handed it to a neighbour.
    Sent,
    /// A neighbour handed it to the node.
    Received,
}

/// Watches the packets of one node without taking part.
pub trait Observer: Debug {
    /// A packet passed between the node and a neighbour.
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet);
}

/// An observer that its owner reads after the run.
impl<T: Observer> Observer for Rc<RefCell<T>> {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        self.borrow_mut().on_packet(now, direction, packet);
    }
}

/// What a node sees of the world while it handles an input.
#[derive(Debug)]
pub struct Context<'a> {
    now: Instant,
    peers: &'a [(NodeId, Port)],
    hand_over: &'a mut VecDeque<(NodeId, Port, Packet)>,
    trace: &'a mut TraceHash,
    goals_reached: &'a mut u32,
}

impl Context<'_> {
    /// The virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Hands `packet` to whatever is attached to `port`.
    ///
    /// # Panics
    /// If nothing is attached there: a network is wired before it runs.
    #[inline]
    pub fn send(&mut self, port: Port, packet: Packet) {
        let (node, at) = self.peers[usize::from(port.0)];
        self.hand_over.push_back((node, at, packet));
    }

    /// Says that one of the run's goals is reached, such as a transfer's last byte.
    pub const fn reach_goal(&mut self) {
        *self.goals_reached += 1;
    }

    /// Makes `word` part of the run's trace: for events that are not packet arrivals, such as frames.
    pub fn record(&mut self, word: u64) {
        self.trace.mix(self.now.as_nanos());
        self.trace.mix(word);
    }
}

/// Runs a network of nodes.
#[derive(Debug)]
pub struct Engine<N> {
    now: Instant,
    places: Vec<Place<N>>,
    deadlines: Deadlines,
    hand_over: VecDeque<(NodeId, Port, Packet)>,
    trace: TraceHash,
    events: u64,
    goals_reached: u32,
    observers: Vec<Box<dyn Observer>>,
    /// By node: the numbers of its observers, in order.
    observers_of: Vec<Vec<usize>>,
    /// Events that had happened when time came to the present instant.
    events_before: u64,
    /// Events at this instant by node, once it has become suspiciously crowded.
    crowd: FxHashMap<u32, u64>,
}

/// A node and what is attached to it: together, so that an event finds both where it looks first.
#[derive(Debug)]
struct Place<N> {
    node: N,
    peers: Peers,
}

/// By port: where a packet sent there arrives.
#[derive(Debug)]
enum Peers {
    /// Of hosts and lines, in the first places; the number of them.
    Few([(NodeId, Port); 2], u8),
    Many(Vec<(NodeId, Port)>),
}

impl Peers {
    fn as_slice(&self) -> &[(NodeId, Port)] {
        match self {
            Self::Few(peers, count) => &peers[..usize::from(*count)],
            Self::Many(peers) => peers,
        }
    }

    fn push(&mut self, peer: (NodeId, Port)) {
        match self {
            Self::Few(peers, count) if usize::from(*count) < peers.len() => {
                peers[usize::from(*count)] = peer;
                *count += 1;
            }
            Self::Few(peers, _) => *self = Self::Many(peers.iter().copied().chain([peer]).collect()),
            Self::Many(peers) => peers.push(peer),
        }
    }

    fn set(&mut self, port: Port, peer: (NodeId, Port)) {
        let peers = match self {
            Self::Few(peers, _) => peers.as_mut_slice(),
            Self::Many(peers) => peers,
        };
        peers[usize::from(port.0)] = peer;
    }
}

/// A node for which time does not go on: it has had more than [`MOST_AT_ONCE`] events at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {} acts at {at} over and over, and never lets time pass", node.0)]
pub struct Stuck {
    /// The node.
    pub node: NodeId,
    /// The instant.
    pub at: Instant,
}

/// Events of one node at one instant, at most. Ours: a hundred thousand flows that open at once and send their first
/// windows stay below, and it takes less than a second.
pub const MOST_AT_ONCE: u64 = 4_000_000;

impl<N: Node> Engine<N> {
    /// An engine at time zero without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: Instant::ZERO,
            places: Vec::new(),
            deadlines: Deadlines::new(),
            hand_over: VecDeque::new(),
            trace: TraceHash::new(),
            events: 0,
            goals_reached: 0,
            observers: Vec::new(),
            observers_of: Vec::new(),
            events_before: 0,
            crowd: FxHashMap::default(),
        }
    }

    /// Adds a node, which may already have a deadline.
    pub fn add(&mut self, node: N) -> NodeId {
        let id = NodeId(self.places.len() as u32);
        self.deadlines.add(node.poll_timeout());
        self.places.push(Place { node, peers: Peers::Few([(NodeId(0), Port(0)); 2], 0) });
        id
    }

    /// Attaches two nodes to each other; the new port of each.
    pub fn connect(&mut self, a: NodeId, b: NodeId) -> (Port, Port) {
        let at_a = self.attach(a, (b, Port(0)));
        let at_b = self.attach(b, (a, at_a));
        self.places[a.0 as usize].peers.set(at_a, (b, at_b));
        (at_a, at_b)
    }

    fn attach(&mut self, node: NodeId, peer: (NodeId, Port)) -> Port {
        let peers = &mut self.places[node.0 as usize].peers;
        peers.push(peer);
        Port(peers.as_slice().len() as u16 - 1)
    }

    /// Lets `observer` watch the packets of a node.
    pub fn observe(&mut self, node: NodeId, observer: impl Observer + 'static) {
        let place = node.0 as usize;
        if self.observers_of.len() <= place {
            self.observers_of.resize(place + 1, Vec::new());
        }
        self.observers_of[place].push(self.observers.len());
        self.observers.push(Box::new(observer));
    }

    /// The virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &N {
        &self.places[id.0 as usize].node
    }

    /// A node, to be changed before the run.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.places[id.0 as usize].node
    }

    /// All nodes, in the order in which they were added.
    #[must_use]
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &N> {
        self.places.iter().map(|place| &place.node)
    }

    /// The hash of everything that has happened so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.trace.finish()
    }

    /// Inputs handled so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Goals reached so far.
    #[must_use]
    pub const fn goals_reached(&self) -> u32 {
        self.goals_reached
    }

    /// Runs until `end`, until nothing is left to happen, or until `goals` goals have been reached; zero means never.
    ///
    /// # Panics
    /// Where [`Engine::try_run`] has an error.
    pub fn run(&mut self, end: Instant, goals: u32) {
        self.try_run(end, goals).unwrap_or_else(|stuck| panic!("{stuck}"));
    }

    /// Runs until `end`, until nothing is left to happen, or until `goals` goals have been reached; zero means never.
    /// Gives an error where [`Engine::run`] panics, for callers that know what a node is called.
    ///
    /// # Errors
    /// A node whose deadline does not move on, which only a mistake in it can cause.
    pub fn try_run(&mut self, end: Instant, goals: u32) -> Result<(), Stuck> {
        self.drain_hand_over()?;
        while let Some((due, node)) = self.deadlines.first() {
            if due > end {
                self.now = end;
                return Ok(());
            }
            debug_assert!(due >= self.now, "a deadline in the past");
            if due > self.now {
                self.now = due;
                self.events_before = self.events;
            }
            self.dispatch(NodeId(node), Input::Wake);
            self.watch_crowd(NodeId(node))?;
            self.drain_hand_over()?;
            if goals > 0 && self.goals_reached >= goals {
                return Ok(());
            }
        }
        Ok(())
    }

    fn drain_hand_over(&mut self) -> Result<(), Stuck> {
        while let Some((node, port, packet)) = self.hand_over.pop_front() {
            self.trace.mix_arrival(self.now, node, port, &packet);
            if !self.observers.is_empty() {
                self.show_observers(node, port, &packet);
            }
            self.dispatch(node, Input::Arrival(port, packet));
            self.watch_crowd(node)?;
        }
        Ok(())
    }

    /// Whether a node has had too many events at this instant. They are counted only once all nodes together have had
    /// as many.
    #[inline]
    fn watch_crowd(&mut self, node: NodeId) -> Result<(), Stuck> {
        match self.events - self.events_before {
            0..MOST_AT_ONCE => Ok(()),
            all => self.count_crowd(node, all),
        }
    }

    #[cold]
    fn count_crowd(&mut self, node: NodeId, all: u64) -> Result<(), Stuck> {
        if all == MOST_AT_ONCE {
            self.crowd.clear();
        }
        let count = self.crowd.entry(node.0).or_default();
        *count += 1;
        if *count > MOST_AT_ONCE { Err(Stuck { node, at: self.now }) } else { Ok(()) }
    }

    fn show_observers(&mut self, receiver: NodeId, port: Port, packet: &Packet) {
        let (sender, _) = self.places[receiver.0 as usize].peers.as_slice()[usize::from(port.0)];
        let of = |node: NodeId| self.observers_of.get(node.0 as usize).map_or(&[][..], Vec::as_slice);
        let (mut senders, mut receivers) = (of(sender), of(receiver));
        // In the order in which they came, for some write to one log.
        while let Some((&first, direction)) = match (senders.first(), receivers.first()) {
            (Some(a), Some(b)) if b < a => Some((b, Direction::Received)),
            (Some(a), _) => Some((a, Direction::Sent)),
            (None, Some(b)) => Some((b, Direction::Received)),
            (None, None) => None,
        } {
            match direction {
                Direction::Sent => senders = &senders[1..],
                Direction::Received => receivers = &receivers[1..],
            }
            self.observers[first].on_packet(self.now, direction, packet);
        }
    }

    fn dispatch(&mut self, id: NodeId, input: Input) {
        self.events += 1;
        let Place { node, peers } = &mut self.places[id.0 as usize];
        let mut cx = Context {
            now: self.now,
            peers: peers.as_slice(),
            hand_over: &mut self.hand_over,
            trace: &mut self.trace,
            goals_reached: &mut self.goals_reached,
        };
        // Read first, because it may be far away, and needed only after what the node does.
        let due = self.deadlines.due(id.0);
        node.handle(&mut cx, input);
        let next = node.poll_timeout().unwrap_or(Instant::MAX);
        if next != due {
            self.deadlines.set(id.0, Some(next));
        }
    }
}

impl<N: Node> Default for Engine<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;

    /// Sends a packet to its peer at every deadline and notes what arrives when.
    #[derive(Debug)]
    struct Beacon {
        every: Duration,
        next: Option<Instant>,
        left: u32,
        heard: Vec<(Instant, u8)>,
        name: u8,
    }

    impl Beacon {
        fn new(name: u8, every: Duration, left: u32) -> Self {
            Self { every, next: (left > 0).then_some(Instant::ZERO + every), left, heard: Vec::new(), name }
        }
    }

    impl Node for Beacon {
        fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
            match input {
                Input::Arrival(_, packet) => {
                    self.heard.push((cx.now(), packet[0]));
                    cx.reach_goal();
                }
                Input::Wake => {
                    cx.send(Port(0), Packet::from_slice(&[self.name; 70]));
                    self.left -= 1;
                    self.next = (self.left > 0).then(|| cx.now() + self.every);
                }
            }
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.next
        }
    }

    fn pair(left: u32, right: u32) -> Engine<Beacon> {
        let mut engine = Engine::new();
        let a = engine.add(Beacon::new(1, Duration::from_millis(10), left));
        let b = engine.add(Beacon::new(2, Duration::from_millis(15), right));
        engine.connect(a, b);
        engine
    }

    #[test]
    fn time_advances_from_deadline_to_deadline() {
        let mut engine = pair(3, 2);
        engine.run(Instant::MAX, 0);
        let millis = |node: u32| -> Vec<u64> {
            let heard = &engine.node(NodeId(node)).heard;
            heard.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect()
        };
        assert_eq!(millis(1), [10, 20, 30]);
        assert_eq!(millis(0), [15, 30]);
        assert_eq!(engine.events(), 10);
    }

    #[test]
    fn a_run_stops_at_its_end_or_at_its_goal() {
        let mut engine = pair(1000, 0);
        engine.run(Instant::from_nanos(25_000_000), 0);
        assert_eq!((engine.now().as_nanos(), engine.node(NodeId(1)).heard.len()), (25_000_000, 2));
        engine.run(Instant::MAX, 7);
        assert_eq!(engine.now().as_nanos(), 70_000_000);
    }

    /// Goal: a node that answers `now` for ever is named, and the time; one that only has much to do is not.
    #[test]
    fn a_node_that_does_not_let_time_go_on_is_named() {
        #[derive(Debug)]
        struct Restless {
            /// It stands still from then on.
            from: Instant,
            now: Instant,
            left: u64,
        }
        impl Node for Restless {
            fn handle(&mut self, cx: &mut Context<'_>, _: Input) {
                self.now = if cx.now() < self.from { cx.now() + Duration::from_millis(1) } else { cx.now() };
                self.left -= 1;
            }
            fn poll_timeout(&self) -> Option<Instant> {
                (self.left > 0).then_some(self.now)
            }
        }
        let run = |left| {
            let mut engine = Engine::new();
            for seconds in [9, 3, 6] {
                let from = Instant::ZERO + Duration::from_secs(seconds);
                engine.add(Restless { from, now: Instant::ZERO, left });
            }
            engine.try_run(Instant::MAX, 0)
        };
        let at = Instant::ZERO + Duration::from_secs(3);
        assert_eq!(run(u64::MAX), Err(Stuck { node: NodeId(1), at }));
        assert_eq!(run(MOST_AT_ONCE), Ok(()));
    }

    #[test]
    fn the_trace_hash_tells_runs_apart() {
        let hash = |left| {
            let mut engine = pair(left, 2);
            engine.run(Instant::MAX, 0);
            engine.trace_hash()
        };
        assert_eq!(hash(3), hash(3));
        assert_ne!(hash(3), hash(4));
    }
}
