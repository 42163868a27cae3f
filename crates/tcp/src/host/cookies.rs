//! SYN cookies: RFC 4987 (3.6). What a SYN said is not kept but sent, in our initial sequence number and, if the peer has
//! timestamps, in the lowest bits of ours; the peer's acknowledgement brings both back.
//!
//! Deviations: the number has 3 bits of MSS and 29 of a keyed hash over addresses, ports, the peer's number, the options
//! and the time; it does not grow with time, as RFC 6528 wants it to. Without timestamps only the MSS is remembered, and
//! the answer offers nothing else. An acknowledgement that gets lost is not asked for again: a peer that waits for our data
//! first then waits in vain.
//!
//! A cookie lives for 64 to 128 s, so each acknowledgement is held against two: to forge one takes 2^28 of them on average, and
//! only counts while cookies are out.

use core::hash::{BuildHasher, Hasher};

use base::wire::tcp::{Flags, Options, Repr, Timestamps};
use base::{Duration, Instant, SeqNum};

use super::ports::{Key, Secret};
use crate::connection::Seeds;

/// How many cookies there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieStatistics {
    /// SYNs answered with a cookie.
    pub sent: u64,
    /// Connections that came of them.
    pub accepted: u64,
    /// Acknowledgements without a true cookie, while there could be such.
    pub refused: u64,
}

/// Makes cookies, and tells true ones.
#[derive(Debug)]
pub(super) struct Cookies {
    secret: Secret,
    pub(super) statistics: CookieStatistics,
}

/// A cookie is good until the end of the period after the one that it was made in, so for one to two; Linux has 60 s.
const PERIOD: Duration = Duration::from_secs(64);
/// Sizes of segments that a cookie can tell, in bytes: the least, those that make common MTUs, and some in between.
const SIZES: [u16; 8] = [64, 512, 536, 1220, 1360, 1440, 1460, 8940];
/// The bits of a cookie that tell the size.
const SIZE_BITS: u32 = SIZES.len() as u32 - 1;
/// The lowest bits of a timestamp, as in Linux: the window scale, SACK, ECN.
const OPTION_BITS: u32 = 0x3f;
const NO_SCALE: u32 = 0xf;
const SACK: u32 = 0x10;
const ECN: u32 = 0x20;

impl Cookies {
    pub(super) fn new(secret: Secret) -> Self {
        Self { secret, statistics: CookieStatistics::default() }
    }

    /// When cookies that are made now are good no more.
    pub(super) fn expiry(now: Instant) -> Instant {
        now.saturating_add(PERIOD).saturating_add(PERIOD)
    }

    /// What to answer `syn` with, in place of `seeds`, and the SYN as far as it will be remembered: no more may be agreed on.
    /// `mss` is the peer's; `timestamps` says whether we send any.
    pub(super) fn bake(
        &self,
        now: Instant,
        key: Key,
        syn: &Repr,
        (mss, timestamps): (u16, bool),
        seeds: Seeds,
    ) -> (Seeds, Repr) {
        let size = SIZES.iter().rposition(|&size| size <= mss).unwrap_or(0) as u32;
        let stamps = syn.options.timestamps.filter(|_| timestamps);
        let options = stamps.map(|_| {
            let scale = syn.options.window_scale.map_or(NO_SCALE, |scale| u32::from(scale).min(14));
            let sack = if syn.options.sack_permitted { SACK } else { 0 };
            let ecn = if syn.flags.has(Flags::ECE | Flags::CWR) { ECN } else { 0 };
            scale | sack | ecn
        });
        let clock = seeds.timestamp_offset.wrapping_add((now.as_nanos() / 1_000_000) as u32);
        // The latest with these bits that is not in the future: timestamps must not go back afterwards.
        let back = options.map_or(0, |options| clock.wrapping_sub(options) & OPTION_BITS);
        let seeds = Seeds {
            initial_sequence: self.number(now, key, syn.seq, size, options),
            timestamp_offset: seeds.timestamp_offset.wrapping_sub(back),
        };
        (seeds, remembered(syn, syn.seq, size, options))
    }

    /// The SYN that `ack` follows, if it brings a true cookie; `timestamps` says whether we would have sent any.
    pub(super) fn recall(&self, now: Instant, key: Key, ack: &Repr, timestamps: bool) -> Option<Repr> {
        let cookie = SeqNum(ack.ack.0.wrapping_sub(1));
        let irs = SeqNum(ack.seq.0.wrapping_sub(1));
        let size = cookie.0 & SIZE_BITS;
        let options = ack.options.timestamps.filter(|_| timestamps).map(|it| it.echo & OPTION_BITS);
        let before = Instant::from_nanos(now.as_nanos().saturating_sub(PERIOD.as_nanos()));
        let is_true = [now, before].iter().any(|&at| self.number(at, key, irs, size, options) == cookie);
        is_true.then(|| remembered(ack, irs, size, options))
    }

    fn number(&self, now: Instant, key: Key, irs: SeqNum, size: u32, options: Option<u32>) -> SeqNum {
        let mut hasher = self.secret.build_hasher();
        hasher.write(&key.bytes());
        hasher.write(&(now.as_nanos() / PERIOD.as_nanos()).to_be_bytes());
        for word in [irs.0, size, options.unwrap_or(u32::MAX)] {
            hasher.write(&word.to_be_bytes());
        }
        SeqNum(hasher.finish() as u32 & !SIZE_BITS | size)
    }
}

/// A SYN as a cookie tells of it: numbered `irs`, with a size and, if there are timestamps, with options; they, and where it
/// came from, are the `segment`'s.
fn remembered(segment: &Repr, irs: SeqNum, size: u32, options: Option<u32>) -> Repr {
    let has = |bit| options.is_some_and(|options| options & bit != 0);
    let scale = options.map_or(NO_SCALE, |options| options & NO_SCALE);
    let stamps = segment.options.timestamps.filter(|_| options.is_some());
    Repr {
        seq: irs,
        ack: SeqNum(0),
        flags: if has(ECN) { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN },
        window: 0,
        urgent: 0,
        options: Options {
            mss: Some(SIZES[size as usize]),
            window_scale: (scale != NO_SCALE).then_some(scale as u8),
            sack_permitted: has(SACK),
            timestamps: stamps.map(|it| Timestamps { value: it.value, echo: 0 }),
            ..Options::default()
        },
        ..*segment
    }
}
