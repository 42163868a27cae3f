//! Tables, handed on by the Arrow PyCapsule interface: other libraries take the memory as it is.

use core::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, NullArray, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema};
use lab::table::{self, Column, Values};
use pyo3::exceptions::{PyImportError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::errors::LonghaulError;

/// A table of results: columns have names with units, and gaps where nothing is known.
///
/// It is handed on by the Arrow PyCapsule interface, numbers without a copy, which polars
/// (`polars.DataFrame`), pyarrow (`pyarrow.table`), DuckDB and others understand.
///
/// >>> import longhaul as lh
/// >>> table = lh.Scenario.load("demo/download").set("duration", "10 s").run(seeds=2).table
/// >>> len(table), table.column_names[:3]
/// (10, ['scheme', 'seed', 'flow'])
/// >>> table.to_pandas().groupby("scheme")["run_goodput_bps"].mean().size
/// 5
#[pyclass(frozen, module = "longhaul")]
#[derive(Debug)]
pub(crate) struct Table(RecordBatch);

const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

fn broken(error: &ArrowError) -> PyErr {
    LonghaulError::new_err(error.to_string())
}

fn array(values: Values, rows: usize) -> ArrayRef {
    let gaps = |present: Vec<bool>| {
        let gaps = NullBuffer::from(present);
        Some(gaps).filter(|gaps| gaps.null_count() > 0)
    };
    match values {
        Values::Nothing => Arc::new(NullArray::new(rows)),
        Values::Numbers(values, present) => Arc::new(Float64Array::new(values.into(), gaps(present))),
        Values::Whole(values, present) => Arc::new(UInt64Array::new(values.into(), gaps(present))),
        Values::Truths(values, present) => Arc::new(BooleanArray::new(values.into(), gaps(present))),
        Values::Texts(texts) => Arc::new(texts.iter().collect::<StringArray>()),
    }
}

impl Table {
    pub(crate) fn new(table: table::Table) -> PyResult<Self> {
        let rows = table.rows();
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for Column { name, values } in table.into_columns() {
            let array = array(values, rows);
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        batch.map(Self).map_err(|error| broken(&error))
    }
}

#[pymethods]
impl Table {
    /// The names of the columns, with their units.
    ///
    /// >>> import longhaul as lh
    /// >>> runs = lh.Scenario.load("demo/download").set("duration", "5 s").run(seeds=1)
    /// >>> "run_goodput_bps" in runs.table.column_names
    /// True
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!("no column \"{name}\"; there are {}", self.column_names().join(", ")))
        })?;
        list(py, column)
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<longhaul.Table: {} rows of {}>", self.0.num_rows(), self.column_names().join(", "))
    }

    /// The columns as lists of Python, by name; `None` where nothing is known.
    ///
    /// >>> import longhaul as lh
    /// >>> runs = lh.Scenario.load("demo/download").select("TCP").set("duration", "5 s").run(seeds=2)
    /// >>> runs.table.to_pydict()["scheme"]
    /// ['TCP', 'TCP']
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.column_names().into_iter().zip(self.0.columns()) {
            dict.set_item(name, list(py, column)?)?;
        }
        Ok(dict)
    }

    /// A pandas DataFrame, by way of pyarrow.
    ///
    /// >>> import longhaul as lh
    /// >>> runs = lh.Scenario.load("demo/download").set("duration", "5 s").run(seeds=2)
    /// >>> runs.table.to_pandas()["seed"].nunique()
    /// 2
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))?.call_method0("to_pandas")
    }

    /// What a notebook shows: the first and last rows, by way of pandas.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match Self::to_pandas(slf) {
            Err(error) if error.is_instance_of::<PyImportError>(slf.py()) => Ok(None),
            frame => frame?.call_method0("_repr_html_").map(Some),
        }
    }

    /// Pickled as an Arrow stream, so that it travels between processes.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let batch = &slf.get().0;
        let write = || {
            let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(batch)?;
            writer.into_inner()
        };
        let stream = write().map_err(|error| broken(&error))?;
        Ok((slf.get_type().getattr("of_ipc")?, (PyBytes::new(slf.py(), &stream),)))
    }

    /// A table of an Arrow stream, as pickling makes it.
    ///
    /// >>> import longhaul as lh, pickle
    /// >>> table = lh.Scenario.load("demo/download").set("duration", "5 s").run(seeds=1).table
    /// >>> make, (stream,) = table.__reduce__()
    /// >>> len(lh.Table.of_ipc(stream)) == len(table)
    /// True
    #[staticmethod]
    fn of_ipc(stream: &[u8]) -> PyResult<Self> {
        let batch = StreamReader::try_new(stream, None).and_then(|mut batches| batches.next().transpose());
        let batch = batch.map_err(|error| broken(&error))?;
        batch.map(Self).ok_or_else(|| LonghaulError::new_err("the stream has no table"))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(|error| broken(&error))?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish, which producers may leave aside.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }
}

fn list<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let any = column.as_any();
    if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        PyList::new(py, numbers)
    } else if let Some(numbers) = any.downcast_ref::<UInt64Array>() {
        PyList::new(py, numbers)
    } else if let Some(truths) = any.downcast_ref::<BooleanArray>() {
        PyList::new(py, truths.iter().collect::<Vec<_>>())
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        PyList::new(py, texts.iter().collect::<Vec<_>>())
    } else {
        PyList::new(py, vec![None::<f64>; column.len()])
    }
}
