//! The table that a terminal shows.

use super::measures::{self, Measures};
use super::rate::RateUnit;
use super::{SchemeRuns, applications, by_scheme, paired_ratio, rate_unit, what_is_same};
use crate::run::Run;
use crate::scenario::Suite;

/// One row per scheme: time, goodput with quartiles, the bound on the same realisations, and whether every byte arrived
/// intact. Below it: how much faster each scheme was than the first, seed by seed; the measures that make channels
/// comparable; and the latency that applications saw.
#[must_use]
pub fn table(suite: &Suite, runs: &[Run]) -> String {
    let schemes = by_scheme(suite, runs);
    let heading = [
        "scheme",
        "time (median)",
        "goodput (median)",
        "quartiles",
        "bound",
        "of bound",
        "complete",
        "bytes",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    let unit = rate_unit(&schemes);
    rows.extend(schemes.iter().map(|scheme| row(scheme, unit)));
    let mut text = align(&rows);
    if let [first, others @ ..] = &schemes[..] {
        for other in others {
            let Some(ratio) = paired_ratio(first, other) else { continue };
            text += &format!(
                "{} vs {}: {:.1}x {} {} (median of {} seeds; {:.1}x to {:.1}x)\n",
                other.name,
                first.name,
                ratio.median,
                if ratio.median < 1.0 { "as fast" } else { "faster" },
                what_is_same(suite),
                ratio.n,
                ratio.min,
                ratio.max
            );
        }
    }
    let measured: Vec<_> = schemes.iter().map(Measures::of).collect();
    let mut rows = vec![measures::HEADINGS.map(str::to_owned)];
    rows.extend(measured.iter().map(|it| it.cells(unit)));
    text.push('\n');
    text += &align(&rows);
    measures::notes(suite, &measured).iter().for_each(|note| text += &format!("{note}\n"));
    let seen = applications::seen(&schemes);
    if !seen.is_empty() {
        let mut rows = vec![applications::HEADINGS.map(str::to_owned)];
        rows.extend(seen.iter().map(applications::Seen::cells));
        text.push('\n');
        text += &align(&rows);
    }
    text
}

fn row(scheme: &SchemeRuns<'_>, unit: RateUnit) -> [String; 8] {
    [
        scheme.name.to_owned(),
        format!("{:.1} s", scheme.seconds.median),
        unit.show(scheme.goodput.median),
        format!("{} - {}", unit.show(scheme.goodput.p25), unit.show(scheme.goodput.p75)),
        unit.show(scheme.bound.median),
        scheme.of_bound(),
        format!("{}/{}", scheme.completed(), scheme.runs.len()),
        if scheme.is_intact() { "intact" } else { "DAMAGED" }.to_owned(),
    ]
}

/// Columns as wide as their widest cell; the first to the left, the others to the right. The first row are headings.
pub(crate) fn align(rows: &[impl AsRef<[String]>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.as_ref().get(column)).map(|cell| cell.chars().count()).max()
    };
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, cell) in row.as_ref().iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            text += &if column == 0 { format!("{cell}{pad}") } else { format!("  {pad}{cell}") };
        }
        text.push('\n');
        if number == 0 {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned));
        assert_eq!(align(&rows), "a    bb\n-------\nccc   d\n");
    }
}
