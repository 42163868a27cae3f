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
/// What is free above a panel, for its title, and how far the title's baseline is above the panel: letters go below it.
const TITLE: f64 = 1.6 * FONT;
const BELOW_TITLE: f64 = 0.4 * FONT;

/// How much higher a panel may be than another one that has the same axis of ordinates; more, and the lower one cannot be read.
const HIGHER: f64 = 3.0;

/// A drawing of charts, each with a title. All have the axes of the first, and show the same part of them, but for the ordinates of those
/// that are much lower than others.
pub(crate) fn panels(charts: Vec<(String, Chart)>) -> Drawing {
    let (x, _) = Chart::common_ranges(charts.iter().map(|(_, chart)| chart));
    // Each stands once: panels are too small for them.
    let labels = charts.first().map(|(_, chart)| chart.labels()).unwrap_or_default();
    let groups = by_height(&charts.iter().map(|(_, chart)| chart.height()).collect::<Vec<_>>());
    let of_group = |group: usize| groups.iter().zip(&charts).filter(move |(of, _)| **of == group);
    let ranges: Vec<_> = (0..=groups.iter().copied().max().unwrap_or(0))
        .map(|group| Chart::common_ranges(of_group(group).map(|(_, (_, chart))| chart)).1)
        .collect();
    let mut written = labels.clone();
    if ranges.len() > 1 {
        written[1] += "; scales differ between panels";
    }
    let charts: Vec<_> = charts
        .into_iter()
        .zip(&groups)
        .map(|((title, chart), group)| (title, chart.between(x, ranges[*group]).without_labels()))
        .collect();
    let rows = charts
        .iter()
        .flat_map(|(title, chart)| chart.rows().map(move |row| Row { panel: title.clone(), ..row }));
    Drawing::new(labels, rows.collect(), move |size| svg(&charts, &written, size))
}

/// The group of each chart: the first has the highest one and all that are not much lower, and so on. Without heights all are in one.
fn by_height(heights: &[Option<f64>]) -> Vec<usize> {
    let mut falling: Vec<f64> = heights.iter().flatten().copied().collect();
    falling.sort_by(|a, b| b.total_cmp(a));
    let mut tops: Vec<f64> = Vec::new();
    for height in falling {
        if tops.last().is_none_or(|top| height * HIGHER < *top) && height > 0.0 {
            tops.push(height);
        }
    }
    let group = |height: f64| tops.iter().rposition(|top| height <= *top).unwrap_or(0);
    heights.iter().map(|height| height.map_or(0, group)).collect()
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
        let (middle, base) = (x + panel.width / 2.0, y + TITLE - BELOW_TITLE);
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

    /// What stands in quotes after ` NAME="`.
    fn number(element: &str, name: &str) -> f64 {
        let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    }

    #[test]
    fn nothing_is_cut_in_print() {
        let chart = || {
            let ends = vec![(10.0, 0.2), (200.0, 1.0)];
            Chart::new("delay, ms", "goodput, Mbit/s").steps("a", Look::numbered(0), ends)
        };
        let drawing = panels(vec![("p = 1".to_owned(), chart()), ("p = 2".to_owned(), chart())]);
        let svg = drawing.paper(super::super::print::COLUMN);
        let (_, inside) = svg.split_once('>').unwrap();
        let titles: Vec<&str> = inside.split("<text").filter(|text| text.contains(">p = ")).collect();
        let panels: Vec<&str> = inside.split("<svg").skip(1).collect();
        assert_eq!((titles.len(), panels.len()), (2, 2), "{svg}");
        for (title, panel) in titles.into_iter().zip(panels) {
            let last = panel.split("<text").find(|text| text.contains(">200</text>")).unwrap();
            let half = 0.5 * 3.0 * 0.6 * FONT;
            assert!(number(last, "x") + half <= number(panel, "width"), "{last}");
            assert!(number(title, "y") + 0.3 * FONT <= number(panel, "y"), "{title}");
            // Below the ticks' words nothing but letters' feet is free.
            assert!(number(panel, "height") - number(last, "y") < FONT, "{last}");
            let marks = panel.matches("<circle").count();
            assert!(marks > 1 && panel.matches("cx=\"").count() == marks, "{panel}");
            for mark in panel.split("<circle").skip(1) {
                assert!(number(mark, "cx") + number(mark, "r") <= number(panel, "width"), "{mark}");
            }
        }
    }

    #[test]
    fn panels_of_other_heights_have_axes_of_their_own() {
        let heights = |heights: &[f64]| by_height(&heights.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(heights(&[256.0, 1000.0, 800.0, 90.0, 20.0, 0.0]), [1, 0, 0, 1, 2, 2]);
        assert_eq!(heights(&[400.0, 1000.0]), [0, 0]);
        assert_eq!((heights(&[0.0, 0.0]), by_height(&[None, None])), (vec![0, 0], vec![0, 0]));
        let chart = |most: f64| {
            Chart::new("delay (ms)", "goodput (kbit/s)").line(
                "a",
                Look::numbered(0),
                vec![(0.0, 0.0), (9.0, most)],
            )
        };
        let of = |most: f64| panels(vec![("p".to_owned(), chart(900.0)), ("q".to_owned(), chart(most))]);
        let svg = of(200.0).svg();
        assert!(
            svg.contains(">200</text>")
                && svg.contains(">goodput (kbit/s); scales differ between panels</text>"),
            "{svg}"
        );
        assert_eq!(of(200.0).labels[1], "goodput (kbit/s)", "that is no part of the data");
        assert!(!of(400.0).svg().contains("scales differ"));
    }

    #[test]
    fn panels_share_axes_and_legend() {
        let chart = |most: f64| {
            Chart::new("time, s", "share of something, Mbit/s").line(
                "a",
                Look::numbered(0),
                vec![(1.0, 1.0), (2.0, most)],
            )
        };
        let drawing = panels(vec![("p = 1".to_owned(), chart(30.0)), ("p = 2".to_owned(), chart(70.0))]);
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
