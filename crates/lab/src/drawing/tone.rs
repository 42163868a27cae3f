//! Colours, each for a light and for a dark background.

use core::fmt::Write as _;

/// A colour on a light background; [`dark_rules`] knows what it is on a dark one.
pub(crate) type Tone = &'static str;

/// What figures stand on.
pub(crate) const BACKGROUND: Tone = "#ffffff";
/// Words and axes.
pub(crate) const INK: Tone = "#1a1a1a";
/// The lines of the grid, and what says nothing.
pub(crate) const GRID: Tone = "#dddddd";
/// What is calculated: the physical bound.
pub(crate) const BOUND: Tone = "#555555";
/// Blocked intervals.
pub(crate) const BLOCKED: Tone = "#888888";
/// How strongly they cover what they shade.
pub(crate) const BLOCKED_OPACITY: f64 = 0.22;

/// Colours of what is measured: Okabe and Ito's, which colour-blind readers can tell apart, or near to them, since each has to
/// stand out from white as well; two of theirs, yellow and sky blue, cannot, so brown and violet stand in their place.
pub(crate) const COLOURS: [Tone; 8] =
    ["#d55e00", "#0072b2", "#008a65", "#b8568f", "#a87000", "#7350b8", "#2b2b2b", "#8c564b"];

/// Every tone, on a light background and on a dark one.
const TONES: [(Tone, &str); 13] = [
    (BACKGROUND, "#16181d"),
    (INK, "#e6e6e6"),
    (GRID, "#3a3d45"),
    (BOUND, "#b4b4b4"),
    (BLOCKED, "#9a9a9a"),
    ("#d55e00", "#ff7f2a"),
    ("#0072b2", "#56b4e9"),
    ("#008a65", "#2cc79a"),
    ("#b8568f", "#e58fc4"),
    ("#a87000", "#e6b03a"),
    ("#7350b8", "#b69cf0"),
    ("#2b2b2b", "#ffffff"),
    ("#8c564b", "#cf9a8c"),
];

/// CSS that turns a figure's colours into those for a dark background: the figure itself has those for paper, which programs
/// without CSS show too.
pub(crate) fn dark_rules() -> String {
    let mut rules = String::new();
    for (light, dark) in TONES {
        let _ = writeln!(
            rules,
            "[fill=\"{light}\"] {{ fill: {dark}; }} [stroke=\"{light}\"] {{ stroke: {dark}; }}"
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2: contrast ratio of two colours.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |colour: &str| {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn every_curve_stands_out_from_both_backgrounds() {
        let dark = |tone: Tone| TONES.iter().find(|(light, _)| *light == tone).unwrap().1;
        // WCAG 2.2, 1.4.11: 3 for what has to be seen; 1.4.3: 4.5 for words.
        for (tone, least) in COLOURS.into_iter().chain([BOUND]).map(|tone| (tone, 3.0)).chain([(INK, 4.5)]) {
            for contrast in [contrast(tone, BACKGROUND), contrast(dark(tone), dark(BACKGROUND))] {
                assert!(contrast >= least, "{tone}: {contrast}");
            }
        }
    }

    #[test]
    fn no_two_tones_are_one() {
        for (index, (light, dark)) in TONES.iter().enumerate() {
            assert!(
                TONES[..index].iter().all(|(other, its)| other != light && its != dark),
                "{light} {dark}"
            );
        }
    }
}
