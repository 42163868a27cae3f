//! Errors: the command line's sentences.

use std::io;

use base::config;
use lab::report::destination::Refused;
use lab::study::StudyError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

create_exception!(
    longhaul,
    LonghaulError,
    PyException,
    "What can go wrong in Longhaul; the message says what is allowed.\n\n\
    >>> import longhaul as lh\n\
    >>> try:\n\
    ...     lh.Scenario.load(\"demo/download\").select(\"UDP\")\n\
    ... except lh.LonghaulError as error:\n\
    ...     print(str(error)[:15])\n\
    no scheme \"UDP\"\n"
);
create_exception!(
    longhaul,
    ConfigError,
    LonghaulError,
    "A scenario or a study says something that is not allowed: `file` and `line` (None for what stands nowhere) tell where.\n\n\
    >>> import longhaul as lh\n\
    >>> try:\n\
    ...     lh.Scenario.parse('name = \"a\"\\nduration = \"soon\"', \"mine.toml\")\n\
    ... except lh.ConfigError as error:\n\
    ...     error.file, error.line\n\
    ('mine.toml', 2)\n"
);

/// A scenario's or a study's mistake, with its place.
pub(crate) fn config(error: &config::ConfigError) -> PyErr {
    Python::attach(|py| {
        let raised = ConfigError::new_err(error.to_string());
        let value = raised.value(py);
        let placed = value.setattr("file", &error.file).and_then(|()| value.setattr("line", error.line));
        placed.err().unwrap_or(raised)
    })
}

/// A mistake that stands nowhere.
pub(crate) fn wrong(message: impl core::fmt::Display) -> PyErr {
    Python::attach(|py| {
        let raised = ConfigError::new_err(message.to_string());
        let value = raised.value(py);
        let placed = value.setattr("file", py.None()).and_then(|()| value.setattr("line", py.None()));
        placed.err().unwrap_or(raised)
    })
}

pub(crate) fn study(error: StudyError) -> PyErr {
    match error {
        StudyError::Config(error) => config(&error),
        StudyError::Io(error) => io(&error),
        other => wrong(other),
    }
}

/// Results that do not go where they should.
pub(crate) fn refused(error: Refused) -> PyErr {
    match error {
        Refused::Unwritable(error) => io(&error),
        taken @ Refused::Taken { .. } => LonghaulError::new_err(format!("out = {taken}")),
    }
}

pub(crate) fn io(error: &io::Error) -> PyErr {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::Interrupted, _) => PyKeyboardInterrupt::new_err(()),
        (_, Some(_)) => PyOSError::new_err(error.to_string()),
        // What a run complains of.
        _ => LonghaulError::new_err(error.to_string()),
    }
}
