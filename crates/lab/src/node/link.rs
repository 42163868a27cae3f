//! A link: two endpoints of a link-layer protocol, IP queues in front of each, and a line from each to the other.
//!
//! The line clocks its endpoint: when it is free, the endpoint is asked for a frame, so what to send is decided at the last moment. A frame whose trailer is filled late is sealed when the trailer's first bit
//! leaves. Damaged frames fail the framing's checksum and are dropped where they arrive; with a [`Stream`] the framing
//! is real, and what arrives are damaged bits.
//!
//! A protocol that never stops sending would fill an idle link with events. While all ends have nothing to say but
//! bare acknowledgements that change nothing, the link sleeps; when a packet comes it catches up: the frames of the
//! meantime are put on the lines, which moves these and their errors on, and are not handled. The trace is the same
//! as without the sleep, unless a packet comes in the very nanosecond in which such a frame ends: it then goes first.

mod end;
mod mac;
mod path;
mod stream;

use base::Instant;
use pep::Side;

use super::earlier;
use crate::engine::{Context, Input, Node, Port};
use crate::observe::Tap;
use crate::observe::events::{FrameArrived, PacketStep, Probe, What};
use end::Told;
use path::InFlight;

pub use end::{Counters, FrameCost, LinkEnd};
pub use mac::Buffered;
pub use path::FIRST_PATH;
pub use stream::Stream;

/// A duplex link between its ports 0 and 1.
#[derive(Debug)]
pub struct Link {
    ends: [LinkEnd; 2],
    asleep: bool,
    may_sleep: bool,
}

impl Link {
    /// A link between these ends, at ports with their numbers.
    #[must_use]
    pub const fn new(ends: [LinkEnd; 2]) -> Self {
        Self { ends, asleep: false, may_sleep: true }
    }

    /// Whether the link may sleep while it has nothing to say; it may unless told.
    pub const fn set_may_sleep(&mut self, may_sleep: bool) {
        self.may_sleep = may_sleep;
    }

    /// Logs what happens from now on, with a probe for each end in their order.
    pub fn log_events(&mut self, probes: impl IntoIterator<Item = Probe>) {
        for (end, probe) in self.ends.iter_mut().zip(probes) {
            end.log_events(probe);
        }
    }

    /// Captures what passes from now on, with a tap for each end in their order.
    pub fn capture(&mut self, taps: impl IntoIterator<Item = Tap>) {
        for (end, tap) in self.ends.iter_mut().zip(taps) {
            end.tap = Some(Box::new(tap));
        }
    }

    /// Keeps the lengths of its queues from now on.
    pub fn watch_queues(&mut self) {
        self.ends.iter_mut().for_each(LinkEnd::watch_queues);
    }

    /// Keeps what terminals with bandwidth on demand ask for and are granted from now on.
    pub fn keep_cycles(&mut self) {
        self.ends.iter_mut().filter_map(|end| end.mac.as_mut()).for_each(|mac| mac.keep_cycles());
    }

    /// The end at a port.
    #[must_use]
    pub fn end(&self, port: Port) -> &LinkEnd {
        &self.ends[usize::from(port.0)]
    }

    /// An end and the other one.
    const fn pair(&mut self, at: usize) -> (&mut LinkEnd, &mut LinkEnd) {
        let [first, second] = &mut self.ends;
        if at == 0 { (first, second) } else { (second, first) }
    }

    /// Takes frames that have reached the other end of the line from `from`.
    fn deliver(&mut self, cx: &mut Context<'_>, from: usize) {
        let (sender, receiver) = self.pair(from);
        for path in 0..sender.paths() {
            while let Some(frame) = sender.path_mut(path).poll_arrival(cx.now()) {
                hand_over(cx, (sender, path), receiver, &frame, Port(1 - from as u16));
            }
        }
    }

    /// Lets time-outs happen at an end, and takes the packets that they release there.
    fn handle_timeout(&mut self, cx: &mut Context<'_>, at: usize) {
        let now = cx.now();
        let (end, sender) = self.pair(at);
        if end.endpoint.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        end.endpoint.handle_timeout(now);
        if end.probe.is_some() {
            let told = Told::by(&mut *end.endpoint);
            end.note_flags(now, told);
        }
        let probe = sender.probe.as_deref();
        sender.counters.delivered += take_packets(cx, end, probe, Port(at as u16));
    }

    /// Puts on the lines what a sleeping link would have sent until now, the end of the run.
    pub fn settle(&mut self, now: Instant) {
        self.wake_up(now);
    }

    fn wake_up(&mut self, now: Instant) {
        if core::mem::take(&mut self.asleep) {
            self.ends.iter_mut().for_each(|end| end.catch_up(now));
        }
    }
}

impl Node for Link {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match input {
            Input::Arrival(port, packet) => {
                self.wake_up(cx.now());
                let end = &mut self.ends[usize::from(port.0)];
                end.accept(cx.now(), packet);
                end.serve_proxy(cx, port);
                end.clock(cx);
                // What has left may have made room for what waits at the node.
                end.serve_proxy(cx, port);
            }
            Input::Wake => {
                for from in 0..self.ends.len() {
                    self.deliver(cx, from);
                }
                for at in 0..self.ends.len() {
                    self.handle_timeout(cx, at);
                    self.ends[at].serve_proxy(cx, Port(at as u16));
                    self.ends[at].clock(cx);
                    self.ends[at].serve_proxy(cx, Port(at as u16));
                }
                let now = cx.now();
                self.asleep = self.may_sleep && self.ends.iter().all(|end| end.is_idle(now));
            }
        }
        for end in &mut self.ends {
            end.counters.timed += u64::from(end.endpoint.poll_timeout().is_some());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.asleep {
            return None;
        }
        self.ends.iter().fold(None, |due, end| earlier(due, end.poll_timeout()))
    }
}

/// Gives a frame that `sender` sent over a path to `receiver`, which is at `port`, and takes the packets that it completes.
fn hand_over(
    cx: &mut Context<'_>,
    (sender, path): (&mut LinkEnd, usize),
    receiver: &mut LinkEnd,
    frame: &InFlight,
    port: Port,
) {
    let now = cx.now();
    let probe = sender.probe.as_deref();
    let counters = &mut sender.counters;
    let mut handle = |number: Option<u64>, frame: &[u8]| {
        let discarded = receiver.handle_frame(now, path, frame).err();
        counters.discarded += u64::from(discarded.is_some());
        if let Some(probe) = probe {
            let told = Told::by(&mut *receiver.endpoint);
            let trailer = told.received;
            probe.note(now, What::FrameArrived(FrameArrived { number, discarded, trailer }));
            receiver.note_flags(now, told);
        }
        counters.delivered += take_packets(cx, receiver, probe, port);
    };
    match &mut sender.stream {
        None => handle(Some(frame.number), &frame.bytes),
        Some(stream) => stream.handle(&frame.bytes, |frame| handle(None, frame)),
    }
}

/// Takes the packets that are ready at an endpoint and sends them out at its port; how many.
fn take_packets(cx: &mut Context<'_>, end: &mut LinkEnd, probe: Option<&Probe>, port: Port) -> u64 {
    let (mut count, now) = (0, cx.now());
    while let Some(mut packet) = end.endpoint.poll_packet() {
        count += 1;
        if let Some(probe) = probe {
            probe.packet(now, PacketStep::Delivered, &packet);
        }
        if !end.ingress.takes(now, Side::Link, &mut packet) {
            cx.send(port, packet);
        }
    }
    count
}
