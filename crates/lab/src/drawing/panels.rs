//! Small multiples: charts side by side, with one legend and the same axes.

use core::fmt::Write as _;

use super::chart::Chart;
use super::legend::{self, Entry};
use super::sheet::{AS_WIDE_AS_ITS_PLACE, FONT, Size, placed};
use super::tone::{BACKGROUND, INK};
use super::{Drawing, Row};
use crate::report::html::escape;

/// How narrow a panel may be.
const NARROWEST: f64 = 190.0;
/// More of them beside each other are too small to be read.
const MOST_BESIDE: usize = 3;
/// What is free above a panel, for its title.
const TITLE: f64 = 1.5 * FONT;

/// A drawing of charts, each with a title. All have the axes of the first, and show the same part of them.
pub(crate) fn panels(charts: Vec<(String, Chart)>) -> Drawing {
    let (x, y) = Chart::common_ranges(charts.iter().map(|(_, chart)| chart));
    // Each stands once: panels are too small for them.
    let labels = charts.first().map(|(_, chart)| chart.labels()).unwrap_or_default();
    let charts: Vec<_> =
        charts.into_iter().map(|(title, chart)| (title, chart.between(x, y).without_labels())).collect();
    let rows = charts
        .iter()
        .flat_map(|(title, chart)| chart.rows().map(move |row| Row { panel: title.clone(), ..row }));
    Drawing::new(labels.clone(), rows.collect(), move |size| svg(&charts, &labels, size))
}

fn svg(charts: &[(String, Chart)], [below, beside_it]: &[String; 2], size: Size) -> String {
    let beside = ((size.width / NARROWEST) as usize).clamp(1, MOST_BESIDE).min(charts.len().max(1));
    let panel = Size::wide(size.width / beside as f64);
    let mut entries: Vec<Entry> = Vec::new();
    for entry in charts.iter().flat_map(|(_, chart)| chart.entries()) {
        if entries.iter().all(|known| known.name != entry.name) {
            entries.push(entry);
        }
    }
    let lines = legend::lines(&entries, size.width - FONT);
    let top = legend::LINE * (lines.len() + 1) as f64;
    let mut inside = String::new();
    legend::draw(&mut inside, &lines, FONT);
    let _ = write!(
        inside,
        "<text x=\"{FONT}\" y=\"{:.1}\" font-size=\"{FONT}\">{}</text>",
        top - 0.35 * FONT,
        escape(beside_it)
    );
    let mut bottom = top;
    for (place, (title, chart)) in charts.iter().enumerate() {
        let svg = chart.svg_without_legend(panel);
        let x = panel.width * (place % beside) as f64;
        let y = top + (TITLE + panel.height) * (place / beside) as f64;
        let (middle, base) = (x + panel.width / 2.0, y + 0.9 * TITLE);
        let _ = write!(
            inside,
            "<text x=\"{middle:.1}\" y=\"{base:.1}\" font-size=\"{FONT}\" font-weight=\"600\" text-anchor=\"middle\">{}</text>{}",
            escape(title),
            placed(&svg, (x, y + TITLE), (panel.width, panel.height))
        );
        bottom = y + TITLE + panel.height;
    }
    let _ = write!(
        inside,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{FONT}\" text-anchor=\"middle\">{}</text>",
        size.width / 2.0,
        bottom + 0.8 * FONT,
        escape(below)
    );
    bottom += legend::LINE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {bottom:.0}\"{AS_WIDE_AS_ITS_PLACE} \
         font-family=\"system-ui, sans-serif\" fill=\"{INK}\">\n<rect width=\"100%\" height=\"100%\" fill=\"{BACKGROUND}\"/>{inside}</svg>\n",
        size.width
    )
}

#[cfg(test)]
mod tests {
    use super::super::Look;
    use super::*;

    #[test]
    fn panels_share_axes_and_legend() {
        let chart = |most: f64| {
            Chart::new("time, s", "share of something, Mbit/s").line(
                "a",
                Look::numbered(0),
                vec![(1.0, 1.0), (2.0, most)],
            )
        };
        let drawing = panels(vec![("p = 1".to_owned(), chart(3.0)), ("p = 2".to_owned(), chart(70.0))]);
        assert_eq!(drawing.rows[3], Row { panel: "p = 2".to_owned(), ..Row::new("a", "2", 70.0) });
        let svg = drawing.svg();
        assert_eq!((svg.matches("<svg").count(), svg.matches(">a</text>").count()), (3, 1), "{svg}");
        assert_eq!(svg.matches(">60</text>").count(), 2, "both go beyond 60: {svg}");
        for label in [">time, s</text>", ">share of something, Mbit/s</text>"] {
            assert_eq!(svg.matches(label).count(), 1, "{label}");
        }
        assert_eq!(svg, drawing.svg(), "the same each time");
        let names: Vec<&str> =
            svg.split("<clipPath id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
        assert!(names.iter().all(|name| svg.contains(&format!("url(#{name})"))), "{names:?}");
    }
}
