//! What a line may be used for: each end says what it has been told, and both keep to the stricter of the two.
//!
//! Over the line itself goes, until the other end has said that it knows:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | when the sender uses the line: 0 always, 1 metered, 2 backup |
//! | 1 | treatments that may use it, a bit each |
//! | 2 | the same of the receiver, as the sender knows it |
//! | 1 | 1 if the sender waits for an answer |
//!
//! An end with one carrier says nothing, unless it is asked.

use base::{Duration, Instant};
use link::{Treatments, When};

/// When a line is used, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// When it is used.
    pub when: When,
    /// What may go over it.
    pub carries: Treatments,
}

/// What both ends of a line say of its use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineUse {
    own: Usage,
    peers: Usage,
    /// What the peer knows of ours.
    known: Option<Usage>,
    /// Whether it has said anything.
    is_told: bool,
    /// Whether the peer waits to hear that we know of its own.
    owes: bool,
    /// Whether this end has the peer know.
    says: bool,
    says_at: Instant,
}

/// Until it is said again. Ours: a satellite's round trip and a little.
const PAUSE: Duration = Duration::from_secs(1);

impl Default for Usage {
    fn default() -> Self {
        Self { when: When::Always, carries: Treatments::ALL }
    }
}

impl Usage {
    fn to_bytes(self) -> [u8; 2] {
        [self.when as u8, self.carries.bits()]
    }

    fn read([when, carries]: [u8; 2]) -> Self {
        let when = match when {
            0 => When::Always,
            1 => When::Metered,
            _ => When::Backup,
        };
        Self { when, carries: Treatments::of_bits(carries) }
    }

    /// The stricter of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { when: self.when.max(other.when), carries: self.carries.and(other.carries) }
    }
}

impl LineUse {
    /// An end that `says` so has the peer know what the line is used for.
    pub(crate) fn new(own: Usage, says: bool) -> Self {
        let known = if says { None } else { Some(own) };
        Self {
            own,
            peers: Usage::default(),
            known,
            is_told: false,
            owes: false,
            says,
            says_at: Instant::ZERO,
        }
    }

    /// Whether it is known what the line may be used for: here, or from the peer.
    pub(crate) const fn is_agreed(&self) -> bool {
        self.says || self.is_told
    }

    /// What the line is used for.
    pub(crate) fn usage(&self) -> Usage {
        self.own.and(self.peers)
    }

    /// The peer knows nothing of what was said.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.own, self.says);
    }

    /// Takes what the peer says.
    pub(crate) fn handle(&mut self, body: &[u8]) {
        let Some(&[when, carries, own_when, own_carries, waits]) = body.first_chunk() else { return };
        self.peers = Usage::read([when, carries]);
        self.known = Some(Usage::read([own_when, own_carries]));
        (self.is_told, self.owes) = (true, waits != 0);
    }

    /// What there is to say.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<[u8; 5]> {
        if self.due()? > now {
            return None;
        }
        (self.owes, self.says_at) = (false, now + PAUSE);
        let ([when, carries], [theirs, of_theirs]) = (self.own.to_bytes(), self.peers.to_bytes());
        Some([when, carries, theirs, of_theirs, (!self.is_known()).into()])
    }

    /// When there is something to say.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.owes { Some(Instant::ZERO) } else { (!self.is_known()).then_some(self.says_at) }
    }

    fn is_known(&self) -> bool {
        self.known == Some(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::Treatment;

    const METERED: Usage = Usage { when: When::Metered, carries: Treatments::ALL };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn both_keep_to_the_stricter() {
        let calls = Usage { when: When::Always, carries: Treatments::of(&[Treatment::Interactive]) };
        let (mut one, mut other) = (LineUse::new(METERED, true), LineUse::new(calls, true));
        // The first word of each is lost.
        assert!(one.poll(at(0)).is_some() && other.poll(at(0)).is_some());
        assert!(one.poll(at(999)).is_none());
        let mut said = 0;
        for millis in (1000..60_000).step_by(10) {
            if let Some(body) = one.poll(at(millis)) {
                other.handle(&body);
                said += 1;
            }
            if let Some(body) = other.poll(at(millis)) {
                one.handle(&body);
                said += 1;
            }
        }
        let both = Usage { when: When::Metered, carries: calls.carries };
        assert_eq!((one.usage(), other.usage()), (both, both));
        assert!(said < 8, "{said}: it ends");
    }

    #[test]
    fn who_was_told_nothing_says_nothing_unless_asked() {
        let mut line_use = LineUse::new(Usage::default(), false);
        assert_eq!(line_use.due(), None);
        line_use.handle(&[1, 2]);
        assert_eq!((line_use.usage(), line_use.due()), (Usage::default(), None), "too short");
        let all = Treatments::ALL.bits();
        line_use.handle(&[1, all, 0, all, 1, 9]);
        assert_eq!(line_use.usage(), METERED);
        assert!(line_use.poll(at(0)).is_some() && line_use.poll(at(9000)).is_none());
        line_use.restart();
        assert_eq!(line_use.usage(), Usage::default());
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        for usage in [Usage::default(), METERED, Usage { when: When::Backup, ..METERED }] {
            assert_eq!(Usage::read(usage.to_bytes()), usage);
        }
    }
}
