//! Checks of columns and tables; an error says which is wrong, and why.

use crate::instance::Id;
use crate::pilot::layers::Matrix;
use crate::table::Table;

/// What is wrong with a value from outside.
#[derive(Debug)]
pub struct Wrong(pub String);

impl<T: Into<String>> From<T> for Wrong {
    fn from(what: T) -> Self {
        Self(what.into())
    }
}

/// Check columns of a structure by name; further arguments are those of the check.
macro_rules! each {
    ($check:ident, $of:expr; $($column:ident)*) => {
        $($crate::check::$check(stringify!($column), &$of.$column)?;)*
    };
    ($check:ident, $of:expr, $a:expr; $($column:ident)*) => {
        $($crate::check::$check(stringify!($column), &$of.$column, $a)?;)*
    };
    ($check:ident, $of:expr, $a:expr, $b:expr; $($column:ident)*) => {
        $($crate::check::$check(stringify!($column), &$of.$column, $a, $b)?;)*
    };
}

pub(crate) use each;

pub fn length<T>(name: &str, column: &[T], wanted: usize) -> Result<(), Wrong> {
    if column.len() == wanted {
        return Ok(());
    }
    Err(format!("{name} has {} elements, not {wanted}", column.len()).into())
}

pub fn shape<T: Copy>(
    name: &str,
    table: &Table<T>,
    rows: usize,
    columns: usize,
) -> Result<(), Wrong> {
    size(name, (table.rows(), table.columns()), (rows, columns))
}

pub fn matrix(name: &str, matrix: &Matrix, rows: usize, columns: usize) -> Result<(), Wrong> {
    size(name, (matrix.rows(), matrix.columns()), (rows, columns))
}

fn size(name: &str, found: (usize, usize), wanted: (usize, usize)) -> Result<(), Wrong> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{name} is {} × {}, not {} × {}", found.0, found.1, wanted.0, wanted.1).into())
}

/// Whether all indices are below an end.
pub fn indices(name: &str, column: &[Id], end: usize) -> Result<(), Wrong> {
    if column.iter().fold(true, |fine, &index| fine & ((index as usize) < end)) {
        return Ok(()); // by vector instructions
    }
    match column.iter().find(|&&index| index as usize >= end) {
        Some(index) => Err(format!("{name}: {index} is not below {end}").into()),
        None => Ok(()),
    }
}

/// Whether a column rises from 0 to an end at most.
pub fn rising(name: &str, column: &[Id], end: usize) -> Result<(), Wrong> {
    let last = column.last().is_none_or(|&last| last as usize <= end);
    if last && column.first() == Some(&0) && column.is_sorted() {
        return Ok(());
    }
    Err(format!("{name} does not rise from 0 to {end} at most").into())
}

/// Whether a column names every index below its length once.
pub fn permutation(name: &str, column: &[Id]) -> Result<(), Wrong> {
    let mut is_found = vec![false; column.len()];
    indices(name, column, column.len())?;
    match column.iter().find(|&&index| std::mem::replace(&mut is_found[index as usize], true)) {
        Some(index) => Err(format!("{name} names {index} twice").into()),
        None => Ok(()),
    }
}

/// Whether no number is negative or NaN.
pub fn not_negative(name: &str, numbers: impl AsRef<[f64]>) -> Result<(), Wrong> {
    let numbers = numbers.as_ref();
    if numbers.iter().fold(true, |fine, &value| fine & (value >= 0.0)) {
        return Ok(()); // by vector instructions
    }
    match numbers.iter().find(|&&value| value.is_nan() || value < 0.0) {
        Some(value) => Err(format!("{name}: {value} is not a number of at least 0").into()),
        None => Ok(()),
    }
}
