//! Arguments that are arrays, copied; and placements, checked.

use std::fmt::Display;

use numpy::npyffi::flags::NPY_ARRAY_ALIGNED;
use numpy::{Element, IntoPyArray, PyArray2, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::instance::{Id, Instance};
use crate::table::Table;

/// An error of a value that came from Python.
pub fn wrong(what: impl Into<String>) -> PyErr {
    PyValueError::new_err(what.into())
}

/// The shape and the elements of an array, in C order.
pub fn elements<T: Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<T>)> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| wrong_type::<T>(array))?;
    let is_aligned = unsafe { (*array.as_array_ptr()).flags } & NPY_ARRAY_ALIGNED != 0;
    if !is_aligned {
        return Err(wrong("an array is not aligned"));
    }
    let borrowed = array.readonly();
    let values = match borrowed.as_slice() {
        Ok(slice) => slice.to_vec(),
        Err(_) => borrowed.as_array().iter().copied().collect(),
    };
    Ok((array.shape().to_vec(), values))
}

fn wrong_type<T: Element>(found: &Bound<'_, PyAny>) -> PyErr {
    let wanted = numpy::dtype::<T>(found.py());
    let dtype = found.getattr("dtype").map(|dtype| dtype.to_string());
    let kind = found.get_type().to_string();
    PyTypeError::new_err(format!("{}, not an array of {wanted}", dtype.unwrap_or(kind)))
}

/// A column of an argument.
pub struct Column<T>(pub Vec<T>);

impl<'a, 'py, T: Element + Copy> FromPyObject<'a, 'py> for Column<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (shape, values) = elements::<T>(&object)?;
        if shape.len() != 1 {
            return Err(wrong(format!("an array has {} dimensions, not 1", shape.len())));
        }
        Ok(Self(values))
    }
}

/// A table of an argument.
pub struct Rows<T>(pub Table<T>);

impl<'a, 'py, T: Element + Copy> FromPyObject<'a, 'py> for Rows<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (shape, values) = elements::<T>(&object)?;
        match shape[..] {
            [rows, columns] => Ok(Self(Table::new(values, rows, columns))),
            _ => Err(wrong(format!("an array has {} dimensions, not 2", shape.len()))),
        }
    }
}

/// Indices that are not negative.
pub fn ids<T: Copy + TryInto<Id> + Display>(values: Vec<T>) -> PyResult<Vec<Id>> {
    let each = values.into_iter();
    each.map(|index| index.try_into().map_err(|_| wrong(format!("{index} is no index")))).collect()
}

/// A table as an array of numpy.
pub fn table_of<T: Element + Copy>(
    py: Python<'_>,
    table: Table<T>,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let shape = [table.rows(), table.columns()];
    table.into_cells().into_pyarray(py).reshape(shape)
}

impl Column<i32> {
    /// A placement of the operators of a problem.
    pub fn placement(self, instance: &Instance) -> PyResult<Vec<Id>> {
        if self.0.len() != instance.n_operators() {
            let (found, wanted) = (self.0.len(), instance.n_operators());
            return Err(wrong(format!("{found} operators are placed, not {wanted}")));
        }
        on_devices(self.0, instance)
    }
}

impl Rows<i32> {
    /// Placements of the operators of a problem.
    pub fn placements(self, instance: &Instance) -> PyResult<Table<Id>> {
        let (rows, columns) = (self.0.rows(), self.0.columns());
        if columns != instance.n_operators() {
            let wanted = instance.n_operators();
            return Err(wrong(format!("{columns} operators are placed, not {wanted}")));
        }
        Ok(Table::new(on_devices(self.0.into_cells(), instance)?, rows, columns))
    }
}

fn on_devices(values: Vec<i32>, instance: &Instance) -> PyResult<Vec<Id>> {
    let d = instance.n_devices();
    match values.iter().find(|&&device| device < 0 || device as usize >= d) {
        Some(device) => Err(wrong(format!("there is no device {device}; there are {d}"))),
        None => ids(values),
    }
}
