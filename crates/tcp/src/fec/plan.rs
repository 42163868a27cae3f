//! How a block is laid out: segment size, data segments and repairs (Figure 1a of the paper, as the project's notes restore it).
//!
//! Deviations of [`Layout::Restored`]: the sizes are clamped at both ends; with an estimate of nothing the window alone decides the size,
//! where the printed rule would choose the smallest; and repairs are at least `f(E)`. [`Layout::Printed`] has the first alone.

use crate::config::{FecConfig, Layout};

/// Data segments of a block at most.
pub(crate) const MOST_SOURCES: u32 = 64;
/// Repairs that are sent in any case, at most.
pub(crate) const MOST_REPAIRS: u32 = 64;

/// A block that is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Bytes of data of each segment.
    pub(crate) mss: u32,
    /// Segments with data.
    pub(crate) sources: u32,
    /// Repairs behind them.
    pub(crate) repairs: u32,
}

/// The block for a window of `bytes` at an erasure rate of `rate`, where segments may have up to `most` bytes of data.
pub(crate) fn plan(config: &FecConfig, bytes: u64, rate: f64, most: u32) -> Plan {
    let bytes = bytes.clamp(1, 1 << 30) as f64;
    let mss = if config.adaptive_mss { segment_size(config, bytes, rate, most) } else { most };
    let segments = (bytes / f64::from(mss)).max(1.0);
    let window = segments.floor() as u32;
    // A large window has several blocks, each with its part of the repairs.
    let blocks = window.div_ceil(MOST_SOURCES + MOST_REPAIRS);
    let window = window.div_ceil(blocks);
    if !config.proactive {
        return Plan { mss, sources: window.min(MOST_SOURCES), repairs: 0 };
    }
    let wanted = match config.layout {
        Layout::Restored | Layout::Granular => {
            least_repairs(rate).max(libm::ceil(f64::from(window) * rate - 1e-9) as u32)
        }
        Layout::Printed => libm::floor(segments / f64::from(blocks) * rate + 1e-9).max(1.0) as u32,
    };
    let repairs = wanted.min(window.saturating_sub(1)).min(MOST_REPAIRS);
    Plan { mss, sources: (window - repairs).clamp(1, MOST_SOURCES), repairs }
}

/// Bytes of a segment: so many segments in the window that the losses to expect are `f(E)`, but at least `granularity` of them.
fn segment_size(config: &FecConfig, bytes: f64, rate: f64, most: u32) -> u32 {
    let least = config.min_mss.min(most);
    let granular = bytes / f64::from(config.granularity);
    // Less than half a segment is expected to be lost.
    let hardly_lossy = 2.0 * bytes / f64::from(most) * rate < 1.0;
    let by_rate = match config.layout {
        Layout::Restored => !hardly_lossy,
        Layout::Printed => true,
        Layout::Granular => false,
    };
    let wanted = if by_rate && config.proactive {
        bytes * rate / f64::from(least_repairs(rate))
    } else {
        f64::from(most)
    };
    wanted.min(granular).clamp(f64::from(least), f64::from(most)) as u32
}

/// f(E): the least number of repairs that a block of ten needs to be whole with a probability of 95 %, at least 1, at most 5.
pub(crate) const fn least_repairs(rate: f64) -> u32 {
    let mut at = 0;
    while at < F_BINS.len() && rate > F_BINS[at] {
        at += 1;
    }
    at as u32 + 1
}

/// Rates up to which `f` is 1, 2, 3 and 4: where the 95 % quantile of a binomial distribution of ten steps up. Of ours.
const F_BINS: [f64; 4] = [0.037, 0.087, 0.150, 0.222];

/// g(E): repairs for each duplicate acknowledgement. Of ours.
pub(crate) const fn reactive(rate: f64) -> u32 {
    if rate <= 0.25 { 1 } else { 2 }
}

/// Repairs of which so many arrive with a probability of about 95 %, where each is lost at this rate: the mean that is needed and 1.6
/// standard deviations.
pub(crate) fn enough(needed: u32, rate: f64) -> u32 {
    let (needed, passes) = (f64::from(needed), 1.0 - rate.min(0.9));
    libm::ceil((needed + 1.6 * libm::sqrt(needed * rate.min(0.9))) / passes - 1e-9) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LT: FecConfig = FecConfig { adaptive_mss: true, proactive: true, ..FecConfig::OFF };

    fn binomial_above(rate: f64, most: u32) -> f64 {
        let mut below = 0.0;
        for lost in 0..=most {
            let ways = (0..lost).fold(1.0, |ways, at| ways * f64::from(10 - at) / f64::from(at + 1));
            below += ways * libm::pow(rate, lost.into()) * libm::pow(1.0 - rate, (10 - lost).into());
        }
        1.0 - below
    }

    /// At the end of each bin its number of repairs is just enough.
    #[test]
    fn the_bins_are_quantiles() {
        for (repairs, end) in (1..).zip(F_BINS) {
            assert!((binomial_above(end, repairs) - 0.05).abs() < 0.002, "{end}");
            assert_eq!((least_repairs(end), least_repairs(end + 0.001)), (repairs, repairs + 1));
        }
        assert_eq!((least_repairs(0.0), least_repairs(0.9)), (1, 5));
    }

    /// The mean that is needed and 1.6 standard deviations: about 95 % of the times as many arrive as are missing.
    #[test]
    fn so_many_repairs_are_enough() {
        for (needed, rate, expected) in [
            (1, 0.0, 1),
            (7, 0.0, 7),
            (1, 0.1, 2),
            (10, 0.1, 13),
            (4, 0.25, 8),
            (1, 0.5, 5),
            (9, 0.5, 25),
            (1, 1.0, 26),
        ] {
            assert_eq!(enough(needed, rate), expected, "{needed} at {rate}");
        }
    }

    #[test]
    fn blocks_are_laid_out_as_the_paper_says() {
        for (bytes, rate, expected) in [
            // Without losses: full segments while the window has more than ten, one repair.
            (20_000, 0.0, (1000, 19, 1)),
            (5000, 0.0, (500, 9, 1)),
            (1000, 0.0, (200, 4, 1)),
            // 10 %: 20 kB x 0.1 / 3 = 666 bytes, 30 segments, of which 3 are repairs.
            (20_000, 0.1, (666, 27, 3)),
            // 30 %: 20 kB x 0.3 / 5 = 1200, so full segments; 6 of 20.
            (20_000, 0.3, (1000, 14, 6)),
            // Small segments keep the losses to expect at f(E).
            (10_000, 0.1, (333, 27, 3)),
            (4000, 0.3, (240, 11, 5)),
            (1000, 0.5, (200, 1, 4)),
        ] {
            let Plan { mss, sources, repairs } = plan(&LT, bytes, rate, 1000);
            assert_eq!((mss, sources, repairs), expected, "{bytes} bytes at {rate}");
        }
    }

    /// Figure 1a's formulas as printed. Where M1 decides, a window has f(E) / E segments, of which a share of E are repairs.
    #[test]
    fn the_printed_formulas_can_be_had() {
        let printed = FecConfig { layout: Layout::Printed, ..LT };
        for (bytes, rate, expected) in [
            // Without losses the smallest segments and one repair.
            (10_000, 0.0, (200, 49, 1)),
            (20_000, 0.1, (666, 27, 3)),
            (15_000, 0.13, (650, 20, 3)),
            // 30 %: 10 kB x 0.3 / 5 = 600 bytes; with 20 kB full segments, and W E = 6.
            (10_000, 0.3, (600, 11, 5)),
            (20_000, 0.3, (1000, 14, 6)),
            (1000, 0.5, (200, 3, 2)),
        ] {
            let Plan { mss, sources, repairs } = plan(&printed, bytes, rate, 1000);
            assert_eq!((mss, sources, repairs), expected, "{bytes} bytes at {rate}");
        }
    }

    /// The test of W / MSS against G is never passed: MSS = B / G, and f(E) of ten segments are repairs.
    #[test]
    fn a_window_can_have_ten_segments_at_any_rate() {
        let granular = FecConfig { layout: Layout::Granular, ..LT };
        for (bytes, rate, expected) in [
            (8000, 0.0, (800, 9, 1)),
            (8000, 0.1, (800, 7, 3)),
            (8000, 0.2, (800, 6, 4)),
            (8000, 0.3, (800, 5, 5)),
            // More would exceed the MSS.
            (20_000, 0.1, (1000, 17, 3)),
            (1000, 0.3, (200, 1, 4)),
        ] {
            let Plan { mss, sources, repairs } = plan(&granular, bytes, rate, 1000);
            assert_eq!((mss, sources, repairs), expected, "{bytes} bytes at {rate}");
        }
    }

    #[test]
    fn parts_can_be_left_out() {
        let sizes = FecConfig { adaptive_mss: true, ..FecConfig::OFF };
        assert_eq!(plan(&sizes, 5000, 0.3, 1000), Plan { mss: 500, sources: 10, repairs: 0 });
        let fixed = FecConfig { proactive: true, ..FecConfig::OFF };
        assert_eq!(plan(&fixed, 5000, 0.3, 1000), Plan { mss: 1000, sources: 1, repairs: 4 });
    }

    proptest! {
        #[test]
        fn every_plan_can_be_sent(
            bytes in 0_u64..1 << 32, rate in 0.0..1.0, most in 64_u32..65_000,
            adaptive_mss: bool, proactive: bool,
            layout in prop::sample::select(vec![Layout::Restored, Layout::Printed, Layout::Granular]),
        ) {
            let config = FecConfig { adaptive_mss, proactive, layout, ..FecConfig::OFF };
            let Plan { mss, sources, repairs } = plan(&config, bytes, rate, most);
            prop_assert!(mss >= config.min_mss.min(most) && mss <= most);
            prop_assert!((1..=MOST_SOURCES).contains(&sources) && repairs <= MOST_REPAIRS);
            let window = u64::from(sources + repairs) * u64::from(mss);
            prop_assert!(sources + repairs == 1 || window <= bytes, "{} of {}", window, bytes);
        }
    }

    /// A large window has several blocks: each repairs its own, and the share of repairs is that of a small one.
    #[test]
    fn large_windows_have_no_more_repairs() {
        for config in [LT, FecConfig { layout: Layout::Printed, ..LT }] {
            let Plan { sources, repairs, .. } = plan(&config, 400_000, 0.1, 1000);
            assert!(sources > 40 && repairs * 5 < sources, "{repairs} repairs of {sources} segments");
        }
    }

    /// Segments get smaller where half a segment or more is expected to be lost.
    #[test]
    fn hardly_any_loss_leaves_segments_full() {
        for (rate, is_full) in [(0.001, true), (0.024, true), (0.026, false)] {
            assert_eq!(plan(&LT, 20_000, rate, 1000).mss == 1000, is_full, "{rate}");
        }
    }
}
