//! The order in which a link hands packets out: classes of packets overtake each other, as in a gateway whose link has queues by
//! treatment.

use base::wire::ip;
use base::wire::tcp::{Flags, View};
use base::{Duration, Rng};

/// Which packets a link hands out late.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// None.
    Kept,
    /// Those of a class, by so much; within the class they keep their order.
    Late(Class, Duration),
    /// Each by as much as chance has it, up to this.
    Shuffled(Duration),
}

/// Packets that a link may treat alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Those with SYN.
    Opening,
    /// SYN-ACKs.
    Answering,
    /// Those with FIN.
    Closing,
    /// Those with no data, neither SYN nor FIN.
    Acknowledging,
    /// Those with data.
    Carrying,
}

impl Order {
    pub fn lateness(self, packet: &[u8], rng: &mut Rng) -> Duration {
        match self {
            Self::Kept => Duration::ZERO,
            Self::Late(class, late) if class.holds(packet) => late,
            Self::Late(..) => Duration::ZERO,
            Self::Shuffled(most) => Duration::from_nanos(rng.below(most.as_nanos().max(1))),
        }
    }
}

impl Class {
    fn holds(self, packet: &[u8]) -> bool {
        let view = ip::View::parse(packet).unwrap();
        let Ok(tcp) = View::parse(view.payload()) else { return false };
        let (flags, carries) = (tcp.flags(), !tcp.payload().is_empty());
        match self {
            Self::Opening => flags.has(Flags::SYN),
            Self::Answering => flags.has(Flags::SYN | Flags::ACK),
            Self::Closing => flags.has(Flags::FIN),
            Self::Acknowledging => !carries && !flags.any(Flags::SYN | Flags::FIN | Flags::RST),
            Self::Carrying => carries,
        }
    }
}
