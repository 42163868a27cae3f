//! Arithmetic on bytes as elements of GF(256), modulo x^8 + x^4 + x^3 + x^2 + 1 (RFC 5510, 8.1).
//!
//! Addition is XOR. A product of a constant and many bytes is looked up by halves of each byte: 32 bytes at a time and four
//! constants at once where the processor has AVX2.

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

/// The logarithm to the base x, from 0 to 254.
///
/// # Panics
/// For zero, which has none.
#[must_use]
pub const fn log(a: u8) -> u8 {
    assert!(a != 0, "zero has no logarithm");
    LOG[a as usize]
}

/// The number with the logarithm `power` modulo 255.
#[must_use]
pub const fn exp(power: u32) -> u8 {
    EXP[(power % 255) as usize]
}

/// The number that makes 1 with `a`.
///
/// # Panics
/// For zero, which has none.
#[must_use]
pub const fn inverse(a: u8) -> u8 {
    exp(255 - log(a) as u32)
}

/// Adds to the start of `sum` the multiple of `source` by `coefficient`.
///
/// # Panics
/// If `source` is longer than `sum`.
pub fn add_multiple(sum: &mut [u8], coefficient: u8, source: &[u8]) {
    add_to([sum], &[coefficient], source);
}

/// Adds to the start of each sum the multiple of `source` by its coefficient.
///
/// # Panics
/// If `source` is longer than a sum.
pub fn add_multiples(sums: &mut [Vec<u8>], coefficients: &[u8], source: &[u8]) {
    // Four are what the processor has registers for at a time.
    let (fours, rest) = sums.as_chunks_mut::<4>();
    let (fours_of, rest_of) = coefficients.as_chunks::<4>();
    fours.iter_mut().zip(fours_of).for_each(|(sums, coefficients)| {
        add_to(sums.each_mut().map(Vec::as_mut_slice), coefficients, source);
    });
    match (rest, rest_of) {
        ([a, b, c], [ka, kb, kc]) => add_to([a, b, c], &[*ka, *kb, *kc], source),
        ([a, b], [ka, kb]) => add_to([a, b], &[*ka, *kb], source),
        ([a], [ka]) => add_to([a], &[*ka], source),
        _ => {}
    }
}

fn add_to<const N: usize>(sums: [&mut [u8]; N], coefficients: &[u8; N], source: &[u8]) {
    let sums = sums.map(|sum| &mut sum[..source.len()]);
    let products = coefficients.map(|coefficient| &PRODUCTS[usize::from(coefficient)]);
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return x86::add_multiples(simd, sums, &products, source);
    }
    for (sum, products) in sums.into_iter().zip(products) {
        products.add_multiple(sum, source);
    }
}

/// The products of a constant with every half of a byte.
#[derive(Clone, Copy, Debug)]
struct Products {
    low: [u8; 16],
    high: [u8; 16],
}

static PRODUCTS: [Products; 256] = {
    let mut products = [Products { low: [0; 16], high: [0; 16] }; 256];
    let mut at = 0;
    while at < 256 * 16 {
        let (constant, half) = (at / 16, at % 16);
        products[constant].low[half] = mul(constant as u8, half as u8);
        products[constant].high[half] = mul(constant as u8, (half as u8) << 4);
        at += 1;
    }
    products
};

impl Products {
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
    struct Addition<'a, const N: usize> {
        simd: V3,
        sums: [&'a mut [u8]; N],
        products: &'a [&'a Products; N],
        source: &'a [u8],
    }

    pub(super) fn add_multiples<const N: usize>(
        simd: V3,
        sums: [&mut [u8]; N],
        products: &[&Products; N],
        source: &[u8],
    ) {
        simd.vectorize(Addition { simd, sums, products, source });
    }

    impl<const N: usize> NullaryFnOnce for Addition<'_, N> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { simd: V3 { avx, avx2, .. }, sums, products, source } = self;
            let twice = |half: [u8; 16]| -> __m256i { cast([half, half]) };
            let tables = products.map(|products| (twice(products.low), twice(products.high)));
            let mask = avx._mm256_set1_epi8(15);
            let halves = |bytes: __m256i| {
                let high = avx2._mm256_srli_epi64::<4>(bytes);
                (avx2._mm256_and_si256(bytes, mask), avx2._mm256_and_si256(high, mask))
            };
            let add = |sum: [u8; 32],
                       (low, high): (__m256i, __m256i),
                       (low_half, high_half): (__m256i, __m256i)| {
                let product = avx2._mm256_xor_si256(
                    avx2._mm256_shuffle_epi8(low, low_half),
                    avx2._mm256_shuffle_epi8(high, high_half),
                );
                cast(avx2._mm256_xor_si256(cast(sum), product))
            };
            let (sources, rest) = source.as_chunks::<32>();
            let mut sums = sums;
            // As long as the sources, which spares a check at each place.
            let chunks = sums.each_mut().map(|sum| &mut sum.as_chunks_mut::<32>().0[..sources.len()]);
            for (at, source) in sources.iter().enumerate() {
                let halves = halves(cast(*source));
                for (row, table) in tables.into_iter().enumerate() {
                    let sum = &mut chunks[row][at];
                    *sum = add(*sum, table, halves);
                }
            }
            let (Some(source), Some(undone)) = (source.last_chunk(), UNDONE[rest.len()..].first_chunk())
            else {
                return sums.into_iter().zip(products).for_each(|(sum, it)| it.add_multiple(sum, rest));
            };
            // The last 32 bytes once more, where those that are done count as zero.
            let (source, undone): (&[u8; 32], &[u8; 32]) = (source, undone);
            let halves = halves(avx2._mm256_and_si256(cast(*source), cast(*undone)));
            for (sum, table) in sums.into_iter().zip(tables) {
                let Some(sum) = sum.last_chunk_mut::<32>() else { continue };
                *sum = add(*sum, table, halves);
            }
        }
    }

    /// From place n on, ones for the last n of 32 bytes, and zeros for those before.
    const UNDONE: [u8; 64] = {
        let mut bytes = [0; 64];
        let mut at = 32;
        while at < 64 {
            bytes[at] = 0xff;
            at += 1;
        }
        bytes
    };
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
    fn every_product_and_logarithm() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), product(a, b), "{a} * {b}");
                if a > 0 && product(a, b) == 1 {
                    assert_eq!(inverse(a), b);
                }
                if a > 0 && b > 0 {
                    assert_eq!(exp(u32::from(log(a)) + u32::from(log(b))), product(a, b), "{a} * {b}");
                }
            }
        }
    }

    proptest! {
        /// Whatever the processor, whatever the lengths and the number of sums.
        #[test]
        fn multiples_add_up(
            coefficients in prop::collection::vec(any::<u8>(), 0..10),
            source in prop::collection::vec(any::<u8>(), 0..200),
            more in 0_usize..40,
        ) {
            let before = |row: usize| (0..source.len() + more).map(|at| (at * 31 + row * 7) as u8).collect::<Vec<_>>();
            let mut sums: Vec<_> = (0..coefficients.len()).map(before).collect();
            add_multiples(&mut sums, &coefficients, &source);
            for (row, (sum, coefficient)) in sums.iter().zip(&coefficients).enumerate() {
                let (mut expected, mut portable) = (before(row), before(row));
                for (sum, byte) in expected.iter_mut().zip(&source) {
                    *sum ^= product(*coefficient, *byte);
                }
                prop_assert_eq!(sum, &expected);
                PRODUCTS[usize::from(*coefficient)].add_multiple(&mut portable, &source);
                prop_assert_eq!(&portable, &expected);
            }
        }
    }
}
