//! The report as one HTML page that needs nothing but itself.

use core::fmt::Write as _;

use super::html::{document, escape, show};
use super::measures::{self, Measures};
use super::rate::RateUnit;
use super::{SchemeRuns, applications, by_scheme, paired_ratio, rate_unit, what_is_same};
use crate::drawing::Figure;
use crate::run::{self, Run, Typical};
use crate::scenario::Suite;

/// The page.
pub(super) fn page(suite: &Suite, runs: &[Run], figures: &[Figure], command: &str) -> String {
    let scenario = &suite.scenario;
    let schemes = by_scheme(suite, runs);
    let mut body = format!("<h1>{}</h1>\n<p>{}</p>\n", escape(&scenario.name), escape(&scenario.description));
    body += &verdict(suite, &schemes);
    body += &summary(&schemes);
    body += &comparable(suite, &schemes);
    body += &latencies(&schemes);
    figures.iter().for_each(|figure| body += &show(figure));
    let seed = Typical::of(suite, runs).map_or(scenario.seed, |typical| typical.seed);
    schemes.iter().for_each(|scheme| body += &counters(scheme, seed));
    body += &every_run(runs);
    body += &reproduce(suite, runs, command);
    document(&scenario.name, &body)
}

/// One sentence for each scheme after the first.
fn verdict(suite: &Suite, schemes: &[SchemeRuns<'_>]) -> String {
    let [first, others @ ..] = schemes else { return String::new() };
    let sentence = |other: &SchemeRuns<'_>| {
        let ratio = paired_ratio(first, other)?;
        Some(format!(
            "<p class=\"verdict\"><b>{}</b> is <b>{:.1} times</b> as fast as {} {} \
             (median of {} seeds; {:.1} to {:.1}) and reaches {} of the bound.</p>",
            escape(other.name),
            ratio.median,
            escape(first.name),
            what_is_same(suite),
            ratio.n,
            ratio.min,
            ratio.max,
            other.of_bound()
        ))
    };
    others.iter().filter_map(sentence).collect()
}

fn summary(schemes: &[SchemeRuns<'_>]) -> String {
    let mut table = String::from(
        "<table><thead><tr><th>scheme</th><th>time, median</th><th>goodput, median</th><th>quartiles</th>\
         <th>bound</th><th>of bound</th><th>complete</th><th>bytes</th></tr></thead><tbody>\n",
    );
    let unit = rate_unit(schemes);
    for scheme in schemes {
        let _ = writeln!(
            table,
            "<tr><th>{}</th><td>{:.1} s</td><td>{}</td><td>{} to {}</td><td>{}</td><td>{}</td><td>{} of {}</td><td>{}</td></tr>",
            escape(scheme.name),
            scheme.seconds.median,
            unit.show(scheme.goodput.median),
            unit.show(scheme.goodput.p25),
            unit.show(scheme.goodput.p75),
            unit.show(scheme.bound.median),
            scheme.of_bound(),
            scheme.completed(),
            scheme.runs.len(),
            if scheme.is_intact() { "intact" } else { "<b>damaged</b>" },
        );
    }
    table + "</tbody></table>"
}

/// The measures that make channels comparable.
fn comparable(suite: &Suite, schemes: &[SchemeRuns<'_>]) -> String {
    let measured: Vec<_> = schemes.iter().map(Measures::of).collect();
    let notes = measures::notes(suite, &measured);
    let notes: String = notes.iter().map(|note| format!("<p>{}.</p>\n", escape(note))).collect();
    rows(&measures::HEADINGS, measured.iter().map(|it| it.cells(rate_unit(schemes)))) + &notes
}

/// What applications saw that measure latency; nothing where there are none.
fn latencies(schemes: &[SchemeRuns<'_>]) -> String {
    let seen = applications::seen(schemes);
    if seen.is_empty() {
        return String::new();
    }
    rows(&applications::HEADINGS, seen.iter().map(applications::Seen::cells))
        + "<p>Each column is the mean of the runs' own figures; the longest latency is the longest of all runs.</p>\n"
}

fn rows<const N: usize>(headings: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let cells = |tag: &str, cells: &[String]| -> String {
        let cell = |cell: &String| format!("<{tag}>{}</{tag}>", escape(cell));
        format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
    };
    let mut table = format!("<table><thead>{}</thead><tbody>\n", cells("th", &headings.map(str::to_owned)));
    rows.for_each(|row| table += &cells("td", &row));
    table + "</tbody></table>\n"
}

/// What a scheme's run with this seed counted: TCP's retransmissions, and every direction of every link.
fn counters(scheme: &SchemeRuns<'_>, seed: u64) -> String {
    let Some(run) = scheme.runs.iter().find(|run| run.seed == seed) else { return String::new() };
    let name = escape(scheme.name);
    let mut table =
        format!("<details><summary>{name}: what was sent and lost, seed {seed}</summary>\n<table><tbody>\n");
    let mut row = |what: &str, count: u64| {
        let _ = writeln!(table, "<tr><th>{}</th><td>{count}</td></tr>", escape(what));
    };
    for transfer in &run.transfers {
        row(&format!("{}: TCP data segments sent", transfer.name), transfer.segments_sent);
        row(&format!("{}: of these, sent again", transfer.name), transfer.retransmissions);
        row(&format!("{}: TCP time-outs", transfer.name), transfer.timeouts);
    }
    for source in run.sources.iter().filter(|source| source.transport == "tcp") {
        row(&format!("{}: TCP data segments sent", source.name), source.segments_sent);
        row(&format!("{}: of these, sent again", source.name), source.retransmissions);
        row(&format!("{}: TCP time-outs", source.name), source.timeouts);
    }
    for (direction, counters) in run.links.iter().chain(&run.nodes) {
        for (what, count) in counters.iter().filter(|(_, count)| **count > 0) {
            row(&format!("{direction}: {what}"), *count);
        }
    }
    table + "</tbody></table></details>\n"
}

fn every_run(runs: &[Run]) -> String {
    let mut table = String::from(
        "<details><summary>Every run</summary>\n<table><thead><tr><th>scheme</th><th>seed</th><th>bytes</th>\
         <th>time</th><th>goodput</th><th>bound</th><th>intact</th><th>trace</th></tr></thead><tbody>\n",
    );
    let unit = RateUnit::of(runs.iter().flat_map(|run| [run.goodput_bps, run.bound_bps]));
    for run in runs {
        let _ = writeln!(
            table,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{:.3} s</td><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>",
            escape(&run.scheme),
            run.seed,
            run.bytes,
            run.seconds,
            unit.show(run.goodput_bps),
            unit.show(run.bound_bps),
            run.intact,
            run.trace_hash,
        );
    }
    table + "</tbody></table></details>"
}

fn reproduce(suite: &Suite, runs: &[Run], command: &str) -> String {
    let resolved = toml::to_string(&suite.scenario).unwrap_or_default();
    format!(
        "<details><summary>How to reproduce this report</summary>\n<p><code>{}</code> with version {} gives the trace hash \
         <code>{}</code> on any machine.</p>\n<pre>{}</pre></details>",
        escape(command),
        env!("CARGO_PKG_VERSION"),
        run::trace_hash(runs),
        escape(&resolved)
    )
}
