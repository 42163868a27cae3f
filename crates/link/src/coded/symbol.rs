//! What a sum is made of: for each frame in it a *symbol*, which says all that the frame would have said.
//!
//! ```text
//! +---------------------+--------+-------------------+---------+
//! | flags: first 2, last 1 | length | back, if first | payload |
//! +---------------------+--------+-------------------+---------+
//!   1                      2        varint             n bytes   big-endian
//! ```

use base::code::gf256;

use crate::arq::frame::{Part, push_varint, read_varint};

/// Bytes of a symbol before its payload, at most.
pub(super) const MAX_FIELDS: usize = 7;

/// Adds the multiple of a frame's symbol by `coefficient` to a sum, which grows if it is shorter.
pub(super) fn add(sum: &mut Vec<u8>, coefficient: u8, part: &Part<'_>) {
    let fields = fields(part);
    let len = fields.len() + part.payload.len();
    if sum.len() < len {
        sum.resize(len, 0);
    }
    let (start, rest) = sum.split_at_mut(fields.len());
    gf256::add_multiple(start, coefficient, &fields);
    gf256::add_multiple(rest, coefficient, part.payload);
}

/// Bytes of a frame's symbol.
pub(super) const fn len(part: &Part<'_>) -> usize {
    let back = match part.first {
        true => varint_len(part.back),
        false => 0,
    };
    3 + back + part.payload.len()
}

/// Bytes of a number of up to 28 bits.
const fn varint_len(number: u32) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

fn fields(part: &Part<'_>) -> Vec<u8> {
    let mut fields = Vec::with_capacity(MAX_FIELDS);
    fields.push(u8::from(part.first) << 1 | u8::from(part.last));
    fields.extend_from_slice(&(part.payload.len() as u16).to_be_bytes());
    if part.first {
        push_varint(part.back.into(), &mut fields);
    }
    fields
}

/// Reads the symbol of the frame `sequence`, which zeros may follow; `None` for one that no sender makes.
pub(super) fn read(sequence: u32, symbol: &[u8]) -> Option<Part<'_>> {
    let (&[flags, high, low], mut rest) = symbol.split_first_chunk()?;
    let (first, last) = (flags & 2 != 0, flags & 1 != 0);
    let back = if first { read_varint(&mut rest)? } else { 0 };
    let (payload, padding) = rest.split_at_checked(u16::from_be_bytes([high, low]).into())?;
    let is_sound = flags < 4 && padding.iter().all(|byte| *byte == 0);
    is_sound.then_some(Part { sequence, first, last, back, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_symbol_reads_as_it_was_written(
            (first, last) in any::<(bool, bool)>(),
            back in 0_u32..1 << 28,
            payload in prop::collection::vec(any::<u8>(), 0..100),
            padding in 0_usize..9,
        ) {
            let back = if first { back } else { 0 };
            let part = Part { sequence: 7, first, last, back, payload: &payload };
            let mut symbol = Vec::new();
            add(&mut symbol, 1, &part);
            prop_assert!(symbol.len() <= payload.len() + MAX_FIELDS);
            prop_assert_eq!(symbol.len(), len(&part));
            symbol.resize(symbol.len() + padding, 0);
            prop_assert_eq!(read(7, &symbol), Some(part));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(part) = read(7, &bytes) {
                prop_assert!(part.payload.len() < bytes.len());
            }
        }
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        for symbol in [
            &[0, 0][..],
            &[0, 0, 1],
            &[4, 0, 0],
            &[2, 0, 0],
            &[0, 0, 0, 1],
            &[2, 0, 0, 0x80, 0x80, 0x80, 0x80, 0],
        ] {
            assert_eq!(read(7, symbol), None, "{symbol:?}");
        }
        assert!(read(7, &[3, 0, 0, 0, 0]).is_some());
    }
}
