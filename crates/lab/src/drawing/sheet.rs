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

/// How large a drawing is below its legend, in its own units; it scales with the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The size of letters.
pub(super) const FONT: f64 = 13.0;
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
    /// The colour of words that `kuva` writes inside the axes, where it is not that of the others.
    inside: Option<&'static str>,
}

impl Sheet {
    pub(crate) fn new(plots: Vec<Plot>, layout: Layout) -> Self {
        let (legend, marks, bar_marks, words, whiskers) = Default::default();
        Self { plots, layout, legend, marks, bar_marks, words, whiskers, inside: None }
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

    /// With this colour, whatever the page's, for words that `kuva` writes inside the axes: the values in a heat map's cells.
    pub(crate) fn words_inside(self, colour: &'static str) -> Self {
        Self { inside: Some(colour), ..self }
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
            .with_label_size(FONT as u32 + 1);
        layout.force_margin_top = Some(top);
        layout.show_legend = false;
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
        for element in &mut scene.elements {
            if let (Primitive::Text { x, y, color, .. }, Some(inside)) = (element, self.inside)
                && is_inside(*x, *y)
            {
                *color = Some(inside.into());
            }
        }
        scaling(&with_own_names(&SvgBackend::new().render_scene(&scene)), &over)
    }
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
}
