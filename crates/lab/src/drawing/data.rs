//! The values in a figure, as tidy rows: one value a row.

use crate::table::quoted;
use core::fmt::Write as _;

/// One value of a curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The title of its panel, of small multiples.
    pub(crate) panel: String,
    /// The curve's name in the legend, or the group's.
    pub(crate) curve: String,
    /// A number, or the name of a place on the axis.
    pub(crate) x: String,
    pub(crate) y: f64,
    /// The ends of its interval, if it has one.
    pub(crate) interval: Option<(f64, f64)>,
    /// In a heat map, its row: a number, or the name of a place, and what that is of.
    pub(crate) row: Option<[String; 2]>,
}

impl Row {
    /// A value without an interval.
    pub(crate) fn new(curve: &str, x: impl Into<String>, y: f64) -> Self {
        Self { panel: String::new(), curve: curve.to_owned(), x: x.into(), y, interval: None, row: None }
    }
}

/// The rows as CSV (RFC 4180), with a heading, and in each what its abscissa, ordinate and row are.
pub(super) fn csv(figure: &str, [x_axis, y_axis]: &[String; 2], rows: &[Row]) -> String {
    let mut text = String::from("figure,panel,curve,x,y,low,high,x_axis,y_axis,row,row_axis\n");
    let (x_axis, y_axis) = (quoted(x_axis), quoted(y_axis));
    for Row { panel, curve, x, y, interval, row } in rows {
        let (low, high) =
            interval.map_or_else(Default::default, |(low, high)| (low.to_string(), high.to_string()));
        let (figure, panel) = (quoted(figure), quoted(panel));
        let [row, row_axis] =
            row.as_ref().map_or_else(Default::default, |row| row.each_ref().map(|it| quoted(it)));
        let _ = writeln!(
            text,
            "{figure},{panel},{},{},{y},{low},{high},{x_axis},{y_axis},{row},{row_axis}",
            quoted(curve),
            quoted(x)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_whatever_is_in_it() {
        let rows = [
            Row::new("plain", "1.5", 2.0),
            Row { interval: Some((1.0, 3.0)), ..Row::new("a, \"b\"", "CUBIC", 0.1) },
            Row { row: Some(["0.2", "loss"].map(str::to_owned)), ..Row::new("loss = 0.2", "CUBIC", 3.0) },
        ];
        let expected = "figure,panel,curve,x,y,low,high,x_axis,y_axis,row,row_axis\n\
             f,,plain,1.5,2,,,scheme,\"time, s\",,\n\
             f,,\"a, \"\"b\"\"\",CUBIC,0.1,1,3,scheme,\"time, s\",,\n\
             f,,loss = 0.2,CUBIC,3,,,scheme,\"time, s\",0.2,loss\n";
        assert_eq!(csv("f", &["scheme", "time, s"].map(str::to_owned), &rows), expected);
    }
}
