//! Values that are refused while they are read, so that the complaint has its line.

use base::Duration;
use base::units::Size;
use serde::{Deserialize, Deserializer, de};

/// Bytes of the least MSS: room for data beside 40 bytes of options.
pub(super) const MIN_MSS: u16 = 64;
/// Bytes of the largest MSS: what the largest IPv4 packet leaves after IP and TCP headers.
pub(super) const MAX_MSS: u16 = 65_495;
/// The least retransmission time-out that may be configured, so that time passes between two.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// The shortest silence after which a peer may be asked whether it is there; that of Linux.
const MIN_KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Bytes of the largest buffer: a window of 2^30 (RFC 7323, 2.3).
const MAX_BUFFER: u64 = 1 << 30;

pub(super) fn mss<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    match Option::<u16>::deserialize(deserializer)? {
        Some(mss) if !(MIN_MSS..=MAX_MSS).contains(&mss) => {
            Err(de::Error::custom(format!("an MSS of {mss} bytes; allowed are {MIN_MSS} to {MAX_MSS}")))
        }
        mss => Ok(mss),
    }
}

pub(super) fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let timeout = Duration::deserialize(deserializer)?;
    if timeout < MIN_TIMEOUT {
        return Err(de::Error::custom(format!("a time-out of {timeout}; allowed are {MIN_TIMEOUT} or more")));
    }
    Ok(timeout)
}

pub(super) fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    match Option::<Duration>::deserialize(deserializer)? {
        Some(idle) if idle < MIN_KEEP_ALIVE => {
            Err(de::Error::custom(format!("a keep-alive after {idle}; allowed are {MIN_KEEP_ALIVE} or more")))
        }
        idle => Ok(idle),
    }
}

pub(super) fn min_mss<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        mss if (u32::from(MIN_MSS)..=u32::from(MAX_MSS)).contains(&mss) => Ok(mss),
        mss => Err(de::Error::custom(format!("{mss} bytes; allowed are {MIN_MSS} to {MAX_MSS}"))),
    }
}

pub(super) fn granularity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        segments @ 2..=64 => Ok(segments),
        segments => Err(de::Error::custom(format!("{segments} is out of range; allowed are 2 to 64"))),
    }
}

pub(crate) fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(de::Error::custom("0 is too few; allowed are 1 or more")),
        count => Ok(count),
    }
}

pub(super) fn buffer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
    let size = Size::deserialize(deserializer)?;
    match size.0 {
        1..=MAX_BUFFER => Ok(size),
        _ => Err(de::Error::custom(format!("a buffer of {size}; allowed are 1 B to 1 GiB"))),
    }
}
