//! `longhaul._native`: what the Python package has of the lab. The package's own modules, beside this crate's manifest, are what
//! people see; here is as little as they need.

#![forbid(unsafe_code)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::doc_markdown,
    reason = "what Python hands over is the callee's, there are as many questions as there are, and docstrings are Python's"
)]

mod channel_capacity;
mod controller;
mod environment;
mod errors;
mod runs;
mod study;
mod suite;
mod table;
mod values;
mod work;

use pyo3::pymodule;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::channel_capacity::{of_bit_errors, of_blockage, of_erasure, of_gilbert};
    #[pymodule_export]
    use super::controller::{AckSample, Congestion, Start, register};
    #[pymodule_export]
    use super::environment::Environment;
    #[pymodule_export]
    use super::errors::{ConfigError, LonghaulError};
    #[pymodule_export]
    use super::runs::Runs;
    #[pymodule_export]
    use super::study::{Outcome, Study};
    #[pymodule_export]
    use super::suite::Suite;
    #[pymodule_export]
    use super::table::Table;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module
            .add("SERIES", lab::observe::series::SERIES.iter().map(|series| series.name).collect::<Vec<_>>())
    }
}
