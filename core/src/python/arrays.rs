//! Arguments that are arrays, copied or borrowed; and placements, checked.

use std::ops::Deref;

use numpy::{
    Element, IntoPyArray, Ix1, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::instance::{Id, Instance, NONE, length};
use crate::table::Table;

/// A column of a result.
pub type Array1<'py, T> = Bound<'py, PyArray1<T>>;
/// A table of a result.
pub type Array2<'py, T> = Bound<'py, PyArray2<T>>;

/// An error of a value that came from Python.
pub fn wrong(what: impl Into<String>) -> PyErr {
    PyValueError::new_err(what.into())
}

/// An array, checked: nobody changes it while the GIL is held.
fn readonly<'py, T: Element>(
    array: &Bound<'py, PyAny>,
    dimensions: Option<usize>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| wrong_type::<T>(array))?;
    let fits = |stride: &isize| stride % size_of::<T>() as isize == 0;
    if !array.data().is_aligned() || !array.strides().iter().all(fits) {
        return Err(wrong("an array is not aligned"));
    }
    match dimensions {
        Some(wanted) if array.ndim() != wanted => {
            Err(wrong(format!("an array has {} dimensions, not {wanted}", array.ndim())))
        }
        _ => Ok(array.readonly()),
    }
}

/// The elements of an array, in C order.
fn copied<T: Element + Copy>(array: &PyReadonlyArrayDyn<'_, T>) -> Vec<T> {
    match array.as_slice() {
        Ok(slice) if array.is_c_contiguous() => slice.to_vec(), // slices can be in any order
        _ => match array.as_array().into_dimensionality::<Ix1>() {
            Ok(column) => column.iter().copied().collect(),
            Err(_) => array.as_array().iter().copied().collect(),
        },
    }
}

/// The shape and the elements of an array, in C order.
pub fn elements<T: Element + Copy>(array: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<T>)> {
    let array = readonly(array, None)?;
    Ok((array.shape().to_vec(), copied(&array)))
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
        Ok(Self(copied(&readonly(&object, Some(1))?)))
    }
}

/// A column of an argument that is read while the GIL is held; copied only if it has gaps.
pub struct View<'py, T: Element> {
    array: PyReadonlyArrayDyn<'py, T>,
    copy: Option<Vec<T>>,
}

impl<'a, 'py, T: Element + Copy> FromPyObject<'a, 'py> for View<'py, T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array = readonly(&object, Some(1))?;
        let copy = array.as_slice().is_err().then(|| copied(&array));
        Ok(Self { array, copy })
    }
}

impl<T: Element> Deref for View<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.copy.as_deref().or(self.array.as_slice().ok()).unwrap_or_default()
    }
}

/// A table of an argument.
pub struct Rows<T>(pub Table<T>);

impl<'a, 'py, T: Element + Copy> FromPyObject<'a, 'py> for Rows<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array = readonly(&object, Some(2))?;
        Ok(Self(Table::new(copied(&array), array.shape()[0], array.shape()[1])))
    }
}

/// Indices that are not negative.
pub fn ids<T>(values: Vec<T>) -> PyResult<Vec<Id>>
where
    Id: TryFrom<T>,
{
    let found: Vec<Id> = values.into_iter().map(id_or_none).collect();
    if found.contains(&NONE) { Err(wrong("an index is negative")) } else { Ok(found) }
}

/// Indices, of which negative ones are `NONE`.
pub fn ids_or_none<T>(values: Vec<T>) -> Vec<Id>
where
    Id: TryFrom<T>,
{
    values.into_iter().map(id_or_none).collect()
}

/// An index, `NONE` if it is negative.
#[inline]
pub fn id_or_none<T>(index: T) -> Id
where
    Id: TryFrom<T>,
{
    Id::try_from(index).unwrap_or(NONE)
}

/// Indices or counts as an array of numpy.
pub fn to_ints<'py>(py: Python<'py>, ids: &[Id]) -> Array1<'py, i32> {
    PyArray1::from_iter(py, ids.iter().map(|&id| id as i32))
}

/// Indices in 64 bits.
pub fn to_longs<'py>(py: Python<'py>, ids: &[Id]) -> Array1<'py, i64> {
    PyArray1::from_iter(py, ids.iter().map(|&id| i64::from(id)))
}

/// Indices, -1 where there is none.
pub fn to_ints_or_none<'py>(py: Python<'py>, ids: &[Option<Id>]) -> Array1<'py, i32> {
    PyArray1::from_iter(py, ids.iter().map(|id| id.map_or(-1, |id| id as i32)))
}

/// A table as an array of numpy.
pub fn table_of<T: Element + Copy>(py: Python<'_>, table: Table<T>) -> PyResult<Array2<'_, T>> {
    let shape = [table.rows(), table.columns()];
    table.into_cells().into_pyarray(py).reshape(shape)
}

/// A table of indices or counts as an array of numpy.
pub fn int_table_of<'py>(py: Python<'py>, table: &Table<Id>) -> PyResult<Array2<'py, i32>> {
    to_ints(py, table.cells()).reshape([table.rows(), table.columns()])
}

impl Column<i32> {
    /// A placement of the operators of a problem.
    pub fn placement(self, instance: &Instance) -> PyResult<Vec<Id>> {
        self.devices(instance.n_operators(), instance.n_devices())
    }

    /// A device, below `d`, of each of `n` operators.
    pub fn devices(self, n: usize, d: usize) -> PyResult<Vec<Id>> {
        if self.0.len() != n {
            return Err(wrong(format!("{} operators are placed, not {n}", self.0.len())));
        }
        on_devices(self.0, d)
    }
}

impl Rows<i32> {
    /// Placements of the operators of a problem.
    pub fn placements(self, instance: &Instance) -> PyResult<Table<Id>> {
        self.devices(instance.n_operators(), instance.n_devices())
    }

    /// Rows with a device, below `d`, of each of `n` operators.
    pub fn devices(self, n: usize, d: usize) -> PyResult<Table<Id>> {
        let (rows, columns) = (self.0.rows(), self.0.columns());
        if columns != n {
            return Err(wrong(format!("{columns} operators are placed, not {n}")));
        }
        Ok(Table::new(on_devices(self.0.into_cells(), d)?, rows, columns))
    }
}

impl<T> Column<T> {
    /// A column of `n` elements.
    pub fn of(self, name: &str, n: usize) -> PyResult<Vec<T>> {
        length(name, self.0.len(), n).map_err(wrong)?;
        Ok(self.0)
    }
}

fn on_devices(values: Vec<i32>, d: usize) -> PyResult<Vec<Id>> {
    let ids: Vec<Id> = values.into_iter().map(i32::cast_unsigned).collect();
    let largest = ids.iter().fold(0, |largest, &device| largest.max(device));
    if largest as usize >= d && !ids.is_empty() {
        let device = largest.cast_signed(); // negative numbers are the largest
        return Err(wrong(format!("there is no device {device}; there are {d}")));
    }
    Ok(ids)
}
