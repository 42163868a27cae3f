//! How one packet is to be treated on its way over a link.
//!
//! A treatment is what the sender of a packet asks for. A protocol honours as much of it as it can and ignores the rest:
//! `plain` sends everything once, and COTMLL knows only "once" ([`Treatment::is_once`]) and "until it arrives".

use core::num::NonZeroU32;

use base::Instant;

/// What a packet asks of the link. The default: deliver it, however long that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// Transmissions of each of its frames at most; `None` means until it arrives or the protocol's own limit is reached.
    pub attempts: Option<NonZeroU32>,
    /// From then on the packet is worthless: the protocol may drop what is left of it. `None` means never.
    pub deadline: Option<Instant>,
    /// Whether redundancy is to protect it.
    pub coding: Coding,
}

/// Redundancy that a packet asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// As the protocol is configured.
    #[default]
    AsConfigured,
    /// None: the packet is cheap to lose.
    Without,
    /// As much as the protocol has: a retransmission would come too late.
    Strongest,
}

impl Treatment {
    /// One transmission, whether or not it arrives: late is worse than lost.
    pub const ONCE: Self =
        Self { attempts: Some(NonZeroU32::MIN), deadline: None, coding: Coding::AsConfigured };

    /// As often as it takes.
    pub const UNTIL_DELIVERED: Self = Self { attempts: None, deadline: None, coding: Coding::AsConfigured };

    /// Whether each frame of the packet is transmitted once at most.
    #[must_use]
    #[inline]
    pub const fn is_once(&self) -> bool {
        matches!(self.attempts, Some(NonZeroU32::MIN))
    }
}
