//! Arguments and results that are arrays; and objects with such columns.

use std::convert::Infallible;
use std::ops::Deref;

use numpy::{
    Element, IntoPyArray, Ix1, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::check::{Wrong, indices, length};
use crate::instance::{Id, Instance, NONE};
use crate::table::Table;

/// An error of a value that came from Python.
pub fn wrong(what: impl Into<String>) -> PyErr {
    PyValueError::new_err(what.into())
}

impl From<Wrong> for PyErr {
    fn from(Wrong(what): Wrong) -> Self {
        wrong(what)
    }
}

/// Compute without the GIL.
pub fn detached<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(compute))
}

/// An array, checked: nobody changes it while the GIL is held.
fn readonly<'py, T: Element>(
    array: &Bound<'py, PyAny>,
    dimensions: usize,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| wrong_type::<T>(array))?;
    let fits = |stride: &isize| stride % size_of::<T>() as isize == 0;
    if !array.data().is_aligned() || !array.strides().iter().all(fits) {
        return Err(wrong("an array is not aligned"));
    }
    if array.ndim() != dimensions {
        return Err(wrong(format!("an array has {} dimensions, not {dimensions}", array.ndim())));
    }
    Ok(array.readonly())
}

fn wrong_type<T: Element>(found: &Bound<'_, PyAny>) -> PyErr {
    let wanted = numpy::dtype::<T>(found.py());
    let dtype = found.getattr("dtype").map(|dtype| dtype.to_string());
    let kind = found.get_type().to_string();
    PyTypeError::new_err(format!("{}, not an array of {wanted}", dtype.unwrap_or(kind)))
}

/// The elements of an array, in C order.
pub fn copied<T: Element + Copy>(array: &Bound<'_, PyAny>, dimensions: usize) -> PyResult<Vec<T>> {
    let array = readonly(array, dimensions)?;
    Ok(match array.as_slice() {
        Ok(slice) if array.is_c_contiguous() => slice.to_vec(), // slices can be in any order
        _ => match array.as_array().into_dimensionality::<Ix1>() {
            Ok(column) => column.iter().copied().collect(),
            Err(_) => array.as_array().iter().copied().collect(),
        },
    })
}

/// A column of an argument that is read while the GIL is held; copied only if it has gaps.
pub struct View<'py, T: Element> {
    array: PyReadonlyArrayDyn<'py, T>,
    copy: Option<Vec<T>>,
}

impl<'a, 'py, T: Element + Copy> FromPyObject<'a, 'py> for View<'py, T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array = readonly(&object, 1)?;
        let copy = array.as_slice().is_err().then(|| copied(&object, 1)).transpose()?;
        Ok(Self { array, copy })
    }
}

impl<T: Element> Deref for View<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.copy.as_deref().or(self.array.as_slice().ok()).unwrap_or_default()
    }
}

/// An element of columns and tables of the core, which has a form in arrays of numpy.
pub trait Cell: Copy {
    type Element: Element;

    /// Elements of an array of this form.
    fn from_numpy(array: &Bound<'_, PyAny>, dimensions: usize) -> PyResult<Vec<Self>>;
    /// Elements of this form.
    fn into_numpy(cells: Vec<Self>) -> Vec<Self::Element>;
}

/// Elements that have the same form in numpy.
macro_rules! same_in_numpy {
    ($($cell:ty),*) => {
        $(impl $crate::python::arrays::Cell for $cell {
            type Element = Self;

            fn from_numpy(array: &Bound<'_, PyAny>, dimensions: usize) -> PyResult<Vec<Self>> {
                $crate::python::arrays::copied(array, dimensions)
            }

            fn into_numpy(cells: Vec<Self>) -> Vec<Self> {
                cells
            }
        })*
    };
}

pub(super) use same_in_numpy;

same_in_numpy!(f64, f32, i64, i32, bool);

/// Indices and counts, of 32 bits; those of 64 bits are read as well.
impl Cell for Id {
    type Element = i32;

    fn from_numpy(array: &Bound<'_, PyAny>, dimensions: usize) -> PyResult<Vec<Self>> {
        let found: Vec<Id> = if array.cast::<PyArrayDyn<i64>>().is_ok() {
            copied::<i64>(array, dimensions)?.into_iter().map(id_or_none).collect()
        } else {
            copied::<i32>(array, dimensions)?.into_iter().map(i32::cast_unsigned).collect()
        };
        let is_negative = found.iter().fold(0, |bits, id| bits | id).cast_signed() < 0;
        if is_negative { Err(wrong("an index is negative")) } else { Ok(found) }
    }

    fn into_numpy(cells: Vec<Self>) -> Vec<i32> {
        cells.into_iter().map(u32::cast_signed).collect()
    }
}

/// An index, `NONE` if it is negative.
#[inline]
pub fn id_or_none<T>(index: T) -> Id
where
    Id: TryFrom<T>,
{
    Id::try_from(index).unwrap_or(NONE)
}

/// A column of an argument, copied, or of a result.
pub struct Column<T>(pub Vec<T>);

impl<'a, 'py, T: Cell> FromPyObject<'a, 'py> for Column<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        T::from_numpy(&object, 1).map(Self)
    }
}

impl<'py, T: Cell> IntoPyObject<'py> for Column<T> {
    type Target = PyArray1<T::Element>;
    type Output = Bound<'py, Self::Target>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(T::into_numpy(self.0).into_pyarray(py))
    }
}

impl<'a, 'py, T: Cell> FromPyObject<'a, 'py> for Table<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let cells = T::from_numpy(&object, 2)?;
        let array = object.cast::<PyUntypedArray>()?;
        Ok(Self::new(cells, array.shape()[0], array.shape()[1]))
    }
}

impl<'py, T: Cell> IntoPyObject<'py> for Table<T> {
    type Target = PyArray2<T::Element>;
    type Output = Bound<'py, Self::Target>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let shape = [self.rows(), self.columns()];
        T::into_numpy(self.into_cells()).into_pyarray(py).reshape(shape)
    }
}

/// Devices, or -1 where there is none.
pub fn devices_or_none(devices: &[Option<Id>]) -> Column<i32> {
    Column(devices.iter().map(|device| device.map_or(-1, |device| device as i32)).collect())
}

impl<T> Column<T> {
    /// A column of `n` elements.
    pub fn of(self, name: &str, n: usize) -> PyResult<Vec<T>> {
        length(name, &self.0, n)?;
        Ok(self.0)
    }
}

impl Column<Id> {
    /// Indices below `end`.
    pub fn below(self, name: &str, end: usize) -> PyResult<Vec<Id>> {
        indices(name, &self.0, end)?;
        Ok(self.0)
    }
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

    /// `n` indices below `end`, or `NONE`.
    pub fn indices_or_none(self, name: &str, n: usize, end: usize) -> PyResult<Vec<Id>> {
        let indices: Vec<Id> = self.of(name, n)?.into_iter().map(id_or_none).collect();
        match indices.iter().find(|&&index| index != NONE && index as usize >= end) {
            Some(index) => Err(wrong(format!("{name}: {index} is not below {end}"))),
            None => Ok(indices),
        }
    }
}

impl Table<i32> {
    /// Placements of the operators of a problem.
    pub fn placements(self, instance: &Instance) -> PyResult<Table<Id>> {
        self.devices(instance.n_operators(), instance.n_devices())
    }

    /// Rows with a device, below `d`, of each of `n` operators.
    pub fn devices(self, n: usize, d: usize) -> PyResult<Table<Id>> {
        let (rows, columns) = (self.rows(), self.columns());
        if columns != n {
            return Err(wrong(format!("{columns} operators are placed, not {n}")));
        }
        Ok(Table::new(on_devices(self.into_cells(), d)?, rows, columns))
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

/// An attribute of an object of Python.
pub trait Attribute: Sized {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl<T: Cell> Attribute for Vec<T> {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        T::from_numpy(found, 1)
    }
}

/// Attributes that are what arguments are.
macro_rules! attributes {
    ($($kind:ty),*) => {
        $(impl $crate::python::arrays::Attribute for $kind {
            fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
                found.extract().map_err(PyErr::from)
            }
        })*
    };
}

attributes!(f64, i64, bool, Table<f64>, Table<f32>, Table<bool>);

impl Attribute for usize {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        found.extract().map_err(|_| wrong("not a whole number of at least 0"))
    }
}

/// The attribute of this name.
pub fn attribute<T: Attribute>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<T> {
    let found = object.getattr(name)?;
    T::read(&found).map_err(|error| {
        let text = format!("{name}: {}", error.value(object.py()));
        PyErr::from_type(error.get_type(object.py()), text)
    })
}

/// A structure with the attributes of these names of an object of Python, and other fields.
macro_rules! attributes_of {
    ($object:expr, $($kind:ident)::+: $($field:ident)* $(; $($others:tt)*)?) => {
        $($kind)::+ {
            $($field: $crate::python::arrays::attribute($object, stringify!($field))?,)*
            $($($others)*)?
        }
    };
}

/// Put columns of a structure, or other values, into a dictionary of Python.
macro_rules! put {
    ($found:expr, $of:expr; $($key:ident)*) => {
        $($found.set_item(stringify!($key), $crate::python::arrays::Column($of.$key))?;)*
    };
    ($found:expr, $($key:ident: $value:expr),* $(,)?) => {
        $($found.set_item(stringify!($key), $value)?;)*
    };
}

/// The function `add`, which adds classes, and then functions, to the module.
macro_rules! exports {
    ($($class:ident)*; $($function:ident)*) => {
        /// Add what this file defines to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            $(module.add_function(wrap_pyfunction!($function, module)?)?;)*
            Ok(())
        }
    };
}

pub(super) use {attributes, attributes_of, exports, put};
