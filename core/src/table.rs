//! Tables with rows of equal length.

use std::ops::{Index, IndexMut};

/// Rows of equal length, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table<T = f64> {
    cells: Vec<T>,
    rows: usize,
    columns: usize,
}

impl<T: Copy> Table<T> {
    /// A table of `rows` from its cells, row by row.
    ///
    /// # Panics
    /// If the number of cells is not `rows · columns`.
    #[must_use]
    pub fn new(cells: Vec<T>, rows: usize, columns: usize) -> Self {
        assert_eq!(cells.len(), rows * columns, "cells of a table");
        Self { cells, rows, columns }
    }

    /// A table with the same value everywhere.
    #[must_use]
    pub fn filled(value: T, rows: usize, columns: usize) -> Self {
        Self { cells: vec![value; rows * columns], rows, columns }
    }

    /// The same cells, with rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let columns = (0..self.columns).flat_map(|b| (0..self.rows).map(move |a| (a, b)));
        Self::new(columns.map(|at| self[at]).collect(), self.columns, self.rows)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All cells, row by row.
    #[must_use]
    pub fn cells(&self) -> &[T] {
        &self.cells
    }

    /// All cells, row by row.
    pub fn cells_mut(&mut self) -> &mut [T] {
        &mut self.cells
    }

    /// The cells themselves.
    #[must_use]
    pub fn into_cells(self) -> Vec<T> {
        self.cells
    }

    /// One row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> &[T] {
        &self.cells[row * self.columns..][..self.columns]
    }

    /// One row, to be changed.
    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.cells[row * self.columns..][..self.columns]
    }
}

impl<T> AsRef<[T]> for Table<T> {
    fn as_ref(&self) -> &[T] {
        &self.cells
    }
}

impl<T> Index<(usize, usize)> for Table<T> {
    type Output = T;

    #[inline]
    fn index(&self, (row, column): (usize, usize)) -> &T {
        debug_assert!(column < self.columns);
        &self.cells[row * self.columns + column]
    }
}

impl<T> IndexMut<(usize, usize)> for Table<T> {
    #[inline]
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut T {
        debug_assert!(column < self.columns);
        &mut self.cells[row * self.columns + column]
    }
}
