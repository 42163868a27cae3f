//! Closed forms of what channels can carry.

use base::Duration;
use channel::capacity::{self, Gilbert};
use pyo3::prelude::*;

use crate::errors;

#[pyfunction]
pub(crate) fn of_bit_errors(ber: f64) -> f64 {
    capacity::of_bit_errors(ber)
}

#[pyfunction]
pub(crate) fn of_erasure(probability: f64) -> f64 {
    capacity::of_erasure(probability)
}

#[pyfunction]
pub(crate) fn of_blockage(open: f64, blocked_ber: f64, open_ber: f64) -> f64 {
    capacity::of_blockage(open, blocked_ber, open_ber)
}

#[pyfunction]
pub(crate) fn of_gilbert(blocked: f64, blockage_s: f64, rate_bps: u64, correct: f64) -> PyResult<f64> {
    let blockage = Duration::from_secs_f64(blockage_s.max(0.0));
    let channel = Gilbert::of_blocked_time(blocked, blockage, rate_bps, correct).map_err(errors::wrong)?;
    Ok(channel.capacity().value)
}
