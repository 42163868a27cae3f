//! Arithmetic on bytes as elements of GF(256), modulo x^8 + x^4 + x^3 + x^2 + 1 (RFC 5510, 8.1).
//!
//! Addition is XOR. A product of a constant and many bytes is looked up by halves of each byte, 32 bytes at a time where the
//! processor has AVX2.

/// The polynomial's low byte.
const REDUCTION: u8 = 0x1d;

/// The powers of x, twice over, so that a sum of two logarithms needs no reduction.
const EXP: [u8; 510] = {
    let mut powers = [1; 510];
    let mut at = 1;
    while at < 510 {
        let before = powers[at - 1];
        powers[at] = before << 1 ^ if before >= 128 { REDUCTION } else { 0 };
        at += 1;
    }
    powers
};

/// The logarithms to the base x; that of 0 means nothing.
const LOG: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut power = 0;
    while power < 255 {
        logarithms[EXP[power] as usize] = power as u8;
        power += 1;
    }
    logarithms
};

/// The product.
#[must_use]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// The quotient.
///
/// # Panics
/// If `b` is zero.
#[must_use]
pub const fn div(a: u8, b: u8) -> u8 {
    assert!(b != 0, "division by zero");
    if a == 0 { 0 } else { EXP[255 + LOG[a as usize] as usize - LOG[b as usize] as usize] }
}

/// Adds `coefficient` times `source` to the start of `sum`.
///
/// # Panics
/// If `source` is longer than `sum`.
pub fn add_multiple(sum: &mut [u8], coefficient: u8, source: &[u8]) {
    let sum = &mut sum[..source.len()];
    let products = Products::of(coefficient);
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return x86::add_multiple(simd, sum, &products, source);
    }
    products.add_multiple(sum, source);
}

/// The products of a constant with every half of a byte.
#[derive(Clone, Copy, Debug)]
struct Products {
    low: [u8; 16],
    high: [u8; 16],
}

impl Products {
    fn of(constant: u8) -> Self {
        Self {
            low: core::array::from_fn(|half| mul(constant, half as u8)),
            high: core::array::from_fn(|half| mul(constant, (half as u8) << 4)),
        }
    }

    fn add_multiple(&self, sum: &mut [u8], source: &[u8]) {
        for (sum, byte) in sum.iter_mut().zip(source) {
            *sum ^= self.low[usize::from(byte & 15)] ^ self.high[usize::from(byte >> 4)];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::__m256i;

    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, cast};

    use super::Products;

    /// One call with the processor's features on.
    struct Addition<'a> {
        simd: V3,
        sum: &'a mut [u8],
        products: &'a Products,
        source: &'a [u8],
    }

    pub(super) fn add_multiple(simd: V3, sum: &mut [u8], products: &Products, source: &[u8]) {
        simd.vectorize(Addition { simd, sum, products, source });
    }

    impl NullaryFnOnce for Addition<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { simd: V3 { avx, avx2, .. }, sum, products, source } = self;
            let twice = |half: [u8; 16]| -> __m256i { cast([half, half]) };
            let (low, high) = (twice(products.low), twice(products.high));
            let mask = avx._mm256_set1_epi8(15);
            let (sums, sum_rest) = sum.as_chunks_mut::<32>();
            let (sources, source_rest) = source.as_chunks::<32>();
            for (sum, source) in sums.iter_mut().zip(sources) {
                let bytes: __m256i = cast(*source);
                let low_half = avx2._mm256_and_si256(bytes, mask);
                let high_half = avx2._mm256_and_si256(avx2._mm256_srli_epi64::<4>(bytes), mask);
                let product = avx2._mm256_xor_si256(
                    avx2._mm256_shuffle_epi8(low, low_half),
                    avx2._mm256_shuffle_epi8(high, high_half),
                );
                *sum = cast(avx2._mm256_xor_si256(cast(*sum), product));
            }
            products.add_multiple(sum_rest, source_rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The product by its definition: shift, add, reduce.
    fn product(a: u8, b: u8) -> u8 {
        (0..8).rev().fold(0, |sum: u8, bit| {
            let doubled = sum << 1 ^ if sum >= 128 { REDUCTION } else { 0 };
            doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
        })
    }

    #[test]
    fn every_product_and_quotient() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), product(a, b), "{a} * {b}");
                if b > 0 {
                    assert_eq!(mul(div(a, b), b), a, "{a} / {b}");
                }
            }
        }
    }

    proptest! {
        /// Whatever the processor, whatever the lengths.
        #[test]
        fn multiples_add_up(
            coefficient: u8,
            source in prop::collection::vec(any::<u8>(), 0..200),
            more in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let before: Vec<u8> = source.iter().map(|byte| byte.wrapping_mul(31) ^ 5).chain(more).collect();
            let mut expected = before.clone();
            for (sum, byte) in expected.iter_mut().zip(&source) {
                *sum ^= product(coefficient, *byte);
            }
            let (mut sum, mut portable) = (before.clone(), before);
            add_multiple(&mut sum, coefficient, &source);
            prop_assert_eq!(&sum, &expected);
            Products::of(coefficient).add_multiple(&mut portable, &source);
            prop_assert_eq!(&portable, &expected);
        }
    }
}
