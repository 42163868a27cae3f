//! What the rate is to be.

use base::Rate;

use super::bottleneck::Capacity;

/// What the configuration says of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Nothing: it is to be found.
    Find,
    /// What it is; less is sent if the path carries less.
    Known(Rate),
    /// As fast as the carrier takes it, whatever is found.
    Unlimited,
}

/// In bits per second, before anything is known: twice what slow lines carry, since a train finds more within a round trip. Ours.
const INITIAL: f64 = 128_000.0;
/// On a link that is known to be slower, padding takes too long. Ours.
const SLOWEST_FOR_PADDING: Rate = Rate::from_bps(2_000_000);

impl Aim {
    /// What is believed at first. A rate that is to be found is doubled while nothing speaks against it.
    #[must_use]
    pub fn capacity(self) -> Capacity {
        match self {
            Self::Find => Capacity::new(INITIAL, 1.0),
            Self::Known(rate) => Capacity::new(rate.as_bps() as f64, 0.0),
            Self::Unlimited => Capacity::new(f64::INFINITY, 0.0),
        }
    }

    /// Bits per second, at most.
    #[must_use]
    pub fn most(self) -> f64 {
        if let Self::Known(rate) = self { rate.as_bps() as f64 } else { f64::INFINITY }
    }

    /// Whether trains of padding may be sent at the start.
    #[must_use]
    pub fn wants_padding(self) -> bool {
        match self {
            Self::Find => true,
            Self::Known(rate) => rate >= SLOWEST_FOR_PADDING,
            Self::Unlimited => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_lines_whose_rate_is_known_get_no_padding() {
        let known = |bps| Aim::Known(Rate::from_bps(bps));
        let wants = [known(1_999_999), known(2_000_000), Aim::Find, Aim::Unlimited].map(Aim::wants_padding);
        assert_eq!(wants, [false, true, true, false]);
        assert_eq!((known(2_000_000).most(), Aim::Find.most()), (2e6, f64::INFINITY));
    }
}
