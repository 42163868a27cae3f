//! Bit rates for people.

/// In what the rates of one column are given, so that they can be compared at a glance.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateUnit {
    bps: f64,
    name: &'static str,
}

impl RateUnit {
    /// What suits the greatest of several rates, in bit/s.
    pub(super) fn of(rates: impl IntoIterator<Item = f64>) -> Self {
        let (bps, name) = match rates.into_iter().fold(0.0, f64::max) {
            v if v >= 1e9 => (1e9, "Gbit/s"),
            v if v >= 1e6 => (1e6, "Mbit/s"),
            v if v >= 1e3 => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        Self { bps, name }
    }

    /// A rate in bit/s, with three digits and the unit; one far below the unit with fewer, but not as none.
    pub(super) fn show(self, rate: f64) -> String {
        let value = rate / self.bps;
        let decimals = match value.abs() {
            v if v >= 100.0 => 0,
            v if v >= 10.0 => 1,
            v if v >= 1.0 || v == 0.0 => 2,
            v if v >= 0.01 => 3,
            _ => 6,
        };
        format!("{value:.decimals$} {}", self.name)
    }
}

/// A rate that stands alone, in the unit that suits it.
pub(super) fn human_rate(bps: f64) -> String {
    RateUnit::of([bps]).show(bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_unit() {
        let unit = RateUnit::of([247e3, 2.4e6, 8.43e6]);
        assert_eq!(
            [66.0, 247e3, 2.4e6, 12.34e6, 123.4e6, 0.0].map(|rate| unit.show(rate)),
            ["0.000066 Mbit/s", "0.247 Mbit/s", "2.40 Mbit/s", "12.3 Mbit/s", "123 Mbit/s", "0.00 Mbit/s",]
        );
        assert_eq!(RateUnit::of([]).show(0.0), "0.00 bit/s");
        assert_eq!(
            [999.0, 1e3, 1e6, 1e9].map(human_rate),
            ["999 bit/s", "1.00 kbit/s", "1.00 Mbit/s", "1.00 Gbit/s"]
        );
    }
}
