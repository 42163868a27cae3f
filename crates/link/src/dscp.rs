//! Sets of differentiated services code points (RFC 2474): which packets are treated apart.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow;

/// DSCPs, each 0 to 63, as a list in a configuration: `[46]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
#[schemars(extend("items" = { "type": "integer", "minimum": 0, "maximum": 63 }, "examples" = [[46]]))]
pub struct DscpSet(u64);

impl DscpSet {
    /// These code points.
    ///
    /// # Panics
    /// If one has more than 6 bits.
    #[must_use]
    pub const fn of(marks: &[u8]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < marks.len() {
            assert!((marks[at] as u32) < u64::BITS, "a DSCP has 6 bits");
            set |= 1 << marks[at];
            at += 1;
        }
        Self(set)
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Whether a packet has one of them. What is not a single IP packet has none: a super-segment is too much to lose.
    #[must_use]
    pub fn holds(self, packet: &[u8]) -> bool {
        flow::dscp(packet).is_some_and(|dscp| self.0 >> dscp & 1 == 1)
    }
}

/// A number that is no DSCP, which has 6 bits (RFC 2474, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a DSCP; allowed are 0 to 63, such as 46 for telephony")]
pub struct NotADscp(u32);

impl TryFrom<Vec<u32>> for DscpSet {
    type Error = NotADscp;
    fn try_from(marks: Vec<u32>) -> Result<Self, NotADscp> {
        let with = |all, mark| if mark < u64::BITS { Ok(all | 1_u64 << mark) } else { Err(NotADscp(mark)) };
        marks.into_iter().try_fold(0, with).map(Self)
    }
}

impl From<DscpSet> for Vec<u32> {
    fn from(marks: DscpSet) -> Self {
        (0..u64::BITS).filter(|mark| marks.0 >> mark & 1 == 1).collect()
    }
}

impl fmt::Display for DscpSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let marks: Vec<_> = Vec::from(*self).iter().map(u32::to_string).collect();
        f.write_str(&marks.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(marks: &[u32]) -> DscpSet {
        marks.to_vec().try_into().unwrap()
    }

    fn ipv4(dscp: u8) -> Vec<u8> {
        [&[0x45, dscp << 2 | 1], [0; 18].as_slice()].concat()
    }

    fn ipv6(dscp: u8) -> Vec<u8> {
        [&[0x60 | dscp >> 2, dscp << 6 | 0x1f], [0; 38].as_slice()].concat()
    }

    #[test]
    fn packets_are_told_by_their_mark() {
        let telephony = marks(&[46, 0, 63]);
        for dscp in 0..64 {
            let held = [46, 0, 63].contains(&dscp);
            assert_eq!((telephony.holds(&ipv4(dscp)), telephony.holds(&ipv6(dscp))), (held, held));
            assert!(!DscpSet::default().holds(&ipv4(dscp)));
        }
        let super_segment = [&[0, 1, 2, 3, 4, 5, 6, 7], &*ipv4(46)].concat();
        for other in [super_segment.as_slice(), &[0x1f, 0xff], &[0x45], &[0x6b], &[]] {
            assert!(!telephony.holds(other), "{other:?}");
        }
    }

    #[test]
    fn marks_have_six_bits_and_write_back() {
        assert_eq!(Vec::from(marks(&[46, 8, 46])), [8, 46]);
        assert_eq!(DscpSet::try_from(vec![46, 64]), Err(NotADscp(64)));
        assert_eq!(DscpSet::try_from(vec![u32::MAX]), Err(NotADscp(u32::MAX)));
    }
}
