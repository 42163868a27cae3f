//! A study's TOML as it is written, before it is checked: `docs/studies.md` explains every key.

use std::collections::BTreeMap;

use base::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::schema::{
    Axes, Choices, Constants, Coordinates, Flag, Labels, Number, Numbers, Plain, SharedAxes,
};
use crate::scenario::Part;

/// `experiments.toml`: what the study is, and its parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Study")]
pub(super) struct StudyForm {
    /// Short name of the study.
    pub(super) name: String,
    /// Subject of the study: authors, title and year of a paper.
    pub(super) title: String,
    /// One line on what was chosen where the paper leaves a choice.
    #[serde(default)]
    pub(super) setting: String,
    /// Seed of the first replication of everything; the next has the next seed. Scenarios that experiments start from have no say.
    #[serde(default = "first_seed")]
    pub(super) seed: u64,
    /// How often a full run looks at the claims, 1 to 6: those that are undecided get twice as many seeds for the next time.
    #[serde(default = "looks")]
    #[schemars(range(min = 1, max = 6))]
    pub(super) looks: u32,
    /// Further files of experiments, figures and tables, without `.toml`.
    #[serde(default)]
    pub(super) include: Vec<String>,
    /// The file of claims, without `.toml`.
    pub(super) claims: Option<String>,
    /// Constants that every expression knows.
    #[serde(default, rename = "let")]
    #[schemars(with = "Constants")]
    pub(super) constants: Table,
    /// Axes that experiments may name, as `axes.scheme = "scheme"`.
    #[serde(default)]
    #[schemars(with = "Axes")]
    pub(super) axes: Table,
    /// What `--quick` changes unless an experiment says otherwise.
    #[serde(default)]
    pub(super) quick: QuickForm,
    /// How the readings beside the default one run.
    #[serde(default)]
    pub(super) readings: ReadingsForm,
    /// What the paper leaves unsaid.
    #[serde(default)]
    #[schemars(with = "Vec<ReadingForm>")]
    pub(super) reading: Vec<Spanned<ReadingForm>>,
    /// The experiments to run.
    #[serde(default)]
    #[schemars(with = "Vec<ExperimentForm>")]
    pub(super) experiment: Vec<Spanned<ExperimentForm>>,
    /// The figures to draw.
    #[serde(default)]
    #[schemars(with = "Vec<FigureForm>")]
    pub(super) figure: Vec<Spanned<FigureForm>>,
    /// The tables to show.
    #[serde(default)]
    #[schemars(with = "Vec<TableForm>")]
    pub(super) table: Vec<Spanned<TableForm>>,
}

const fn first_seed() -> u64 {
    super::identity::FIRST_SEED
}

const fn looks() -> u32 {
    super::looks::DEFAULT
}

/// What a file that `experiments.toml` includes may hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartsForm {
    /// The experiments to run.
    #[serde(default)]
    pub(super) experiment: Vec<Spanned<ExperimentForm>>,
    /// The figures to draw.
    #[serde(default)]
    pub(super) figure: Vec<Spanned<FigureForm>>,
    /// The tables to show.
    #[serde(default)]
    pub(super) table: Vec<Spanned<TableForm>>,
}

/// A reduced version of the study, for a first look.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Quick")]
pub(super) struct QuickForm {
    /// Maximum number of seeds.
    pub(super) seeds: Option<u32>,
    /// A factor for the length of runs.
    pub(super) length: Option<f64>,
    /// Leave the experiment out.
    #[serde(default)]
    pub(super) skip: bool,
    /// The values of axes that run.
    #[serde(default)]
    #[schemars(with = "Choices")]
    pub(super) axes: Table,
    /// Numbers of `with` that differ.
    #[serde(default)]
    #[schemars(with = "Numbers")]
    pub(super) with: Table,
}

/// How the points of the readings beside the default one run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Readings")]
pub(super) struct ReadingsForm {
    /// Maximum number of seeds.
    pub(super) seeds: Option<u32>,
    /// Whether experiments that they change run on the values that a quick run has.
    #[serde(default)]
    pub(super) coarse: bool,
    /// Which points run: an expression over the readings' names.
    pub(super) only: Option<String>,
}

/// One thing that the paper leaves unsaid, and what it may mean.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reading")]
pub(super) struct ReadingForm {
    /// Its name in expressions.
    pub(super) name: String,
    /// A list of values, or a table of labels and the keys that each sets.
    #[schemars(with = "Labels")]
    pub(super) values: Value,
    /// Keys that every value sets; texts in it may hold `$name` or `${expression}`.
    #[serde(default)]
    #[schemars(with = "Part")]
    pub(super) set: Table,
    /// The label of the default.
    #[schemars(with = "Plain")]
    pub(super) default: Value,
    /// Why it is the default.
    pub(super) reason: String,
    /// The values that a quick run has.
    #[schemars(with = "Option<super::schema::Choice>")]
    pub(super) quick: Option<Value>,
}

/// Scenarios to run and what to measure of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Experiment")]
pub(super) struct ExperimentForm {
    /// Its name in expressions: letters, digits and _.
    pub(super) name: String,
    /// What it does and why, for the report.
    #[serde(default)]
    pub(super) title: String,
    /// Scenario file to start from, without `.toml`; leave it out for a calculation.
    pub(super) base: Option<String>,
    /// Axes by name, in the order in which expressions name their coordinates.
    #[serde(default)]
    #[schemars(with = "SharedAxes")]
    pub(super) axes: Table,
    /// Axis whose values one measurement covers together.
    pub(super) together: Option<String>,
    /// The combinations of values that run: an expression over the axes.
    pub(super) only: Option<String>,
    /// Names for expressions over the axes, in their order.
    #[serde(default, rename = "let")]
    #[schemars(with = "Constants")]
    pub(super) names: Table,
    /// Keys to set; texts in it may hold `$name` or `${expression}`.
    #[serde(default)]
    #[schemars(with = "Part")]
    pub(super) set: Table,
    /// Keys that only some combinations of values set.
    #[serde(default)]
    pub(super) when: Vec<WhenForm>,
    /// How long a run simulates. Default: the scenario's duration.
    pub(super) length: Option<LengthForm>,
    /// Number of seeds: a number or an expression over the axes.
    #[schemars(with = "Option<Number>")]
    pub(super) seeds: Option<Value>,
    /// Where nothing is random, so that one run stands for all: true, or an expression over the axes.
    #[schemars(with = "Option<Flag>")]
    pub(super) exact: Option<Value>,
    /// What is measured: names of probes.
    #[schemars(with = "Vec<super::schema::ProbeName>")]
    pub(super) probes: Vec<String>,
    /// Numbers for the probes: numbers or expressions over the axes.
    #[serde(default)]
    #[schemars(with = "Numbers")]
    pub(super) with: Table,
    /// The readings that change it. Default: all.
    pub(super) readings: Option<Vec<String>>,
    /// What `--quick` changes.
    #[serde(default)]
    pub(super) quick: QuickForm,
    /// How much longer a run takes than its scenarios suggest, as a factor.
    pub(super) effort: Option<f64>,
}

/// Keys that some combinations set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "When")]
pub(super) struct WhenForm {
    /// An expression over the axes.
    #[serde(rename = "if")]
    pub(super) condition: String,
    /// Keys to set.
    #[schemars(with = "Part")]
    pub(super) set: Table,
}

/// How long a run simulates.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Length")]
pub(super) enum LengthForm {
    /// A time, or a template of one.
    Fixed(String),
    /// A number of channel periods, with limits on the time.
    Periods(PeriodsForm),
}

/// A length in channel periods.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Periods")]
pub(super) struct PeriodsForm {
    /// Channel periods: a blockage and the open time before it.
    pub(super) periods: f64,
    /// Shortest time.
    pub(super) least: Duration,
    /// Longest time.
    pub(super) most: Option<Duration>,
}

/// What kind of drawing a figure is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "FigureKind")]
pub(super) enum Kind {
    /// Lines over an axis, with intervals.
    #[default]
    Lines,
    /// Small multiples of lines: the first axis of `curve` tells lines apart, each combination of the others has a panel.
    Panels,
    /// Groups of bars.
    Bars,
    /// The spread over the seeds: quartiles and extremes.
    Boxes,
    /// A colour for each pair of values of two axes.
    Heat,
    /// What one run recorded, over time.
    Trace,
}

/// What stands for many seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Center {
    #[default]
    Mean,
    Median,
}

/// A drawing of what experiments measured.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Figure")]
pub(super) struct FigureForm {
    /// Its name, unique in the study, as in the paper.
    pub(super) id: String,
    /// Title above it.
    pub(super) title: String,
    /// Caption below it.
    #[serde(default)]
    pub(super) caption: String,
    /// What kind of drawing it is.
    #[serde(default)]
    pub(super) kind: Kind,
    /// The experiment whose axes it has.
    pub(super) from: String,
    /// The axis that is drawn along x; for bars, the axis of the groups.
    #[serde(default)]
    pub(super) x: String,
    /// Where a value of that axis lies on the x axis: an expression. Default: the value itself.
    pub(super) x_value: Option<String>,
    /// The x values if `x` is an argument of the quantities instead of an axis: an expression for a list of numbers.
    pub(super) over: Option<String>,
    /// What is drawn: a quantity, an expression over the axes, or for a trace the name of a series. Lines may have all of their
    /// curves in `also`.
    #[serde(default)]
    pub(super) y: String,
    /// Name of a curve if no axis distinguishes it from others.
    #[serde(default)]
    pub(super) y_name: String,
    /// Axes with a curve for each of their values.
    #[serde(default)]
    pub(super) curve: Names,
    /// Axes over which values are pooled: means over them, seed by seed.
    #[serde(default)]
    pub(super) pool: Names,
    /// The coordinates on all other axes.
    #[serde(default)]
    #[schemars(with = "Coordinates")]
    pub(super) at: Table,
    /// The combinations that are drawn: an expression over the axes.
    pub(super) only: Option<String>,
    /// Further curves.
    #[serde(default)]
    pub(super) also: Vec<AlsoForm>,
    /// The physical bound: an expression over the axes.
    pub(super) bound: Option<String>,
    /// Name of the bound.
    pub(super) bound_name: Option<String>,
    /// Only the first seed's run of each point, as papers draw.
    #[serde(default)]
    pub(super) single: bool,
    /// A thin line for each seed.
    #[serde(default)]
    pub(super) each: bool,
    /// The x axis.
    #[serde(default)]
    pub(super) x_axis: AxisForm,
    /// The y axis.
    #[serde(default)]
    pub(super) y_axis: AxisForm,
    /// The series of a trace with blockages: pairs of start and end, drawn as shades.
    pub(super) shade: Option<String>,
    /// Series of a trace that are drawn as points.
    #[serde(default)]
    pub(super) points: Vec<String>,
    /// Series of a trace whose points are the two ends of a stroke, in turn.
    #[serde(default)]
    pub(super) strokes: Vec<String>,
    /// Words of a trace at the point that is nearest in time: an expression over the axes for the abscissa of each. What
    /// is unknown has no word.
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

/// A curve beside those of the axes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Also")]
pub(super) struct AlsoForm {
    /// Name of the curve.
    pub(super) name: String,
    /// An expression over the axes.
    pub(super) y: String,
}

/// An axis of a drawing.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Axis")]
pub(super) struct AxisForm {
    /// Label beside it.
    #[serde(default)]
    pub(super) label: String,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub(super) log: bool,
    /// Its smallest value. Default: chosen from what is drawn.
    pub(super) from: Option<f64>,
    /// Its largest value. Default: chosen from what is drawn.
    pub(super) to: Option<f64>,
    /// For a trace's y axis: whether it starts at the smallest value that is drawn instead of at zero.
    #[serde(default)]
    pub(super) fit: bool,
}

/// One name or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Names {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Names {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => core::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

/// Numbers beside the paper's.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Table")]
pub(super) struct TableForm {
    /// Its name, as in the paper.
    pub(super) id: String,
    /// The experiment whose values it shows.
    pub(super) from: String,
    /// The axes that tell its rows apart.
    #[serde(default)]
    pub(super) rows: Names,
    /// The coordinates on all other axes.
    #[serde(default)]
    #[schemars(with = "Coordinates")]
    pub(super) at: Table,
    /// The combinations that are shown: an expression over the axes.
    pub(super) only: Option<String>,
    /// What stands in the cells: a quantity or an expression over the axes; or several, by the name of their column.
    #[schemars(with = "super::schema::Columns")]
    pub(super) value: Value,
    /// Whether cells show medians over the seeds instead of means.
    #[serde(default)]
    pub(super) center: Center,
    /// Which cells a parameter was fitted to: an expression over the axes.
    pub(super) calibrated: Option<String>,
    /// Axes whose values stand side by side: how often they are in the paper's order is counted.
    #[serde(default)]
    pub(super) order: Names,
    /// The physical bound: an expression over the axes.
    pub(super) bound: Option<String>,
    /// What the paper prints: an expression over the axes, or a CSV file of the study with the axes as columns.
    pub(super) paper: Option<String>,
    /// Text of a cell whose value is infinite. Default: the cell is left out.
    pub(super) never: Option<String>,
    /// Its quartiles, from columns of such files.
    pub(super) paper_quartiles: Option<[String; 2]>,
}
