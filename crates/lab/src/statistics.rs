//! Summaries of replicated measurements, and what may be concluded from them.
//!
//! Logarithms and powers come from `libm` and every random choice from a named stream, so a verdict is the same on
//! any machine. Schemes of one scenario meet the same realisations: [`Resamples`] compares them pair by pair, which takes the
//! channel's luck out of the difference.

mod curve;
mod interval;
mod least_squares;
mod rank;
mod resamples;
mod spread;
mod student;
mod two_way;

pub use curve::{argmax, crossing, interpolate, running_mean, smoothed_argmax};
pub use interval::{Interval, mean, standard_deviation};
pub use least_squares::LinearFit;
pub use rank::spearman;
pub use resamples::{RESAMPLES, Resamples};
pub use spread::{Spread, quantile};
pub use student::{normal_quantile, t_quantile};
pub use two_way::TwoWay;
