//! Numbers of 24 bits on the air, of 64 bits inside.

/// Different numbers on the air. Divides 2^64, so that differences may wrap.
pub(crate) const SPACE: u64 = 1 << 24;

/// The widest window in frames: 187 MB in flight with frames of 1426 bytes, 1 Gbit/s over 1.5 s. Ours: far below half the
/// numbers, so that a frame of long ago is never taken for a new one.
pub const MAX_WINDOW: u32 = 1 << 17;

/// A number as it is on the air.
pub(crate) const fn on_air(number: u64) -> u32 {
    (number % SPACE) as u32
}

/// How far a number on the air lies beyond `base`, below [`SPACE`].
pub(crate) const fn beyond(base: u64, number: u32) -> u64 {
    (number as u64).wrapping_sub(base) % SPACE
}

/// How far a number on the air lies ahead of `base`, or `None` if it lies behind it: half the numbers do.
pub(crate) const fn ahead(base: u64, number: u32) -> Option<u64> {
    let distance = beyond(base, number);
    if distance < SPACE / 2 { Some(distance) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_wrap() {
        let base = 5 * SPACE - 3;
        assert_eq!(on_air(base + 4), 1);
        assert_eq!((beyond(base, 1), ahead(base, 1)), (4, Some(4)));
        assert_eq!((beyond(base, on_air(base - 1)), ahead(base, on_air(base - 1))), (SPACE - 1, None));
        assert_eq!(ahead(base, on_air(base + SPACE / 2 - 1)), Some(SPACE / 2 - 1));
        assert_eq!(ahead(base, on_air(base + SPACE / 2)), None);
    }
}
