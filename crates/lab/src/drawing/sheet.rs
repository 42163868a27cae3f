//! A drawing put together: what `kuva` draws, and legend, marks and words over it.

use core::fmt::Write as _;

use kuva::backend::svg::SvgBackend;
use kuva::plot::scatter::MarkerShape;
use kuva::render::layout::{ComputedLayout, Layout};
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, render_multiple};
use kuva::render::theme::Theme;

use super::legend::{self, Entry};
use super::look::Look;
use super::print::Points;
use super::tone::{BACKGROUND, GRID, INK};
use super::words::{self, Word};
use crate::report::html::escape;

/// How large a drawing is below its legend, in its own units; it scales with the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The size of letters.
pub(super) const FONT: f64 = 13.0;
/// The size of an axis's label.
const LABEL: f64 = FONT + 1.0;
/// What `kuva` keeps free beside the label of the ordinates, and below that of the abscissae, at least.
const BESIDE_LABEL: f64 = 5.0;
const BELOW_LABEL: f64 = 10.0;
/// The size of letters in print, in points.
const FONT_IN_PRINT: f64 = 8.0;

impl Size {
    /// What is easily read on a screen.
    pub(crate) const SCREEN: Self = Self { width: 760.0, height: 340.0 };

    /// What is so wide in print if letters have [`FONT_IN_PRINT`].
    pub(super) fn of_print(width: Points) -> Self {
        Self::wide(width.0 * FONT / FONT_IN_PRINT)
    }

    /// So wide, and as high as looks well.
    pub(super) fn wide(width: f64) -> Self {
        Self { width, height: (0.62 * width).clamp(180.0, Self::SCREEN.height) }
    }

    /// What is left for curves beside the words of the axis of ordinates.
    pub(super) const fn plot_width(self) -> f64 {
        self.width - LEFT
    }
}
/// The radius of a mark.
const MARK: f64 = 4.2;
/// Half of how wide the ends of a bar's interval are.
const WHISKER: f64 = 3.0;
/// What is free above the axes.
const TOP: f64 = 12.0;
/// How far the middle of a bar's mark is above the bar.
const ABOVE_BAR: f64 = 8.0;

/// The width of a letter of a number by its height, and the part of a cell's width that its value may take.
const LETTER: f64 = 0.6;
const SHARE_OF_CELL: f64 = 0.85;
/// The smallest letters of values in cells: 5 pt in print.
const SMALLEST: f64 = 8.0;

/// What is to be drawn.
pub(crate) struct Sheet {
    plots: Vec<Plot>,
    layout: Layout,
    legend: Vec<Entry>,
    marks: Vec<(Look, f64, f64)>,
    /// Marks above bars, each with the end of its bar.
    bar_marks: Vec<(Look, f64, f64)>,
    words: Vec<(String, f64, f64)>,
    /// Intervals of bars: where the middle of each bar is, and from where to where.
    whiskers: Vec<(f64, f64, f64)>,
    /// What there is of a heat map.
    cells: Option<Cells>,
}

/// What is drawn differently in a heat map.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// The colour of the values in cells, whatever the page's.
    pub(crate) ink: &'static str,
    /// In how many columns they stand.
    pub(crate) columns: usize,
    /// What stands beside the bar of colours.
    pub(crate) label: String,
}

impl Cells {
    /// The size of letters with which a value that is `letters` long keeps clear of those beside it, where `width` is for all columns; none
    /// if nobody could read that.
    fn letters(&self, letters: usize, width: f64) -> Option<u32> {
        let place = SHARE_OF_CELL * width / self.columns.max(1) as f64;
        let size = (place / (LETTER * letters.max(1) as f64)).min(FONT);
        (size >= SMALLEST).then_some(size as u32)
    }
}

impl Sheet {
    pub(crate) fn new(plots: Vec<Plot>, layout: Layout) -> Self {
        let (legend, marks, bar_marks, words, whiskers) = Default::default();
        Self { plots, layout, legend, marks, bar_marks, words, whiskers, cells: None }
    }

    pub(crate) fn legend(self, legend: Vec<Entry>) -> Self {
        Self { legend, ..self }
    }

    /// With marks, each at a place in the units of the axes; those outside are left out.
    pub(super) fn marks(self, marks: Vec<(Look, f64, f64)>) -> Self {
        Self { marks, ..self }
    }

    /// With marks above bars, each with the middle of its bar's end in the units of the axes; those outside are left out.
    pub(crate) fn bar_marks(self, bar_marks: Vec<(Look, f64, f64)>) -> Self {
        Self { bar_marks, ..self }
    }

    /// With intervals of bars, each with the middle of its bar and its two ends in the units of the axes.
    pub(crate) fn whiskers(self, whiskers: Vec<(f64, f64, f64)>) -> Self {
        Self { whiskers, ..self }
    }

    /// As a heat map.
    pub(crate) fn cells(self, cells: Cells) -> Self {
        Self { cells: Some(cells), ..self }
    }

    /// With words, each about a place in the units of the axes.
    pub(super) fn words(self, words: Vec<(String, f64, f64)>) -> Self {
        Self { words, ..self }
    }

    /// The drawing, as wide as its place, in colours for paper.
    pub(crate) fn svg(self, size: Size) -> String {
        let lines = legend::lines(&self.legend, size.plot_width());
        // A bar can end at the top of the axis.
        let room = if self.bar_marks.is_empty() { 0.0 } else { ABOVE_BAR };
        let top = TOP + room + legend::LINE * lines.len() as f64;
        let mut layout =
            self.layout.with_width(size.width).with_height(size.height - TOP + top).with_theme(theme());
        layout = layout
            .with_font_family("system-ui, sans-serif")
            .with_tick_size(FONT as u32)
            .with_label_size(LABEL as u32);
        layout.force_margin_top = Some(top);
        layout.show_legend = false;
        let layout = with_margins(layout);
        let at = ComputedLayout::from_layout(&layout);
        let mut over = String::new();
        let is_inside = |x: f64, y: f64| {
            let slack = 0.5;
            (at.margin_left - slack..=at.margin_left + at.plot_width() + slack).contains(&x)
                && (at.margin_top - slack..=at.margin_top + at.plot_height() + slack).contains(&y)
        };
        for (marks, above) in [(self.marks, 0.0), (self.bar_marks, ABOVE_BAR)] {
            for (look, x, y) in marks {
                let (x, y) = (at.map_x(x), at.map_y(y));
                if is_inside(x, y) {
                    mark(&mut over, look, x, y - above);
                }
            }
        }
        for (x, low, high) in self.whiskers {
            let inside = |y: f64| at.map_y(y).clamp(at.margin_top, at.margin_top + at.plot_height());
            let (x, low, high) = (at.map_x(x), inside(low), inside(high));
            let (left, right) = (x - WHISKER, x + WHISKER);
            let _ = write!(
                over,
                "<path d=\"M{left:.1} {high:.1}H{right:.1}M{x:.1} {high:.1}V{low:.1}M{left:.1} {low:.1}H{right:.1}\" \
                 fill=\"none\" stroke=\"{INK}\" stroke-width=\"1.2\"/>"
            );
        }
        let words = self.words.into_iter().map(|(text, x, y)| Word { text, x: at.map_x(x), y: at.map_y(y) });
        let words: Vec<Word> = words.filter(|word| is_inside(word.x, word.y)).collect();
        let (across, down) = (
            (at.margin_left, at.margin_left + at.plot_width()),
            (at.margin_top, at.margin_top + at.plot_height()),
        );
        words::draw(&mut over, &words, &words::places(&words, across, down));
        legend::draw(&mut over, &lines, LEFT);
        let mut scene = render_multiple(self.plots, layout);
        if let Some(cells) = self.cells {
            in_cells(&mut scene.elements, &cells, &at, is_inside);
            cells.draw_label(&mut over, &at);
        }
        scaling(&with_own_names(&SvgBackend::new().render_scene(&scene)), &over)
    }
}

/// Gives the values in a heat map's cells their colour and a size at which all of them fit, or takes all away.
fn in_cells(
    elements: &mut Vec<Primitive>,
    cells: &Cells,
    at: &ComputedLayout,
    is_inside: impl Fn(f64, f64) -> bool,
) {
    let is_value = |element: &Primitive| matches!(element, Primitive::Text { x, y, .. } if is_inside(*x, *y));
    let longest = elements.iter().filter(|element| is_value(element)).filter_map(|element| match element {
        Primitive::Text { content, .. } => Some(content.chars().count()),
        _ => None,
    });
    let Some(letters) = cells.letters(longest.max().unwrap_or(0), at.plot_width()) else {
        elements.retain(|element| !is_value(element));
        return;
    };
    for element in elements {
        if is_value(element)
            && let Primitive::Text { size, color, .. } = element
        {
            *size = letters.min(*size);
            *color = Some(cells.ink.into());
        }
    }
}

impl Cells {
    /// Writes upwards beside the bar of colours, where `kuva` keeps room for it.
    fn draw_label(&self, over: &mut String, at: &ComputedLayout) {
        let x = at.width - at.colorbar_x_inset - 0.7 * FONT;
        let y = at.margin_top + at.plot_height() / 2.0;
        let _ = write!(
            over,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{FONT}\" text-anchor=\"middle\" transform=\"rotate(-90,{x:.1},{y:.1})\">{}</text>",
            escape(&self.label)
        );
    }
}

/// The layout with as much beside and below the axes as stands there. `kuva` would cut the right margin of a narrow drawing, and with it
/// the last tick's words and marks at the edge, and it keeps room for labels that are empty.
fn with_margins(mut layout: Layout) -> Layout {
    let width = layout.width.take();
    let wanted = ComputedLayout::from_layout(&layout);
    layout.width = width;
    // Beside a bar of colours the renderer counts on its own margin.
    if !layout.show_colorbar {
        layout.force_margin_right = Some(wanted.margin_right);
    }
    let is_empty = |label: &Option<String>| label.as_ref().is_none_or(String::is_empty);
    if is_empty(&layout.y_label) {
        layout.force_margin_left = Some(wanted.margin_left - LABEL - BESIDE_LABEL);
    }
    if is_empty(&layout.x_label) && layout.x_tick_rotate.is_none() {
        layout.force_margin_bottom = Some(wanted.margin_bottom - LABEL - BELOW_LABEL);
    }
    layout
}

/// Names inside a drawing that follow from what is in it: `kuva` counts all drawings of a process, so they would be others each time.
fn with_own_names(svg: &str) -> String {
    const COUNTED: &str = "kuva-clip-";
    let mut parts = svg.split(COUNTED);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let parts: Vec<(&str, &str)> = parts
        .map(|part| part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())))
        .collect();
    let rest: String = parts.iter().map(|(_, rest)| *rest).collect();
    let own = base::random::fnv1a((text.clone() + &rest).as_bytes());
    let mut numbers: Vec<&str> = Vec::new();
    for (number, rest) in parts {
        let place = numbers.iter().position(|known| *known == number).unwrap_or(numbers.len());
        if place == numbers.len() {
            numbers.push(number);
        }
        text += &format!("clip-{own:x}-{place}{rest}");
    }
    text
}

/// Where a legend begins.
const LEFT: f64 = 60.0;

/// `kuva`'s drawing with `over` on top, a `viewBox`, and a width and height that give way to those of the place.
fn scaling(svg: &str, over: &str) -> String {
    let attribute = |name: &str| {
        let start = svg.find(&format!(" {name}=\""))? + name.len() + 3;
        Some(&svg[start..start + svg[start..].find('"')?])
    };
    let (width, height) = (attribute("width").unwrap_or("0"), attribute("height").unwrap_or("0"));
    let size = format!(" width=\"{width}\" height=\"{height}\"");
    let scaled = format!(" viewBox=\"0 0 {width} {height}\"{AS_WIDE_AS_ITS_PLACE}");
    svg.replacen(&size, &scaled, 1).replacen("</svg>", &format!("{over}</svg>\n"), 1)
}

/// The width of a drawing on a screen.
pub(crate) const AS_WIDE_AS_ITS_PLACE: &str = " width=\"100%\" style=\"max-width: 960px\"";

/// A drawing by [`scaling`] to put into another one, at a place and in a size there.
pub(super) fn placed(svg: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let svg = svg.find("<svg").map_or("", |at| &svg[at..]);
    let place = format!(" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"");
    svg.replacen(AS_WIDE_AS_ITS_PLACE, &place, 1)
}

/// A drawing by [`scaling`] that is `wide` wherever it stands, and as high as fits that, as typesetting programs want
/// it.
pub(super) fn sized(svg: &str, wide: Points) -> String {
    let size = svg.split_once(" viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
    let size = size.and_then(|(size, _)| size.split_once(' '));
    let size =
        size.and_then(|(width, height)| Some((width.parse::<f64>().ok()?, height.parse::<f64>().ok()?)));
    let size = size.map_or_else(String::new, |(width, height)| {
        format!(" width=\"{:.2}pt\" height=\"{:.2}pt\"", wide.0, wide.0 * height / width)
    });
    svg.replacen(AS_WIDE_AS_ITS_PLACE, &size, 1)
}

fn theme() -> Theme {
    let ink = || INK.to_owned();
    Theme {
        background: BACKGROUND.to_owned(),
        axis_color: ink(),
        grid_color: GRID.to_owned(),
        tick_color: ink(),
        text_color: ink(),
        box_median: BACKGROUND.to_owned(),
        colorbar_border: ink(),
        ..Theme::light()
    }
}

/// A mark at a place of the drawing.
pub(super) fn mark(svg: &mut String, look: Look, x: f64, y: f64) {
    let colour = look.colour;
    let corners = |corners: &[(f64, f64)]| -> String {
        let corner = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + MARK * dx, y + MARK * dy);
        corners.iter().map(corner).collect::<Vec<_>>().join(" ")
    };
    let filled = match look.mark {
        MarkerShape::Square => corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        MarkerShape::Triangle => corners(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        MarkerShape::TriangleDown => corners(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        MarkerShape::Diamond => corners(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        MarkerShape::Star => {
            let corner = |k: i32| {
                let (angle, radius) =
                    (f64::from(k) * core::f64::consts::PI / 5.0, if k % 2 == 0 { 1.4 } else { 0.6 });
                (radius * angle.sin(), -radius * angle.cos())
            };
            corners(&(0..10).map(corner).collect::<Vec<_>>())
        }
        MarkerShape::Cross | MarkerShape::Plus => {
            let (a, b) = if look.mark == MarkerShape::Cross {
                ((1.0, 1.0), (1.0, -1.0))
            } else {
                ((1.3, 0.0), (0.0, 1.3))
            };
            for (dx, dy) in [a, b] {
                let (dx, dy) = (MARK * dx, MARK * dy);
                let _ = write!(
                    svg,
                    "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                    x - dx,
                    y - dy,
                    x + dx,
                    y + dy
                );
            }
            return;
        }
        _ => {
            let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARK}\" fill=\"{colour}\"/>");
            return;
        }
    };
    let _ = write!(svg, "<polygon points=\"{filled}\" fill=\"{colour}\"/>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_scales_with_its_place() {
        let svg =
            scaling("<svg xmlns=\"x\" width=\"760\" height=\"340.5\" fill=\"black\"><g/></svg>", "<b/>");
        assert!(svg.starts_with("<svg xmlns=\"x\" viewBox=\"0 0 760 340.5\" width=\"100%\""), "{svg}");
        assert!(svg.ends_with("<g/><b/></svg>\n") && !svg.contains("height=\"3"), "{svg}");
        let sized = sized(&svg, Points(380.0));
        assert!(
            sized.starts_with(
                "<svg xmlns=\"x\" viewBox=\"0 0 760 340.5\" width=\"380.00pt\" height=\"170.25pt\" fill"
            ),
            "{sized}"
        );
    }

    #[test]
    fn values_in_cells_never_touch_each_other() {
        let cells = |columns| Cells { ink: INK, columns, label: String::new() };
        assert_eq!(cells(5).letters(4, 500.0), Some(13));
        let size = cells(9).letters(4, 245.0).unwrap();
        assert!((8..13).contains(&size) && f64::from(size) * 0.6 * 4.0 < 245.0 / 9.0, "{size}");
        assert_eq!(cells(12).letters(4, 200.0), None, "too small to be read");
    }
}
