//! Lengths in print.

use core::fmt;
use core::str::FromStr;

/// A length in print: 72 are an inch, as in PostScript and CSS (TeX calls them big points).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Points(pub(crate) f64);

/// A column of a page with two: IEEE's and ACM's journals have 252 pt.
pub const COLUMN: Points = Points(252.0);

/// What is no width of a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no width of a figure; allowed are 100 pt to 1440 pt, as in 252pt, 3.5in, 89mm or 8.9cm")]
pub struct NotAWidth(String);

/// Units, and how many points each is.
const UNITS: [(&str, f64); 4] = [("pt", 1.0), ("in", 72.0), ("mm", 72.0 / 25.4), ("cm", 72.0 / 2.54)];

impl FromStr for Points {
    type Err = NotAWidth;
    fn from_str(text: &str) -> Result<Self, NotAWidth> {
        let read = |(unit, points): &(&str, f64)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim_end().parse().ok()?;
            Some(number * points).filter(|width| (100.0..=1440.0).contains(width))
        };
        UNITS.iter().find_map(read).map(Self).ok_or_else(|| NotAWidth(text.to_owned()))
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}pt", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_have_a_unit_and_are_neither_tiny_nor_huge() {
        for (text, points) in [("252pt", 252.0), ("3.5 in", 252.0), ("254mm", 720.0), ("25.4cm", 720.0)] {
            let Points(read) = text.parse().unwrap();
            assert!((read - points).abs() < 1e-9, "{text}: {read}");
        }
        for text in ["252", "9pt", "90in", "pt", "-252pt", "NaNpt", "252px"] {
            assert_eq!(text.parse::<Points>(), Err(NotAWidth(text.to_owned())));
        }
    }
}
