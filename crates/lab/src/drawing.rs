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
mod panels;
pub(crate) mod print;
mod sheet;
mod tone;
mod words;

use core::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use kuva::render::layout::Layout;

use print::Points;

pub(crate) use chart::{Chart, thin};
pub(crate) use data::Row;
pub(crate) use legend::{Entry, Sample};
pub(crate) use look::{Look, Looks, tell_apart_by_mark};
pub(crate) use panels::panels;
pub(crate) use sheet::{AS_WIDE_AS_ITS_PLACE, Cells, Sheet, Size};
pub(crate) use tone::{BACKGROUND, BLOCKED, BLOCKED_OPACITY, BOUND, GRID, INK, dark_rules};

/// A layout whose ordinates go from zero, or from `least` if that is lower, to beyond `most`, for what is no curve.
pub(crate) fn from_zero(layout: Layout, size: Size, label: &str, (least, most): (f64, f64)) -> Layout {
    axis::Axis::new(label).apply(axis::Side::Y, size, [least, most].into_iter(), layout)
}

/// The layout with these words below its axis of abscissae, aslant where they would touch each other.
pub(crate) fn with_room_for<'a>(
    layout: Layout,
    size: Size,
    words: impl ExactSizeIterator<Item = &'a str>,
) -> Layout {
    let place = size.plot_width() / words.len().max(1) as f64;
    let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
    if longest as f64 * legend::LETTER > place { layout.with_x_tick_rotate(-40.0) } else { layout }
}

/// What a figure shows, to be drawn at any size, and as data.
#[derive(Clone)]
pub(crate) struct Drawing {
    draw: Arc<dyn Fn(Size) -> String + Send + Sync>,
    /// What the values are, with their units: abscissa and ordinate.
    labels: [String; 2],
    /// The values in it.
    pub(crate) rows: Vec<Row>,
}

impl Drawing {
    /// Of these values, which `labels` name: abscissa and ordinate. `draw` gives an SVG in colours for paper, as wide as its place.
    pub(crate) fn new(
        labels: [String; 2],
        rows: Vec<Row>,
        draw: impl Fn(Size) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { draw: Arc::new(draw), labels, rows }
    }

    /// For a screen: as wide as its place, in colours for paper.
    pub(crate) fn svg(&self) -> String {
        (self.draw)(Size::SCREEN)
    }

    /// For print, so wide, with letters of the size of a footnote's.
    fn paper(&self, width: Points) -> String {
        sheet::sized(&(self.draw)(Size::of_print(width)), width)
    }
}

impl fmt::Debug for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drawing").field("rows", &self.rows).finish_non_exhaustive()
    }
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
    /// for print and so wide; and `NAME.csv`, the data of both.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, directory: &Path, width: Points) -> io::Result<()> {
        let write =
            |ending: &str, text: &str| fs_err::write(directory.join(format!("{}{ending}", self.name)), text);
        write(".svg", &following(&self.drawing.svg()))?;
        write("-paper.svg", &self.drawing.paper(width))?;
        write(".csv", &data::csv(&self.name, &self.drawing.labels, &self.drawing.rows))
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
