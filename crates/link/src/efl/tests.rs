//! The layer as a whole, and its check bits and cipher against other sources.

use base::Rng;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::check::{Check, GENERATOR, Rolling};
use super::cipher::Cipher;
use super::*;

mod damage;
mod forged;

fn key() -> Key {
    "2b7e151628aed2a6abf7158809cf4f3c".parse().unwrap()
}

fn ends(encrypted: bool) -> (Framer, Deframer) {
    if encrypted {
        (Framer::keyed(key(), [0x5a; 16]), Deframer::keyed(key()))
    } else {
        (Framer::clear(), Deframer::clear())
    }
}

/// The same cases each time: chance alone passes one in 2^31 false frames.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(31), ..ProptestConfig::default() }
}

/// The remainder of a word, bit by bit: long division.
fn remainder(bits: impl IntoIterator<Item = bool>) -> u32 {
    bits.into_iter().fold(0, |rest, bit| {
        let rest = u64::from(rest) << 1 | u64::from(bit);
        (if rest >> 31 == 1 { rest ^ u64::from(GENERATOR) } else { rest }) as u32
    })
}

fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

fn bytes_of(bits: &[bool]) -> Vec<u8> {
    let byte =
        |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at));
    bits.chunks(8).map(byte).collect()
}

/// Products in GF(2^15) modulo x^15 + x + 1.
fn product(mut a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    while b != 0 {
        sum ^= a & (b & 1).wrapping_neg();
        a <<= 1;
        a ^= 0x8003 & (a >> 15).wrapping_neg();
        b >>= 1;
    }
    sum
}

fn power(base: u32, exponent: u32) -> u32 {
    (0..exponent).fold(1, |power, _| product(power, base))
}

/// Five consecutive powers of a primitive element are roots: by the BCH bound, six wrong bits at least go unnoticed.
#[test]
fn the_generator_has_distance_six() {
    let order = 32_767;
    assert_eq!(power(2, order), 1);
    for prime in [7, 31, 151] {
        assert_ne!(power(2, order / prime), 1, "x generates the field");
    }
    for exponent in 0..5 {
        let root = power(2, exponent);
        let value = (0..32).filter(|k| GENERATOR >> k & 1 == 1).fold(0, |sum, k| sum ^ power(root, k));
        assert_eq!(value, 0, "the power {exponent}");
    }
    assert!((MAX_FRAME + CONTEXT_LEN) * 8 <= order as usize);
}

#[test]
fn the_format_is_pinned() {
    let mut line = Vec::new();
    let (mut framer, _) = ends(false);
    framer.frame(b"123456789", &mut line).unwrap();
    framer.fill(&mut line);
    assert_eq!(line, PINNED);
    let mut line = Vec::new();
    let (mut framer, _) = ends(true);
    framer.frame(b"123456789", &mut line).unwrap();
    assert_eq!(line[..16], [0x5a; 16], "the preamble");
    assert_eq!(line[16..], PINNED_ENCRYPTED);
    assert_eq!((line.len(), Framer::keyed(key(), [0; 16]).line_len(9)), (30, 30));
}

/// Nine bits of length, the digits and 31 check bits by long division; then an empty frame.
const PINNED: [u8; 19] = [4, 152, 153, 25, 154, 26, 155, 27, 156, 28, 175, 21, 255, 65, 0, 1, 24, 12, 80];
/// The digits encrypted by another implementation, the preamble being the context.
const PINNED_ENCRYPTED: [u8; 14] = [4, 217, 174, 67, 26, 120, 234, 88, 242, 11, 61, 160, 81, 178];

/// NIST SP 800-38A, F.3.13: CFB128-AES128.Encrypt.
#[test]
fn the_cipher_is_cfb() {
    let number = |text: &str| u128::from_str_radix(text, 16).unwrap().to_be_bytes();
    let plain = [
        "6bc1bee22e409f96e93d7e117393172a",
        "ae2d8a571e03ac9c9eb76fac45af8e51",
        "30c81c46a35ce411e5fbc1191a0a52ef",
        "f69f2445df4f9b17ad2b417be66c3710",
    ];
    let sealed = [
        "3b3fd92eb72dad20333449f8e83cfb4a",
        "c8a64537a0b3a93fcde3cdad9f1ce58b",
        "26751f67a3cbb140b1808cf187a4f4df",
        "c04b05357c5d1c0eeac4c66f9ff7f2e6",
    ];
    let context = number("000102030405060708090a0b0c0d0e0f");
    for len in [64, 63, 33, 16, 1] {
        let mut body = plain.map(number).concat()[..len].to_vec();
        let cipher = Cipher::new(key());
        cipher.encrypt(context, &mut body);
        assert_eq!(body, sealed.map(number).concat()[..len]);
        cipher.decrypt(context, &mut body);
        assert_eq!(body, plain.map(number).concat()[..len]);
    }
}

#[test]
fn a_key_is_read_and_kept_to_itself() {
    assert_eq!(String::from(key()), "2b7e151628aed2a6abf7158809cf4f3c");
    assert_eq!(format!("{:?}", key()), "Key(..)");
    for wrong in ["", "2b7e", "+b7e151628aed2a6abf7158809cf4f3c", "xb7e151628aed2a6abf7158809cf4f3c"] {
        assert_eq!(wrong.parse::<Key>(), Err(NotAKey));
    }
}

#[test]
fn a_frame_has_1_to_511_bytes() {
    for len in [0, 512, 60_000] {
        let mut line = vec![1];
        assert_eq!(Framer::clear().frame(&vec![0; len], &mut line), Err(BadLength(len)));
        assert_eq!(line, [1]);
    }
}

/// What is equal in two frames is not on the line.
#[test]
fn equal_frames_are_encrypted_apart() {
    let mut line = Vec::new();
    let (mut framer, _) = ends(true);
    (0..2).for_each(|_| framer.frame(&[7; 100], &mut line).unwrap());
    let blocks: std::collections::BTreeSet<&[u8]> = line[16..].chunks_exact(16).collect();
    assert_eq!(blocks.len(), line[16..].len() / 16);
}

proptest! {
    #![proptest_config(fixed(256))]

    #[test]
    fn tables_do_what_long_division_does(bytes in prop::collection::vec(any::<u8>(), 0..600), cut in 0_usize..600) {
        let cut = cut.min(bytes.len());
        for context in [None, Some([0xa5; 16])] {
            let mut check = Check::of_head(context, bytes.len() % 512);
            check.update(&bytes[..cut]);
            check.update(&bytes[cut..]);
            let mut bits = bits_of(context.as_ref().map_or(&[], |context| context));
            bits.extend((0..9).rev().map(|k| bytes.len() >> k & 1 == 1));
            bits.extend(bits_of(&bytes));
            bits[0] ^= true;
            prop_assert_eq!(check.bits(), remainder(bits.into_iter().chain([false; 31])));
        }
    }

    /// Any stretch of a stream is a word of the code, its first bit inverted, if and only if its two sums agree.
    #[test]
    fn rolling_sums_tell_words(
        bytes in prop::collection::vec(any::<u8>(), 1..40),
        start in 0_u64..20_000,
        cut in any::<[prop::sample::Index; 2]>(),
    ) {
        let inverted = |mut bits: Vec<bool>| {
            bits.iter_mut().take(1).for_each(|bit| *bit = !*bit);
            bits
        };
        let mut bits = bits_of(&bytes);
        let rest = remainder(inverted(bits.clone()).into_iter().chain([false; 31]));
        bits.extend((0..31).rev().map(|k| rest >> k & 1 == 1));
        let mut rolling = Rolling::new();
        rolling.start(start);
        for (at, bit) in bits.iter().enumerate() {
            rolling.push(*bit, start + at as u64 + 1);
        }
        let syndrome = |from: usize, to: usize| rolling.syndrome(start + from as u64, start + to as u64);
        prop_assert_eq!(syndrome(0, bits.len()), 0);
        let [a, b] = cut.map(|cut| cut.index(bits.len()));
        let (a, b) = (a.min(b), a.max(b) + 1);
        prop_assert_eq!(syndrome(a, b) == 0, remainder(inverted(bits[a..b].to_vec())) == 0);
    }

    /// Any frames, from any bit of the stream on, in any pieces.
    #[test]
    fn what_is_framed_is_found(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=MAX_BODY), 1..8),
        encrypted: bool,
        lead in prop::collection::vec(any::<bool>(), 0..40),
        piece in 1_usize..3000,
    ) {
        let (mut framer, mut deframer) = ends(encrypted);
        let mut line = Vec::new();
        for body in &bodies {
            if framer.frame(body, &mut line).is_err() {
                framer.fill(&mut line);
            }
        }
        let stream: Vec<bool> = lead.iter().copied().chain(bits_of(&line)).collect();
        let mut found = Vec::new();
        for piece in stream.chunks(piece) {
            deframer.handle_bits(&bytes_of(piece), piece.len(), |body| found.push(body.to_vec()));
        }
        deframer.handle_silence(|body| found.push(body.to_vec()));
        let sent: Vec<Vec<u8>> = bodies.into_iter().filter(|body| !body.is_empty()).collect();
        prop_assert_eq!(found, sent, "{:?}", deframer.counters());
        prop_assert!(!deframer.is_waiting());
    }
}

/// Frames in step are no work for the hunt, and empty ones keep step.
#[test]
fn a_clean_stream_is_never_hunted_in() {
    let (mut framer, mut deframer) = ends(false);
    let mut line = Vec::new();
    for n in 1..200_usize {
        framer.frame(&vec![0; n], &mut line).unwrap();
        framer.fill(&mut line);
    }
    deframer.handle_bytes(&line, |_| ());
    assert_eq!(deframer.counters(), Counters { frames: 199, fills: 199, ..Counters::default() });
}

/// Who begins to listen in the middle is in step at once, or with a key when 16 bytes have come.
#[test]
fn who_comes_late_is_soon_in_step() {
    for encrypted in [false, true] {
        let (mut framer, mut deframer) = ends(encrypted);
        let mut line = Vec::new();
        (1..100_u8).for_each(|n| framer.frame(&[n; 50], &mut line).unwrap());
        let mut found = Vec::new();
        deframer.handle_bytes(&line[30..], |body| found.push(body[0]));
        assert_eq!(found, (2..100).collect::<Vec<_>>());
        assert_eq!(deframer.counters().hunts, 1);
    }
}

/// Heard from a frame's last bit on, a line with a key costs the frames that begin within 16 bytes: one long one, two from
/// bodies of three bytes on, three shorter ones, four empty ones.
#[test]
fn with_a_key_frames_are_lost_until_sixteen_bytes_have_come() {
    let lost = |encrypted: bool, len: usize| {
        let (mut framer, mut deframer) = ends(encrypted);
        let mut line = Vec::new();
        for n in 0..20 {
            framer.frame(&vec![n; len], &mut line).unwrap_or_else(|_| framer.fill(&mut line));
        }
        // The preamble, the first frame but for its last byte, and seven bits.
        let heard = &line[line.len() - 19 * (len + HEADER_LEN) - 1..];
        let heard = bytes_of(&bits_of(heard)[7..]);
        deframer.handle_bits(&heard, 19 * (len + HEADER_LEN) * 8 + 1, |_| ());
        deframer.handle_silence(|_| ());
        let Counters { frames, fills, .. } = deframer.counters();
        19 - frames - fills
    };
    for len in 0..40 {
        let expected = match len {
            0 => 4,
            1..=2 => 3,
            3..=10 => 2,
            _ => 1,
        };
        assert_eq!((lost(false, len), lost(true, len)), (0, expected), "bodies of {len} bytes");
    }
}

/// With k check bits random bits pass for a frame once in 2^k positions; 2^-31 is out of a test's reach, 2^-14 is not.
/// Tolerance: five standard errors of a Poisson count.
#[test]
fn random_bits_pass_as_often_as_the_check_bits_say() {
    let mut rng = Rng::named(4, "noise");
    let mut noise: Vec<u8> = (0..500_000).flat_map(|_| rng.bits().to_be_bytes()).collect();
    for encrypted in [false, true] {
        let (_, deframer) = ends(encrypted);
        let mut reduced = deframer.clone().with_check_bits(14);
        reduced.handle_bytes(&noise, |_| ());
        let Counters { bits_skipped, frames, fills, .. } = reduced.counters();
        // The bits of an accepted frame are spent: as many positions were tried as bits were skipped.
        let (accepted, expected) = ((frames + fills) as f64, bits_skipped as f64 / 16_384.0);
        assert!((accepted - expected).abs() < 5.0 * expected.sqrt(), "{accepted} of {expected}");
        // With all of them none does.
        let mut whole = deframer;
        whole.handle_bytes(&noise, |body| panic!("{body:?}"));
        assert!(whole.counters().bits_skipped > 31_900_000);
        // Nor in silence.
        whole.handle_silence(|body| panic!("{body:?}"));
    }
    // Nor where nothing but zeros or ones is heard.
    noise.truncate(100_000);
    for (encrypted, byte) in [(false, 0), (false, 0xff), (false, 0x55), (true, 0), (true, 0xff), (true, 0x55)]
    {
        let (_, mut deframer) = ends(encrypted);
        noise.fill(byte);
        deframer.handle_bytes(&noise, |body| panic!("{body:?}"));
    }
}

/// A false header may claim what it likes: a frame behind it is there as soon as the line says nothing more.
#[test]
fn silence_ends_a_false_header() {
    let (mut framer, mut deframer) = ends(false);
    let mut line = vec![0xff; 7];
    framer.frame(b"hello", &mut line).unwrap();
    deframer.handle_bytes(&line, |body| panic!("{body:?}"));
    assert!(deframer.is_waiting());
    let mut found = Vec::new();
    deframer.handle_silence(|body| found.push(body.to_vec()));
    assert_eq!(found, [b"hello"]);
    assert_eq!(deframer.counters().cut_off, 1);
    // In step again, it needs no hunt.
    let hunts = deframer.counters().hunts;
    line.clear();
    framer.frame(b"again", &mut line).unwrap();
    deframer.handle_bytes(&line, |body| found.push(body.to_vec()));
    assert_eq!((found.len(), deframer.counters().hunts), (2, hunts));
}
