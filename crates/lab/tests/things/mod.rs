//! Links and wires by themselves in an engine, with what is attached to them.

use std::cell::RefCell;
use std::rc::Rc;

use base::{Instant, Packet};
use longhaul_lab::engine::{Context, Input, Node, Port};
use longhaul_lab::node::{Link, Wire};

/// When a packet arrived, and its number.
pub(crate) type Heard = Rc<RefCell<Vec<(Instant, u8)>>>;

/// When a packet arrived, and all of it.
pub(crate) type Kept = Rc<RefCell<Vec<(Instant, Packet)>>>;

/// A link, a wire, or what is attached to one: sends its packets at their times, and notes what arrives when.
#[derive(Debug)]
pub(crate) enum Thing {
    #[allow(dead_code, reason = "not every test has one")]
    Link(Box<Link>),
    #[allow(dead_code, reason = "not every test has one")]
    Wire(Box<Wire>),
    Host {
        packets: Vec<(Instant, Packet)>,
        heard: Heard,
    },
    #[allow(dead_code, reason = "not every test has one")]
    Keeper {
        packets: Vec<(Instant, Packet)>,
        kept: Kept,
    },
}

impl Thing {
    /// Sends packets at times in their order.
    pub(crate) fn host(packets: Vec<(Instant, Packet)>) -> (Self, Heard) {
        let heard = Heard::default();
        (Self::Host { packets, heard: Rc::clone(&heard) }, heard)
    }

    /// A host that keeps what arrives.
    #[allow(dead_code, reason = "not every test has one")]
    pub(crate) fn keeper(packets: Vec<(Instant, Packet)>) -> (Self, Kept) {
        let kept = Kept::default();
        (Self::Keeper { packets, kept: Rc::clone(&kept) }, kept)
    }
}

/// An IP packet of this length with a number and a DSCP.
pub(crate) fn packet(number: u8, dscp: u8, len: usize) -> Packet {
    let mut bytes = vec![0; len];
    (bytes[0], bytes[1], bytes[4]) = (0x45, dscp << 2, number);
    Packet::from_slice(&bytes)
}

impl Node for Thing {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match (self, input) {
            (Self::Link(link), input) => link.handle(cx, input),
            (Self::Wire(wire), input) => wire.handle(cx, input),
            (Self::Host { heard, .. }, Input::Arrival(_, packet)) => {
                heard.borrow_mut().push((cx.now(), packet[4]));
            }
            (Self::Keeper { kept, .. }, Input::Arrival(_, packet)) => {
                kept.borrow_mut().push((cx.now(), packet));
            }
            (Self::Host { packets, .. } | Self::Keeper { packets, .. }, Input::Wake) => {
                while packets.first().is_some_and(|(at, _)| *at <= cx.now()) {
                    cx.send(Port(0), packets.remove(0).1);
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Link(link) => link.poll_timeout(),
            Self::Wire(wire) => wire.poll_timeout(),
            Self::Host { packets, .. } | Self::Keeper { packets, .. } => packets.first().map(|(at, _)| *at),
        }
    }
}
