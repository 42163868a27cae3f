//! What a sealed datagram holds: a frame of the link, or what one end tells the other about session and path.

/// The first byte of what is sealed. It is encrypted, so observers cannot tell the kinds apart.
///
/// Versions may differ: a kind that an end does not know is counted and ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A frame of the link, or nothing, which only says that the sender lives.
    Frame = 0,
    /// A part of a frame that is longer than a datagram holds now.
    Part = 3,
    /// A frame of the link over several lines ([`link::Lines`]).
    FrameOver = 4,
    /// A part of one.
    PartOver = 5,
    /// Asks whether the peer receives at an address: a cookie to be shown from there.
    PathChallenge = 1,
    /// The cookie of a path challenge.
    PathResponse = 2,
    /// What has arrived, and a stamp ([`survey::report`](crate::survey::report)).
    Report = 16,
    /// A padded datagram that asks whether packets as long as it arrive ([`survey::mtu`](crate::survey::mtu)).
    Probe = 17,
    /// The answer to it.
    ProbeAnswer = 18,
    /// There is a proxy here.
    Pairing = 19,
    /// A mark of a train, or its padding ([`survey::train`](crate::survey::train)).
    Train = 20,
    /// The answer to a train.
    TrainAnswer = 21,
    /// The sender ends: what was under way is lost, and only a new session brings more.
    Farewell = 22,
    /// What the line that it comes over may be used for.
    Terms = 23,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Frame,
        Self::Part,
        Self::FrameOver,
        Self::PartOver,
        Self::PathChallenge,
        Self::PathResponse,
        Self::Report,
        Self::Probe,
        Self::ProbeAnswer,
        Self::Pairing,
        Self::Train,
        Self::TrainAnswer,
        Self::Farewell,
        Self::Terms,
    ];

    /// Whether it holds packets of the LAN, or what repairs them.
    #[must_use]
    pub const fn is_traffic(self) -> bool {
        matches!(self, Self::Frame | Self::Part | Self::FrameOver | Self::PartOver)
    }

    /// The kind with this byte, if there is one.
    #[must_use]
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_byte_of_its_own() {
        for byte in 0..=u8::MAX {
            let kinds = Kind::ALL.into_iter().filter(|kind| *kind as u8 == byte).count();
            assert!(kinds <= 1, "{byte}");
            assert_eq!(Kind::of(byte).map(|kind| kind as u8), (kinds == 1).then_some(byte));
        }
    }
}
