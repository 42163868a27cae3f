//! The 31 check bits: a cyclic code that finds every pattern of up to five wrong bits in a frame.
//!
//! The generator is (x + 1) m1(x) m3(x) over GF(2), where m1 = x^15 + x + 1 is primitive and m3 = x^15 + x^10 +
//! x^5 + x + 1 is the minimal polynomial of the cube of its root. Its roots include the powers 0 to 4 of a primitive
//! element of GF(2^15), so by the BCH bound (Bose and Ray-Chaudhuri 1960, Hocquenghem 1959) two different words of up
//! to 32,767 bits differ in at least six places; a frame with its context has 4,256. Every odd number of wrong bits
//! and every burst of up to 31 is found too, and of all others 2^-31 pass.
//!
//! The first bit that is covered counts inverted. Without that a word with zeros in front or behind would be one too,
//! and a receiver that hunts could take its place for another.

use super::{CONTEXT_LEN, LENGTH_BITS};

/// The generator with its leading term, bit k for x^k.
pub(super) const GENERATOR: u32 = 0xc630_14af;
/// Number of check bits.
pub(super) const WIDTH: u32 = 31;

/// The generator's lower terms, moved up so that a 32-bit register's top bit is the highest of 31.
const REGISTER: u32 = GENERATOR << 1;

/// `TABLES[k][b]`: the register after byte `b` and `k` zero bytes.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut register = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            register = if register >> 31 == 1 { register << 1 ^ REGISTER } else { register << 1 };
            bit += 1;
        }
        tables[0][byte] = register;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = before << 8 ^ tables[0][(before >> 24) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// Check bits under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check(u32);

impl Check {
    /// Takes `bytes`, eight at a time.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let head = self.0 ^ u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            let [a, b, c, d] = head.to_be_bytes().map(usize::from);
            self.0 = TABLES[7][a] ^ TABLES[6][b] ^ TABLES[5][c] ^ TABLES[4][d];
            let [e, f, g, h] = [word[4], word[5], word[6], word[7]].map(usize::from);
            self.0 ^= TABLES[3][e] ^ TABLES[2][f] ^ TABLES[1][g] ^ TABLES[0][h];
        }
        for &byte in rest {
            self.0 = self.0 << 8 ^ TABLES[0][usize::from((self.0 >> 24) as u8 ^ byte)];
        }
    }

    /// The check of a frame, after what precedes its body: the context, if any, and the 9 bits of its length. Leading
    /// zeros fill them up to whole bytes.
    pub(super) fn of_head(context: Option<[u8; CONTEXT_LEN]>, len: usize) -> Self {
        let mut check = Self(0);
        let Some(context) = context else {
            check.update(&(len as u16 ^ 1 << (LENGTH_BITS - 1)).to_be_bytes());
            return check;
        };
        let context = u128::from_be_bytes(context) ^ 1 << 127;
        check.update(&(context >> (16 - LENGTH_BITS)).to_be_bytes());
        check.update(&((context << LENGTH_BITS) as u16 | len as u16).to_be_bytes());
        check
    }

    /// The check bits of everything taken.
    pub(super) const fn bits(self) -> u32 {
        self.0 >> 1
    }
}

/// The check of every stretch of a stream at once.
///
/// With s(i) the sum of x^-j over the set bits j < i of the stream, modulo the generator, the bits from a to b are a
/// word of the code if and only if s(a) = s(b): dividing by x^b does not change whether the sum is zero. So each
/// bit costs one step of a register and a frame that might be there one comparison, however long it is. That the first
/// bit counts inverted adds x^-a.
#[derive(Clone, Debug)]
pub(super) struct Rolling {
    /// s at each position, in a ring, and with x^-j added; made when it is first needed.
    sums: Vec<[u32; 2]>,
    /// s after the last bit taken.
    sum: u32,
    /// x^-j for the next bit j.
    power: u32,
}

/// Positions that the ring remembers. A power of two; [`super::deframer`] needs two frames and a slice of input.
pub(super) const RING: u64 = 8192;

impl Rolling {
    pub(super) const fn new() -> Self {
        Self { sums: Vec::new(), sum: 0, power: 1 }
    }

    /// Starts at `position`, from where on stretches may be asked about.
    pub(super) fn start(&mut self, position: u64) {
        self.sums.resize(RING as usize, [0; 2]);
        (self.sum, self.power) = (0, 1);
        self.remember(position);
    }

    /// Takes the bit that ends at `position`.
    #[inline]
    pub(super) fn push(&mut self, bit: bool, position: u64) {
        self.sum ^= self.power & u32::from(bit).wrapping_neg();
        // The generator's constant term makes x invertible.
        self.power = self.power >> 1 ^ (GENERATOR >> 1) & (self.power & 1).wrapping_neg();
        self.remember(position);
    }

    #[inline]
    fn remember(&mut self, position: u64) {
        self.sums[(position % RING) as usize] = [self.sum, self.sum ^ self.power];
    }

    /// Zero if the bits between two positions are a frame with its context; over random bits, uniform.
    #[inline]
    pub(super) fn syndrome(&self, from: u64, to: u64) -> u32 {
        self.sums[(from % RING) as usize][1] ^ self.sums[(to % RING) as usize][0]
    }
}
