//! What the comparisons look like.

use super::{
    Block, Blockages, DELAY, FRACTIONS, NAME, OTHER_DELAYS, REGULAR, Setting, Source, WINDOWS, seconds,
};
use crate::papers::faulkner::drawing::Curves;
use crate::report::Figure;
use crate::reproduce::Samples;

pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let mut figures = FRACTIONS.map(|f| sources(samples, f)).to_vec();
    figures.extend(Block::BOTH.map(|block| line(samples, block)));
    let base = Setting::random(Source::Saturated, Block::First, FRACTIONS[0]);
    if !(Setting { delay: OTHER_DELAYS[0], ..base }).means(samples, "T").is_empty() {
        figures.push(delays(samples, &base));
        figures.push(regular(samples, &base));
    }
    figures
}

fn over_windows(y: &str) -> Curves {
    Curves::new("link window (s)", y).log_x()
}

fn with_capacity(curves: Curves, f: f64) -> Curves {
    let ends = [seconds(WINDOWS[0]), seconds(WINDOWS[WINDOWS.len() - 1])];
    curves.calculated("capacity", ends.map(|end| (end, 1.0 - f)).to_vec())
}

fn sources(samples: &Samples, f: f64) -> Figure {
    let mut curves = over_windows("normalised throughput");
    let combinations = Source::BOTH.into_iter().flat_map(|source| Block::BOTH.map(|block| (source, block)));
    for (colour, (source, block)) in combinations.enumerate() {
        let name = format!("{}, {} block told", source.name(), block.name());
        let curve = Setting::random(source, block, f).curve(samples, "T");
        curves = curves.measured(&name, colour, &curve);
    }
    Figure {
        name: format!("optimum-f-{f}"),
        title: format!("The best window without TCP, and with other acknowledgements, f = {f}"),
        caption: "TCP or a saturated link; acknowledgements tell of the first block beyond a gap, as the thesis has it, or \
                  of the latest. d = 0.6 s; means over realisations with 95 % intervals, beside the capacity."
            .to_owned(),
        svg: with_capacity(curves, f).svg(),
    }
}

fn line(samples: &Samples, block: Block) -> Figure {
    let mut curves = over_windows("part of the line's time");
    let setting = Setting::random(Source::Saturated, block, FRACTIONS[0]);
    let parts = [("new frames", "new"), ("flagged as lost", "flagged"), ("repeated unasked", "unasked")];
    for (colour, (name, quantity)) in parts.into_iter().enumerate() {
        curves = curves.measured(name, colour, &setting.curve(samples, quantity));
    }
    Figure {
        name: format!("optimum-line-{}", block.name()),
        title: format!("What the line carries, {} block told, f = 0.3", block.name()),
        caption: "A saturated link: rule 3 repeats frames unasked only while the window is full.".to_owned(),
        svg: curves.svg(),
    }
}

fn delays(samples: &Samples, base: &Setting) -> Figure {
    let mut curves = over_windows("normalised throughput");
    let mut delays = [&OTHER_DELAYS[..], &[DELAY]].concat();
    delays.sort_unstable();
    for (colour, delay) in delays.into_iter().enumerate() {
        let curve = Setting { delay, ..*base }.curve(samples, "T");
        curves = curves.measured(&format!("{delay} ms one way"), colour, &curve);
    }
    Figure {
        name: "optimum-delay".to_owned(),
        title: "The best window follows the delay".to_owned(),
        caption: "A saturated link, f = 0.3, d = 0.6 s, first block told.".to_owned(),
        svg: with_capacity(curves, FRACTIONS[0]).svg(),
    }
}

fn regular(samples: &Samples, base: &Setting) -> Figure {
    let mut curves = over_windows("normalised throughput");
    let combinations = REGULAR.into_iter().flat_map(|regular| Block::BOTH.map(|block| (regular, block)));
    for (colour, ((blocked, open), block)) in combinations.enumerate() {
        let setting = Setting { blockages: Blockages::Regular(blocked, open), block, ..*base };
        let name = format!("{blocked} s blocked, {open} s open, {} block", block.name());
        curves = curves.line(&name, colour, setting.means(samples, "T"));
    }
    Figure {
        name: "optimum-regular".to_owned(),
        title: "One gap at a time, and several".to_owned(),
        caption: "A saturated link whose blockages come at regular intervals, f = 0.3, 250 ms one way: a round trip and what \
                  it takes to send a gap again fit into 1.4 s, but not into 0.35 s. One run a point."
            .to_owned(),
        svg: with_capacity(curves, FRACTIONS[0]).svg(),
    }
}
