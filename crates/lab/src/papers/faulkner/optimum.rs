//! The question that the thesis leaves open (section 5.2, item 4): why a window of medium length is best. docs/optimum.md
//! has the answer.
//!
//! Three comparisons with one thing changed: a source without congestion control in TCP's place; acknowledgements that
//! tell of the latest block beyond a gap in place of the first; blockages at regular intervals in place of random ones.

mod figures;

use std::io;

use base::config::ConfigError;

use super::Topic;
use super::setting::{Channel, RATE, Scheme, WINDOW, scenario, throughput};
use super::window::sweep::{optimum, rows_of};
use super::window::{WINDOWS, seconds};
use crate::claims::Measurements;
use crate::reproduce::{Case, Cell, Effort, Experiment, Samples};
use crate::run::{self, Watch};
use crate::statistics::Interval;

pub(super) const TOPIC: Topic = Topic {
    experiments: &[Experiment { name: NAME, figures: &["optimum"], claims: &[], cases, measure }],
    rule: |_, _| None,
    remark: |_| None,
    cells,
    figures: figures::figures,
};

const NAME: &str = "optimum";
/// Blocked fractions of figures 4-15 and 4-16.
const FRACTIONS: [f64; 2] = [0.3, 0.7];
/// Their shorter mean blockage in seconds.
const DURATION: f64 = 0.6;
/// One-way delay in ms: the baseline's, and others.
const DELAY: u32 = 250;
const OTHER_DELAYS: [u32; 3] = [50, 125, 500];
/// Regular blockages and what is open between, in seconds, both with f = 0.3: one gap is closed before the next opens, within
/// a round trip of 0.5 s and what it takes to send again; and three gaps in that time.
const REGULAR: [(f64, f64); 2] = [(0.6, 1.4), (0.15, 0.35)];
/// Realisations a point.
const SEEDS: u32 = 8;

/// What offers data to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Tcp,
    /// Datagrams of 1500 bytes at more than the line's rate.
    Saturated,
}

/// The block beyond a gap that acknowledgements tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    First,
    Latest,
}

#[derive(Clone, Copy, Debug)]
enum Blockages {
    /// Exponential, of the blocked fraction, [`DURATION`] on average.
    Random(f64),
    /// Blocked and open for so many seconds in turn.
    Regular(f64, f64),
}

/// What a sweep over windows holds constant.
#[derive(Clone, Copy, Debug)]
struct Setting {
    source: Source,
    block: Block,
    blockages: Blockages,
    /// One way, in milliseconds.
    delay: u32,
}

impl Source {
    const BOTH: [Self; 2] = [Self::Tcp, Self::Saturated];

    const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Saturated => "saturated",
        }
    }

    fn keys(self) -> Vec<String> {
        match self {
            Self::Tcp => Vec::new(),
            Self::Saturated => vec![
                "traffic.download={ rate = { from = \"server\", to = \"terminal\", transport = \"udp\", record = \
                 \"1472 B\", rate = \"300 kbit/s\" } }"
                    .to_owned(),
            ],
        }
    }
}

impl Block {
    const BOTH: [Self; 2] = [Self::First, Self::Latest];

    const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Latest => "latest",
        }
    }
}

impl Blockages {
    const fn channel(self) -> Channel {
        match self {
            Self::Random(f) => Channel::Blockage { f, d: DURATION },
            Self::Regular(blocked, open) => Channel::Periodic { blocked, open, first: open },
        }
    }

    fn name(self) -> String {
        match self {
            Self::Random(f) => format!("random, f = {f}"),
            Self::Regular(blocked, open) => format!("regular, {blocked} s of {} s", blocked + open),
        }
    }
}

impl Setting {
    const fn random(source: Source, block: Block, f: f64) -> Self {
        Self { source, block, blockages: Blockages::Random(f), delay: DELAY }
    }

    fn case(&self, window: u32) -> String {
        let (source, block, blockages) = (self.source.name(), self.block.name(), self.blockages.name());
        format!("{source}, {block} block, {blockages}, {} ms, window {window}", self.delay)
    }

    fn curve(&self, samples: &Samples, quantity: &str) -> Vec<(f64, Interval)> {
        let at = |window: u32| Some((seconds(window), samples.interval(NAME, &self.case(window), quantity)?));
        WINDOWS.into_iter().filter_map(at).collect()
    }

    /// Means, of any number of realisations.
    fn means(&self, samples: &Samples, quantity: &str) -> Vec<(f64, f64)> {
        let at = |window: u32| Some((seconds(window), samples.mean(NAME, &self.case(window), quantity)?));
        WINDOWS.into_iter().filter_map(at).collect()
    }

    /// The best window of each realisation in seconds.
    fn best(&self, samples: &Samples) -> Vec<f64> {
        rows_of(samples, NAME, |window| self.case(window)).iter().map(|row| optimum(&[row])).collect()
    }
}

/// Both sources with both blocks at both fractions.
fn compared() -> Vec<Setting> {
    let mut settings = Vec::new();
    for f in FRACTIONS {
        for source in Source::BOTH {
            settings.extend(Block::BOTH.map(|block| Setting::random(source, block, f)));
        }
    }
    settings
}

/// The saturated source over other delays, and under regular blockages.
fn further() -> Vec<Setting> {
    let base = Setting::random(Source::Saturated, Block::First, FRACTIONS[0]);
    let mut settings = OTHER_DELAYS.map(|delay| Setting { delay, ..base }).to_vec();
    for (blocked, open) in REGULAR {
        let blockages = Blockages::Regular(blocked, open);
        settings.extend(Block::BOTH.map(|block| Setting { blockages, block, ..base }));
    }
    settings
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut settings = compared();
    if effort == Effort::Full {
        settings.extend(further());
    }
    let mut cases = Vec::new();
    for setting in settings {
        let channel = setting.blockages.channel();
        let length = channel.steady(300.0, effort);
        // Regular blockages have nothing random in them.
        let seeds =
            if matches!(setting.blockages, Blockages::Random(_)) { effort.choose(2, SEEDS) } else { 1 };
        for window in WINDOWS {
            let mut more = setting.source.keys();
            more.push(format!("link.satellite.channel.delay={} ms", setting.delay));
            more.push(format!(
                "link.satellite.protocol={{ cotmll = {{ window = {window}, ordered = true, block = \"{}\" }} }}",
                setting.block.name()
            ));
            let scenario = scenario(Scheme::TcpLl, &channel, length, &more)?;
            cases.push(Case::new(setting.case(window), scenario, seeds));
        }
    }
    Ok(cases)
}

/// Throughput, and what the line to the terminal carries, in parts of its rate.
fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let line = |bits: &str| Some(*run.links.get("satellite/down")?.get(bits)? as f64 / RATE / run.seconds);
    let mut measured = Measurements::new();
    measured.note("T", throughput(&run));
    measured.note("new", line("bits-new"));
    measured.note("flagged", line("bits-retransmission"));
    measured.note("unasked", line("bits-filler"));
    Ok(measured)
}

fn cells(samples: &Samples) -> Vec<Cell> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let mut cells = Vec::new();
    for setting in compared().into_iter().chain(further()) {
        let capacity = setting.blockages.channel().capacity();
        let row = |what: &str| {
            [
                ("source", setting.source.name().to_owned()),
                ("block", setting.block.name().to_owned()),
                ("blockages", setting.blockages.name()),
                ("delay", format!("{} ms", setting.delay)),
                ("what", what.to_owned()),
            ]
        };
        let table = "the window's optimum";
        cells.push(Cell::of_mean(table, &row("best window in s"), setting.best(samples)));
        let throughput = |window: u32| samples.values(NAME, &setting.case(window), "T");
        let mean = |window: u32| samples.mean(NAME, &setting.case(window), "T").unwrap_or(0.0);
        let best = WINDOWS.into_iter().max_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap_or(WINDOW);
        for (what, window) in [("T at the best of the windows", best), ("T at 7.75 s", WINDOW)] {
            let cell = Cell::of_mean(table, &row(what), throughput(window));
            cells.push(Cell { bound: Some(capacity), ..cell });
        }
    }
    cells
}
