//! The legend: above the drawing, in as many lines as it takes, so that all figures have the same width for what they show.

use core::fmt::Write as _;

use super::look::Look;
use super::sheet::{FONT, mark};
use super::tone::{BLOCKED, BLOCKED_OPACITY};
use crate::report::html::escape;

/// A name in a legend, and the sample before it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) look: Look,
    pub(crate) sample: Sample,
}

/// What stands before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    Line,
    MarkedLine,
    Mark,
    Area,
    /// An area with the mark that stands above bars.
    MarkedArea,
    /// An area through which one sees what is behind it.
    Shade,
}

impl Entry {
    pub(crate) fn new(name: &str, look: Look, sample: Sample) -> Self {
        Self { name: name.to_owned(), look, sample }
    }

    /// Of shaded intervals.
    pub(super) fn blocked() -> Self {
        Self::new("blocked", Look { colour: BLOCKED, ..Look::calculated(0) }, Sample::Shade)
    }

    fn sample_width(&self) -> f64 {
        match self.sample {
            Sample::Line | Sample::MarkedLine => LINE_SAMPLE,
            Sample::Mark | Sample::Area | Sample::Shade => AREA_SAMPLE,
            Sample::MarkedArea => 2.0 * AREA_SAMPLE,
        }
    }

    fn width(&self) -> f64 {
        self.sample_width() + GAP + self.name.chars().count() as f64 * LETTER + 2.0 * GAP
    }

    fn draw(&self, svg: &mut String, x: f64, y: f64) {
        let (colour, dashes, width) = (self.look.colour, self.look.dashes, self.sample_width());
        if matches!(self.sample, Sample::Line | Sample::MarkedLine) {
            let dashes = dashes.map_or_else(String::new, |dashes| format!(" stroke-dasharray=\"{dashes}\""));
            let _ = write!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
                x + width
            );
        }
        match self.sample {
            Sample::Line => {}
            Sample::MarkedLine | Sample::Mark => mark(svg, self.look, x + width / 2.0, y),
            Sample::Area | Sample::MarkedArea | Sample::Shade => {
                if self.sample == Sample::MarkedArea {
                    mark(svg, self.look, x + 1.5 * AREA_SAMPLE, y);
                }
                let y = y - 6.0;
                let opacity = match self.sample {
                    Sample::Shade => format!(" fill-opacity=\"{BLOCKED_OPACITY}\""),
                    _ => String::new(),
                };
                let _ = write!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{AREA_SAMPLE}\" height=\"12\" fill=\"{colour}\"{opacity}/>"
                );
            }
        }
        let (x, y) = (x + width + GAP, y + 0.35 * FONT);
        let _ =
            write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{FONT}\">{}</text>", escape(&self.name));
    }
}

/// How long the sample of a line is.
const LINE_SAMPLE: f64 = 34.0;
/// How wide the sample of an area is.
const AREA_SAMPLE: f64 = 14.0;
/// Between a sample and its name.
const GAP: f64 = 7.0;
/// The width of a letter, about: fonts differ.
pub(super) const LETTER: f64 = 0.56 * FONT;
/// The height of a line of the legend.
pub(super) const LINE: f64 = 1.6 * FONT;

/// Lines of entries, each at most `width` wide unless it is one entry that is wider.
pub(super) fn lines(entries: &[Entry], width: f64) -> Vec<Vec<&Entry>> {
    let mut lines: Vec<Vec<&Entry>> = Vec::new();
    let mut used = f64::INFINITY;
    for entry in entries {
        if used + entry.width() > width {
            lines.push(Vec::new());
            used = 0.0;
        }
        used += entry.width();
        lines.last_mut().expect("the first entry begins a line").push(entry);
    }
    lines
}

/// Draws `lines` from `x` on, the first at the top.
pub(super) fn draw(svg: &mut String, lines: &[Vec<&Entry>], x: f64) {
    for (number, line) in lines.iter().enumerate() {
        let y = LINE * (number as f64 + 0.6);
        let mut x = x;
        for entry in line {
            entry.draw(svg, x, y);
            x += entry.width();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_that_is_too_wide_has_more_lines() {
        let entries: Vec<_> = ["a", "b", "a name that is much longer than that of the others", "c"]
            .map(|name| Entry::new(name, Look::numbered(0), Sample::MarkedLine))
            .to_vec();
        let names = |width| -> Vec<String> {
            let names =
                |line: &Vec<&Entry>| line.iter().map(|entry| entry.name.chars().next().unwrap()).collect();
            lines(&entries, width).iter().map(names).collect()
        };
        assert_eq!(names(1000.0), ["abac"]);
        assert_eq!(names(200.0), ["ab", "a", "c"]);
        assert_eq!(names(10.0), ["a", "b", "a", "c"], "each for itself, whatever its width");
    }
}
