//! Python's values as TOML's.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::{Table, Value};

/// A value of TOML.
pub(crate) fn toml(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    // A truth is a whole number too.
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        return Ok(Value::Table(self::table(table)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return value.try_iter()?.map(|item| toml(&item?)).collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    // NumPy's numbers.
    if let Ok(item) = value.call_method0("item")
        && !item.get_type().is(value.get_type())
    {
        return toml(&item);
    }
    let kind = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "{kind} is nothing that a scenario can say; allowed are str, int, float, bool, list and dict"
    )))
}

/// A table of TOML.
pub(crate) fn table(table: &Bound<'_, PyDict>) -> PyResult<Table> {
    table.iter().map(|(key, value)| Ok((key.extract::<String>()?, toml(&value)?))).collect()
}
