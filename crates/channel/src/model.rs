//! The errors of a channel as a scenario writes them.
//!
//! ```toml
//! errors = "none"
//! errors = { bit-errors = { ber = 1e-5 } }
//! errors = { erasure = { probability = 0.01 } }
//! errors = { gilbert-elliott = { f = 0.3, d = "1 s", b = 0.5, c = 0.0 } }
//! errors = { periodic = { open = "10 s", blocked = "5 s", first = "10 s" } }
//! errors = { bursts = { interval = ["5 s", "15 s"], length = ["100 ms", "300 ms"] } }
//! errors = { trace = { file = "outages.csv" } }
//! errors = { pooled = { links = 4, f = 0.5, d = "1 s" } }
//! errors = { scripted = { lost = [17, 40] } }
//! errors = { any = [{ erasure = { probability = 0.01 } }, { gilbert-elliott = { f = 0.3, d = "1 s" } }] }
//! ```
//!
//! `b` is the bit error rate while blocked, 0.5 unless told, and `c` the one while open, 0 unless told.

mod values;

use core::fmt::Display;
use core::ops::Range;

use base::config::ConfigError;
use base::units::Probability;
use base::{Duration, Instant, Rate, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity;
use crate::process::{
    AnyOf, BitErrors, Blockage, Bursts, Erasure, ErrorFree, ErrorProcess, Pooled, Scripted,
};
use crate::timeline::{
    GilbertElliott, Later, Overlap, Periodic, Timeline, Trace, TraceError, Uniform, Union,
};

pub use values::{
    BlockedFraction, BurstLength, Limits, Links, Models, NotABlockedFraction, NotABurstLength,
    NotANumberOfLinks, NotAPositiveTime, NotLimits, NotModels, PositiveTime,
};

/// From a time on, frames are lost with another probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ErasureChange {
    /// When, from the start of the run.
    pub at: Duration,
    /// Of each frame's loss from then on.
    pub probability: Probability,
}

/// What goes wrong on a channel, and how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ErrorModel {
    /// Nothing.
    #[default]
    None,
    /// Each bit is wrong with the same probability: the binary symmetric channel.
    BitErrors {
        /// Bit error rate.
        ber: Probability,
    },
    /// Each frame is lost with the same probability.
    Erasure {
        /// Of each frame's loss.
        probability: Probability,
        /// Changes of the probability during a run, in the order of their times.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<ErasureChange>,
    },
    /// Blocked at random: Faulkner 2004, 3.2.
    GilbertElliott {
        /// Fraction of time that the channel is blocked, below 1.
        f: BlockedFraction,
        /// Mean length of a blockage.
        d: PositiveTime,
        /// Bit error rate while blocked.
        #[serde(default = "half")]
        b: Probability,
        /// Bit error rate while open.
        #[serde(default)]
        c: Probability,
    },
    /// Blocked at fixed times.
    Periodic {
        /// Time between blockages.
        open: PositiveTime,
        /// Length of each.
        blocked: PositiveTime,
        /// When the first one starts. Default: after one open time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<Duration>,
        /// Bit error rate while blocked.
        #[serde(default = "half")]
        b: Probability,
        /// Bit error rate while open.
        #[serde(default)]
        c: Probability,
    },
    /// Bursts that no frame survives: Kojo et al. 2005, table 1.
    Bursts {
        /// The good time between two, all between the limits equally likely.
        interval: Limits,
        /// Their length, likewise; 1 us at least.
        length: BurstLength,
    },
    /// Blocked when a recording was.
    Trace {
        /// CSV file of outages, one `start,end` in seconds per line; [`ErrorModel::load`] reads it.
        file: String,
        /// Bit error rate while blocked.
        #[serde(default = "half")]
        b: Probability,
        /// Bit error rate while open.
        #[serde(default)]
        c: Probability,
        /// The file's content, once loaded.
        #[serde(skip)]
        recorded: Option<Trace>,
    },
    /// Several links share the rate, each blocked at random and independently: [`Pooled`].
    Pooled {
        /// How many.
        links: Links,
        /// Fraction of time that each is blocked, below 1.
        f: BlockedFraction,
        /// Mean length of a blockage of one link.
        d: PositiveTime,
        /// Bit error rate while blocked.
        #[serde(default = "half")]
        b: Probability,
        /// Bit error rate while open.
        #[serde(default)]
        c: Probability,
    },
    /// Exactly these frames of each line are lost.
    Scripted {
        /// Their numbers, counted from 1 in the order in which they are sent.
        lost: Vec<u64>,
    },
    /// Several of the others at once: a frame is lost if any of them loses it.
    Any(Models),
}

/// Where the random numbers of a line's errors come from: the run's seed and two names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    /// The run's root seed.
    pub seed: u64,
    /// Owner of the blockages. Lines that share this name are blocked at the same times.
    pub timeline: String,
    /// By how much these blockages are later.
    pub later: Duration,
    /// Owner of the bit errors and erasures. Unique to a line.
    pub line: String,
}

impl Streams {
    /// Those of one of several models on a line. The first has those of a line with it alone.
    fn of_model(&self, number: usize) -> Self {
        let named = |owner: &str| match number {
            0 => owner.to_owned(),
            _ => format!("{owner}/any-{number}"),
        };
        Self { timeline: named(&self.timeline), line: named(&self.line), ..self.clone() }
    }
}

impl ErrorModel {
    /// Whether several links share the line.
    #[must_use]
    pub const fn is_pooled(&self) -> bool {
        matches!(self, Self::Pooled { .. })
    }

    /// The models that are at work, one by one: this one, or those of a list.
    #[must_use]
    pub fn each(&self) -> &[Self] {
        match self {
            Self::Any(models) => models.get(),
            _ => core::slice::from_ref(self),
        }
    }

    /// As [`ErrorModel::each`], to be changed.
    pub fn each_mut(&mut self) -> &mut [Self] {
        match self {
            Self::Any(models) => models.get_mut(),
            _ => core::slice::from_mut(self),
        }
    }

    /// Each of a list's models with its streams.
    fn with_streams(&self, streams: &Streams) -> impl Iterator<Item = (&Self, Streams)> {
        let streams = streams.clone();
        self.each().iter().enumerate().map(move |(number, model)| (model, streams.of_model(number)))
    }

    /// Reads the files that the model names, through `read`; nothing to do for most models.
    ///
    /// # Errors
    /// The file cannot be read, or is no recording: names the file, the line and what is allowed.
    pub fn load<E: Display>(
        &mut self,
        mut read: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<(), ConfigError> {
        for model in self.each_mut() {
            let Self::Trace { file, recorded, .. } = model else { continue };
            let csv = read(file).map_err(|error| ConfigError::about(file, error))?;
            *recorded = Some(Trace::parse(&csv).map_err(|error| complaint(file, error))?);
        }
        Ok(())
    }

    /// When the channel is blocked, from the start of the run; of pooled links when all are.
    ///
    /// # Panics
    /// If the model names a recording that was not [loaded](ErrorModel::load).
    #[must_use]
    pub fn timeline(&self, streams: &Streams) -> Timeline {
        match self {
            // Each of a list's is later by itself.
            Self::Any(_) => self.timeline_now(streams),
            _ if streams.later.is_zero() => self.timeline_now(streams),
            _ => Timeline::Later(Box::new(Later::new(self.timeline_now(streams), streams.later))),
        }
    }

    fn timeline_now(&self, streams: &Streams) -> Timeline {
        match self {
            Self::None | Self::BitErrors { .. } | Self::Erasure { .. } | Self::Scripted { .. } => {
                Timeline::Open
            }
            Self::GilbertElliott { f, d, .. } => {
                let rng = Rng::named(streams.seed, &format!("{}/blockage", streams.timeline));
                Timeline::GilbertElliott(Box::new(GilbertElliott::new(f.get(), d.get(), rng)))
            }
            Self::Periodic { open, blocked, first, .. } => {
                let first = Instant::ZERO + first.unwrap_or(open.get());
                Timeline::Periodic(Periodic::new(open.get(), blocked.get(), first))
            }
            Self::Bursts { interval, length } => {
                let rng = Rng::named(streams.seed, &format!("{}/blockage", streams.timeline));
                Timeline::Uniform(Box::new(Uniform::new(interval.get(), length.get(), rng)))
            }
            Self::Any(_) => {
                let all = self.with_streams(streams).map(|(model, streams)| model.timeline(&streams));
                Timeline::Union(Box::new(Union::new(all.collect())))
            }
            Self::Pooled { .. } => Timeline::Overlap(Box::new(Overlap::new(self.links(streams)))),
            Self::Trace { file, recorded, .. } => {
                let recorded = recorded.clone();
                Timeline::Trace(recorded.unwrap_or_else(|| panic!("the recording {file} was not loaded")))
            }
        }
    }

    /// When each of the links is blocked that share the line; none unless they do. The first one's blockages are those of
    /// a line with a single obstacle.
    fn links(&self, streams: &Streams) -> Vec<Timeline> {
        let Self::Pooled { links, f, d, .. } = self else { return Vec::new() };
        let link = |number: u32| {
            let owner = match number {
                0 => streams.timeline.clone(),
                _ => format!("{}/{number}", streams.timeline),
            };
            let rng = Rng::named(streams.seed, &format!("{owner}/blockage"));
            Timeline::GilbertElliott(Box::new(GilbertElliott::new(f.get(), d.get(), rng)))
        };
        (0..links.get()).map(link).collect()
    }

    /// The error process of one line of this `rate`.
    ///
    /// # Panics
    /// If the model names a recording that was not [loaded](ErrorModel::load).
    #[must_use]
    pub fn build(&self, rate: Rate, streams: &Streams) -> Box<dyn ErrorProcess> {
        let rng = |what: &str| Rng::named(streams.seed, &format!("{}/{what}", streams.line));
        match self {
            Self::None => Box::new(ErrorFree),
            Self::BitErrors { ber } => Box::new(BitErrors::new(*ber, rate, rng("bit-errors"))),
            Self::Erasure { probability, changes } => {
                let changes = changes.iter().map(|change| (Instant::ZERO + change.at, change.probability));
                Box::new(Erasure::new(*probability, rng("erasure")).with_changes(changes))
            }
            Self::Scripted { lost } => Box::new(Scripted::new(lost)),
            Self::Any(_) => {
                let all = self.with_streams(streams).map(|(model, streams)| model.build(rate, &streams));
                Box::new(AnyOf::new(all.collect()))
            }
            Self::Bursts { .. } => Box::new(Bursts::new(self.timeline(streams), rng("bit-errors-blocked"))),
            Self::GilbertElliott { b, c, .. } | Self::Periodic { b, c, .. } | Self::Trace { b, c, .. } => {
                let blocked = BitErrors::new(*b, rate, rng("bit-errors-blocked"));
                let open = BitErrors::new(*c, rate, rng("bit-errors"));
                Box::new(Blockage::new(self.timeline(streams), blocked, open))
            }
            Self::Pooled { b, c, .. } => {
                let link = |(number, timeline): (usize, Timeline)| {
                    let blocked = BitErrors::new(*b, rate, rng(&format!("{number}/bit-errors-blocked")));
                    let open = BitErrors::new(*c, rate, rng(&format!("{number}/bit-errors")));
                    Blockage::new(timeline, blocked, open)
                };
                Box::new(Pooled::new(self.links(streams).into_iter().enumerate().map(link).collect()))
            }
        }
    }

    /// Whether bit errors are points in time, as many a second as the line's first rate has them, so that they would be
    /// wrong after a change of it. Noise while blocked is not.
    #[must_use]
    pub fn depends_on_rate(&self) -> bool {
        match self {
            Self::None | Self::Erasure { .. } | Self::Scripted { .. } | Self::Bursts { .. } => false,
            Self::Any(models) => models.get().iter().any(Self::depends_on_rate),
            Self::BitErrors { ber } => ber.get() > 0.0,
            Self::GilbertElliott { b, c, .. }
            | Self::Periodic { b, c, .. }
            | Self::Trace { b, c, .. }
            | Self::Pooled { b, c, .. } => c.get() > 0.0 || (b.get() > 0.0 && b.get() < 0.5),
        }
    }

    /// The capacity in the long run as a fraction of the line's rate; `None` for a recording, which has no long run. Of a list it
    /// is a bound from above (`combined`).
    #[must_use]
    pub fn capacity(&self) -> Option<f64> {
        match self {
            // In the long run a few frames are none.
            Self::None | Self::Scripted { .. } => Some(1.0),
            Self::Any(models) => {
                let all = models.get().iter().map(|model| Some((model, model.capacity()?)));
                Some(combined(all.collect::<Option<Vec<_>>>()?))
            }
            Self::BitErrors { ber } => Some(capacity::of_bit_errors(ber.get())),
            Self::Erasure { probability, changes } => {
                let last = changes.last().map_or(*probability, |change| change.probability);
                Some(capacity::of_erasure(last.get()))
            }
            Self::GilbertElliott { f, b, c, .. } | Self::Pooled { f, b, c, .. } => {
                Some(capacity::of_blockage(1.0 - f.get(), b.get(), c.get()))
            }
            Self::Periodic { open, blocked, b, c, .. } => {
                let (open, blocked) = (open.get().as_secs_f64(), blocked.get().as_secs_f64());
                Some(capacity::of_blockage(open / (open + blocked), b.get(), c.get()))
            }
            Self::Bursts { interval, length } => {
                let [open, blocked] = [interval.get(), length.get()].map(|span| span.mean().as_secs_f64());
                Some(open / (open + blocked))
            }
            Self::Trace { .. } => None,
        }
    }

    /// The mean time of a blockage and of the open time before it together; of each of pooled links; of a list, the longest. `None` where nothing is ever
    /// blocked, and for a recording, which has no mean.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        match self {
            Self::GilbertElliott { f, d, .. } | Self::Pooled { f, d, .. } => {
                (f.get() > 0.0).then(|| Duration::from_secs_f64(d.get().as_secs_f64() / f.get()))
            }
            Self::Periodic { open, blocked, .. } => Some(open.get().saturating_add(blocked.get())),
            Self::Bursts { interval, length } => Some(interval.get().mean() + length.get().mean()),
            Self::Any(models) => models.get().iter().filter_map(Self::period).max(),
            Self::None
            | Self::BitErrors { .. }
            | Self::Erasure { .. }
            | Self::Trace { .. }
            | Self::Scripted { .. } => None,
        }
    }

    /// The capacity of one realisation during `range`, as a fraction of the line's rate: exact where blockages are
    /// concerned, since their times are known.
    ///
    /// # Panics
    /// If the model names a recording that was not [loaded](ErrorModel::load).
    #[must_use]
    pub fn capacity_in(&self, streams: &Streams, range: Range<Instant>) -> f64 {
        match self {
            Self::None | Self::BitErrors { .. } | Self::Erasure { .. } | Self::Scripted { .. } => {
                self.capacity().unwrap_or(1.0)
            }
            Self::Any(_) => {
                let capacity = |(model, streams): (_, Streams)| {
                    (model, Self::capacity_in(model, &streams, range.clone()))
                };
                combined(self.with_streams(streams).map(capacity))
            }
            Self::GilbertElliott { b, c, .. } | Self::Periodic { b, c, .. } | Self::Trace { b, c, .. } => {
                let open = capacity::open_fraction(self.timeline(streams), range);
                capacity::of_blockage(open, b.get(), c.get())
            }
            Self::Bursts { .. } => capacity::open_fraction(self.timeline(streams), range),
            Self::Pooled { links, b, c, .. } => {
                let open = |timeline| capacity::open_fraction(timeline, range.clone());
                let open: f64 = self.links(streams).into_iter().map(open).sum();
                capacity::of_blockage(open / f64::from(links.get()), b.get(), c.get())
            }
        }
    }
}

/// The most that several models on one line leave of its capacity: what the worst of them leaves, times what each of the
/// erasures leaves, which are independent of everything else. Blockages may coincide.
fn combined<'a>(capacities: impl IntoIterator<Item = (&'a ErrorModel, f64)>) -> f64 {
    let (mut worst, mut erasures) = (1.0_f64, 1.0);
    for (model, capacity) in capacities {
        match model {
            ErrorModel::Erasure { .. } => erasures *= capacity,
            _ => worst = worst.min(capacity),
        }
    }
    worst * erasures
}

fn complaint(file: &str, error: TraceError) -> ConfigError {
    let message = error.kind.to_string();
    ConfigError { file: file.to_owned(), line: Some(error.line), excerpt: error.text, message }
}

/// "This represents the worst possible case" (Faulkner 2004, 3.2): half the bits are wrong.
fn half() -> Probability {
    Probability::try_from(0.5).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Scenario {
        #[allow(dead_code)]
        name: String,
        errors: ErrorModel,
    }

    fn read(errors: &str) -> Result<ErrorModel, String> {
        let text = format!("name = \"x\"\nerrors = {errors}\n");
        base::config::parse::<Scenario>("s.toml", &text).map(|s| s.errors).map_err(|e| e.to_string())
    }

    fn streams() -> Streams {
        Streams { seed: 1, timeline: "sat".to_owned(), later: Duration::ZERO, line: "sat/down".to_owned() }
    }

    #[test]
    fn every_model_reads_as_documented_and_writes_back() {
        for text in [
            "\"none\"",
            "{ bit-errors = { ber = 1e-5 } }",
            "{ erasure = { probability = 0.01 } }",
            "{ gilbert-elliott = { f = 0.3, d = \"1 s\", b = 0.5, c = 0.0 } }",
            "{ gilbert-elliott = { f = 0.3, d = \"1 s\" } }",
            "{ periodic = { open = \"10 s\", blocked = \"5 s\", first = \"10 s\" } }",
            "{ bursts = { interval = [\"0 s\", \"7 s\"], length = [\"100 ms\", \"100 ms\"] } }",
            "{ trace = { file = \"outages.csv\" } }",
            "{ scripted = { lost = [17, 40] } }",
            "{ any = [{ erasure = { probability = 0.01 } }, { scripted = { lost = [2] } }] }",
        ] {
            let errors = read(text).unwrap();
            let scenario = Scenario { name: "x".to_owned(), errors };
            let written = toml_of(&scenario);
            assert_eq!(base::config::parse::<Scenario>("s.toml", &written).unwrap(), scenario);
        }
    }

    fn toml_of(scenario: &Scenario) -> String {
        toml::to_string(scenario).unwrap()
    }

    #[test]
    fn defaults_are_those_of_the_thesis() {
        let errors = read("{ gilbert-elliott = { f = 0.3, d = \"1 s\" } }").unwrap();
        let ErrorModel::GilbertElliott { b, c, .. } = errors else { panic!("{errors:?}") };
        assert_eq!((b.get(), c.get()), (0.5, 0.0));
    }

    #[test]
    fn a_wrong_value_names_its_line_and_what_is_allowed() {
        for (text, complaint) in [
            ("{ bit-errors = { ber = 2 } }", "2 is not a probability; allowed are 0 to 1"),
            (
                "{ gilbert-elliott = { f = 1.0, d = \"1 s\" } }",
                "1 is not a blocked fraction; allowed are values from 0 to below 1",
            ),
            ("{ gilbert-elliott = { f = 0.1, d = \"0 s\" } }", "the time must be 1 us or longer"),
            ("{ gilbert-elliott = { f = 0.1 } }", "missing key `d`"),
            (
                "{ bursts = { interval = [\"3 s\", \"1 s\"], length = [\"1 s\", \"1 s\"] } }",
                "[\"3 s\", \"1 s\"] are not limits; allowed are the shortest time first",
            ),
            (
                "{ bursts = { interval = [\"1 s\", \"3 s\"], length = [\"0 s\", \"1 s\"] } }",
                "the time must be 1 us or longer",
            ),
            (
                "{ gilbert-elliott = { f = 0.1, d = \"1 s\", e = 1 } }",
                "unknown key `e`, expected one of `f`, `d`, `b`, `c`",
            ),
            ("{ any = [\"none\"] }", "1 error models on a line; allowed are 2 to 16"),
            (
                "{ any = [\"none\", { any = [\"none\", \"none\"] }] }",
                "a list of error models in another one; allowed is one list",
            ),
            ("\"perfect\"", "unknown value `perfect`, expected one of `none`, `bit-errors`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("s.toml:2: errors = "), "{error}");
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn a_period_is_a_blockage_and_the_time_before_it() {
        let period = |text| read(text).unwrap().period().map(Duration::as_secs_f64);
        assert_eq!(period("{ gilbert-elliott = { f = 0.25, d = \"1 s\" } }"), Some(4.0));
        assert_eq!(period("{ pooled = { links = 4, f = 0.5, d = \"1 s\" } }"), Some(2.0));
        assert_eq!(
            period("{ bursts = { interval = [\"2 s\", \"10 s\"], length = [\"100 ms\", \"300 ms\"] } }"),
            Some(6.2)
        );
        assert_eq!(period("{ periodic = { open = \"10 s\", blocked = \"5 s\" } }"), Some(15.0));
        for never in
            ["{ gilbert-elliott = { f = 0, d = \"1 s\" } }", "{ bit-errors = { ber = 1e-5 } }", "\"none\""]
        {
            assert_eq!(period(never), None, "{never}");
        }
    }

    #[test]
    fn a_recording_is_loaded_through_the_caller() {
        let mut errors = read("{ trace = { file = \"outages.csv\" } }").unwrap();
        let error = errors.load(|_| Err::<String, _>("no such file")).unwrap_err();
        assert_eq!(error.to_string(), "outages.csv: no such file");
        let error = errors.load(|_| Ok::<_, String>("1,2\n5,4\n".to_owned())).unwrap_err();
        assert!(error.to_string().starts_with("outages.csv:2: 5,4: an empty outage"), "{error}");
        errors.load(|name| if name == "outages.csv" { Ok("1,2\n".to_owned()) } else { Err("") }).unwrap();
        let second = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(errors.timeline(&streams()).next().unwrap().start, second);
        let ten = Instant::ZERO + Duration::from_secs(10);
        assert!((errors.capacity_in(&streams(), Instant::ZERO..ten) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_list_loses_what_any_of_it_loses_and_the_first_model_is_not_changed() {
        let lost = |text: &str| {
            let mut process = read(text).unwrap().build(Rate::from_bps(1_000_000), &streams());
            let at = |n: u64| Instant::ZERO + Duration::from_millis(n);
            (0..2000).map(|n| !process.fate(at(n)..at(n + 1), 1000).is_intact()).collect::<Vec<_>>()
        };
        let (erasure, blockage) =
            ("{ erasure = { probability = 0.1 } }", "{ gilbert-elliott = { f = 0.3, d = \"50 ms\" } }");
        let scripted = "{ scripted = { lost = [17, 40] } }";
        for first in [erasure, blockage] {
            let alone = lost(first);
            let expected: Vec<_> =
                alone.iter().enumerate().map(|(n, lost)| *lost || n == 16 || n == 39).collect();
            assert_eq!(lost(&format!("{{ any = [{first}, {scripted}] }}")), expected);
            let both = lost(&format!("{{ any = [{first}, {erasure}, {blockage}] }}"));
            assert!(both.iter().zip(&alone).all(|(both, alone)| *both || !alone));
        }
        // The second of two equal models has a stream of its own: 0.19 of 2000, within five standard errors.
        let twice = lost(&format!("{{ any = [{erasure}, {erasure}] }}"));
        let count = twice.iter().filter(|lost| **lost).count();
        assert!((290..470).contains(&count), "{count}");
    }

    #[test]
    fn a_list_has_the_capacity_that_its_worst_model_and_its_erasures_leave() {
        let errors = |tail: &str| {
            read(&format!(
                "{{ any = [{{ erasure = {{ probability = 0.5 }} }}, {{ gilbert-elliott = {{ f = 0.25, d = \"1 s\" }} }}{tail}] }}"
            ))
            .unwrap()
        };
        let two = errors("");
        assert_eq!((two.capacity(), two.period()), (Some(0.375), Some(Duration::from_secs(4))));
        assert!(!two.depends_on_rate() && errors(", { bit-errors = { ber = 1e-5 } }").depends_on_rate());
        let minute = Instant::ZERO..Instant::ZERO + Duration::from_secs(60);
        let open = capacity::open_fraction(two.timeline(&streams()), minute.clone());
        assert!(two.capacity_in(&streams(), minute.clone()) < open);
        let blocked = Duration::from_secs_f64((1.0 - open) * 60.0);
        assert!(two.timeline(&streams()).blocked_time(minute).abs_diff(blocked) < Duration::from_micros(1));
    }

    #[test]
    fn one_realisation_has_its_own_capacity() {
        let errors = read("{ gilbert-elliott = { f = 0.3, d = \"1 s\" } }").unwrap();
        let hour = Instant::ZERO + Duration::from_secs(3600);
        let ours = errors.capacity_in(&streams(), Instant::ZERO..hour);
        assert!((errors.capacity().unwrap() - 0.7).abs() < 1e-12);
        // Five standard errors of a renewal process with 1080 periods.
        assert!((ours - 0.7).abs() < 5.0 * (2.0_f64 / 1080.0).sqrt() * 0.21 && ours != 0.7, "{ours}");
    }
}
