//! A stretch of the stream, bit by bit.

/// Bits, the first of a byte being its most significant one. They are dropped from the front by whole bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// This many zero bytes.
    pub(super) fn zeros(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], len: bytes * 8 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Appends the first `len` bits of `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8], len: usize) {
        let bytes = &bytes[..len.div_ceil(8)];
        let used = self.len % 8;
        if used == 0 {
            self.bytes.extend_from_slice(bytes);
        } else {
            for &byte in bytes {
                if let Some(last) = self.bytes.last_mut() {
                    *last |= byte >> used;
                }
                self.bytes.push(byte << (8 - used));
            }
        }
        self.len += len;
        self.bytes.truncate(self.len.div_ceil(8));
        // Bits behind the last one are zero, so that the next can be merged in.
        if let (Some(last), tail @ 1..) = (self.bytes.last_mut(), self.len % 8) {
            *last &= 0xff << (8 - tail);
        }
    }

    /// Drops this many bytes from the front.
    pub(super) fn drop_front(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.len -= bytes * 8;
    }

    #[inline]
    pub(super) fn bit(&self, at: usize) -> bool {
        self.bytes[at / 8] << (at % 8) & 0x80 != 0
    }

    /// Up to 32 bits from `at`, as a number. They must be there.
    #[inline]
    pub(super) fn number(&self, at: usize, bits: u32) -> u32 {
        let rest = &self.bytes[at / 8..];
        let word = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            word
        });
        (u64::from_be_bytes(word) << (at % 8) >> (64 - bits)) as u32
    }

    /// Appends `len` bytes from bit `at` on to `out`. They must be there.
    pub(super) fn copy(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        let (first, shift) = (at / 8, at % 8);
        if shift == 0 {
            out.extend_from_slice(&self.bytes[first..first + len]);
            return;
        }
        let pairs = self.bytes[first..=first + len].windows(2);
        out.extend(pairs.map(|pair| pair[0] << shift | pair[1] >> (8 - shift)));
    }
}
