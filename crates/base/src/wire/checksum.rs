//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use core::net::IpAddr;

/// A partial one's-complement sum; the order of even-length parts does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of `bytes`, a trailing odd byte padded with zero. Only a last part may have odd length.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        // Summing 32-bit words in native order and folding at the end vectorizes; the one's-complement
        // sum is independent of byte order up to the final swap (RFC 1071, 2.B).
        let mut words = bytes.chunks_exact(4);
        let mut sum: u64 =
            words.by_ref().map(|w| u64::from(u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))).sum();
        let mut tail = [0; 4];
        let rest = words.remainder();
        tail[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_ne_bytes(tail));
        Self(sum)
    }

    /// The sum of a TCP or UDP pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1); `len` is the segment's length.
    #[must_use]
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: usize) -> Self {
        let addresses = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Self::of(&src.octets()).and(Self::of(&dst.octets())),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Self::of(&src.octets()).and(Self::of(&dst.octets())),
            _ => unreachable!("the addresses of one packet are of one family"),
        };
        let mut words = [0; 8];
        words[..4].copy_from_slice(&(len as u32).to_be_bytes());
        words[7] = protocol;
        addresses.and(Self::of(&words))
    }

    /// Both sums together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The folded complement, ready for a checksum field.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !self.fold().to_be()
    }

    /// Whether data that includes its own checksum adds up.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.fold() == 0xffff
    }

    const fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

/// The checksum after one 16-bit word under it changed from `old` to `new` (RFC 1624, equation 3).
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = (!checksum) as u32 + (!old) as u32 + new as u32;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071's definition, word by word.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Sum::of(&bytes).finish(), reference(&bytes));
        }

        #[test]
        fn data_with_its_checksum_is_valid(mut bytes in proptest::collection::vec(any::<u8>(), 1..100)) {
            bytes.resize(bytes.len() * 2, 0);
            bytes[..2].fill(0);
            let checksum = Sum::of(&bytes).finish();
            bytes[..2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(Sum::of(&bytes).is_valid());
        }

        #[test]
        fn an_update_equals_a_new_sum(mut bytes in proptest::collection::vec(1_u8..=255, 40), word: u16) {
            let before = Sum::of(&bytes).finish();
            let old = u16::from_be_bytes([bytes[10], bytes[11]]);
            bytes[10..12].copy_from_slice(&word.to_be_bytes());
            prop_assert_eq!(update(before, old, word), Sum::of(&bytes).finish());
        }
    }
}
