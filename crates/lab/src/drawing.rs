//! Figures: what they show, as data, and how they are drawn, as SVG.
//!
//! `kuva` draws axes, lines and bars; what tells curves apart without colour (marks, legend) and the words at points are drawn here.
//! An SVG has a `viewBox`, so it is as wide as its place. Its colours are those for paper; rules for a dark background stand in
//! the page, or in the file that is not for paper ([`tone::dark_rules`]).

mod axis;
mod chart;
mod data;
mod legend;
mod look;
mod sheet;
mod tone;
mod words;

use std::io;
use std::path::Path;

use kuva::render::layout::Layout;

pub(crate) use chart::{Chart, thin};
pub(crate) use data::Row;
pub(crate) use legend::{Entry, Sample};
pub(crate) use look::{Look, Looks, tell_apart_by_mark};
pub(crate) use sheet::{AS_WIDE_AS_ITS_PLACE, Sheet};
pub(crate) use tone::{BACKGROUND, BLOCKED, BLOCKED_OPACITY, BOUND, GRID, INK, dark_rules};

/// A layout whose ordinates go from zero to beyond `most`, for what is no curve.
pub(crate) fn from_zero(layout: Layout, label: &str, most: f64) -> Layout {
    axis::Axis::new(label).apply(axis::Side::Y, core::iter::once(most), layout)
}

/// What a figure shows, drawn and as data.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    /// The drawing, in colours for paper.
    pub(crate) svg: String,
    /// The values in it.
    pub(crate) rows: Vec<Row>,
}

/// A figure of a report.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Its files' name, without the ending.
    pub(crate) name: String,
    /// Its heading.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) caption: String,
    pub(crate) drawing: Drawing,
}

impl Figure {
    /// Writes three files to `directory`: `NAME.svg`, whose colours follow the reader's choice of light or dark; `NAME-paper.svg`,
    /// for print; and `NAME.csv`, the data of both.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let write =
            |ending: &str, text: &str| fs_err::write(directory.join(format!("{}{ending}", self.name)), text);
        write(".svg", &following(&self.drawing.svg))?;
        write("-paper.svg", &sheet::sized(&self.drawing.svg))?;
        write(".csv", &data::csv(&self.name, &self.drawing.rows))
    }
}

/// A drawing as a file of its own whose colours follow the reader's choice.
pub(crate) fn following(svg: &str) -> String {
    let Some(end) = svg.find('>') else { return svg.to_owned() };
    let rules = dark_rules();
    format!(
        "{}<style>@media (prefers-color-scheme: dark) {{\n{rules}}}</style>{}",
        &svg[..=end],
        &svg[end + 1..]
    )
}
