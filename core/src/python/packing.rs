//! `packing` for Python.

use pyo3::prelude::*;

use super::arrays::{
    Array1, Array2, Column, Rows, ids, int_table_of, table_of, to_ints, to_ints_or_none, wrong,
};
use super::instance::Columns;
use super::remaining::Remaining;
use crate::instance::{Id, indices, length, permutation};
use crate::packing::contents::{N_RESOURCES, Needs, Packing};
use crate::packing::memory::{self, Packed, Units};
use crate::packing::{annealing, first_fit};
use crate::random::Xorshift;
use crate::rivals::Rivals;
use crate::table::Table;
use crate::watch::Watch;

/// Packing of an object that has the columns of `streamplace.planning.packing.Packing`.
impl<'a, 'py> FromPyObject<'a, 'py> for Packing {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let of = Columns(&object);
        let needs = Needs {
            instructions: of.column("instructions")?,
            cores: of.column("cores")?,
            at_max_rate: of.column("at_max_rate")?,
            memory: of.column("memory")?,
            source: of.ids("source")?,
            target: of.ids("target")?,
            tuples: of.column("tuples")?,
            bits: of.column("bits")?,
            forward: of.column("forward")?,
            bundle: of.ids("bundle")?,
            slot_group: of.ids("slot_group")?,
            parallelism: of.ids("parallelism")?,
            most: of.table("most")?,
            least: of.table("least")?,
            stored: of.table("stored")?,
            capacity: of.table("capacity")?,
            per_tuple: of.column("per_tuple")?,
            per_bit: of.column("per_bit")?,
            allowed: of.table("allowed")?,
            network: object.getattr("network")?.extract()?,
        };
        needs.check().map_err(wrong)?;
        Ok(Self::new(needs))
    }
}

impl Packing {
    fn kinds(&self, kinds: Column<i32>) -> PyResult<Vec<Id>> {
        let kinds = ids(kinds.0)?;
        indices("kinds", &kinds, self.needs.capacity.rows()).map_err(wrong)?;
        Ok(kinds)
    }

    /// Contents of machines; of an operator, no more subtasks than its shares tell about.
    fn rows(&self, rows: Rows<i32>, machines: usize) -> PyResult<Table<u32>> {
        let (found, n) = ((rows.0.rows(), rows.0.columns()), self.n_operators());
        if found != (machines, n) {
            return Err(wrong(format!("contents are {} × {}", found.0, found.1)));
        }
        let rows = Table::new(ids(rows.0.into_cells())?, machines, n);
        if rows.cells().iter().any(|&subtasks| subtasks as usize > self.most_subtasks()) {
            return Err(wrong("a machine has too many subtasks"));
        }
        Ok(rows)
    }

    /// Check that a machine may get all subtasks of these.
    fn check_together(&self, rows: &Table<u32>, left: &[u32]) -> PyResult<()> {
        let mut sums: Vec<u64> = left.iter().map(|&left| left.into()).collect();
        for m in 0..rows.rows() {
            sums.iter_mut()
                .zip(rows.row(m))
                .for_each(|(sum, &subtasks)| *sum += u64::from(subtasks));
        }
        if sums.iter().any(|&sum| sum > self.most_subtasks() as u64) {
            return Err(wrong("there are too many subtasks of an operator"));
        }
        Ok(())
    }
}

/// Use of every resource of every machine, as shares of capacity, [D, 6].
#[pyfunction]
fn machine_uses<'py>(
    py: Python<'py>,
    packing: Packing,
    kinds: Column<i32>,
    rows: Rows<i32>,
) -> PyResult<Array2<'py, f64>> {
    let kinds = packing.kinds(kinds)?;
    let rows = packing.rows(rows, kinds.len())?;
    let shares = py.detach(|| {
        let each = kinds.iter().enumerate();
        each.flat_map(|(m, &kind)| packing.shares(kind as usize, rows.row(m))).collect::<Vec<_>>()
    });
    table_of(py, Table::new(shares, kinds.len(), N_RESOURCES))
}

/// Fill machines of these types in turn: contents [D, N] and unplaced subtasks [N], or None.
#[pyfunction]
fn first_fit_machines<'py>(
    py: Python<'py>,
    packing: Packing,
    kinds: Column<i32>,
    remaining: Remaining,
) -> PyResult<Option<(Array2<'py, i32>, Array1<'py, i32>)>> {
    let kinds = packing.kinds(kinds)?;
    let fill = |watch: &mut Watch| first_fit::first_fit(&packing, &kinds, watch);
    let found = remaining.watched(py, fill)?;
    let Some((rows, left)) = found else { return Ok(None) };
    Ok(Some((int_table_of(py, &rows)?, to_ints(py, &left))))
}

/// Place the remaining subtasks where they exceed resources least.
#[pyfunction]
fn force_subtasks<'py>(
    py: Python<'py>,
    packing: Packing,
    kinds: Column<i32>,
    rows: Rows<i32>,
    left: Column<i32>,
    remaining: Remaining,
) -> PyResult<(Array2<'py, i32>, Array1<'py, i32>)> {
    let kinds = packing.kinds(kinds)?;
    let mut rows = packing.rows(rows, kinds.len())?;
    let mut left = ids(left.0)?;
    if left.len() != packing.n_operators() || kinds.is_empty() {
        return Err(wrong("subtasks or machines are missing"));
    }
    packing.check_together(&rows, &left)?;
    remaining.watched(py, |watch| {
        first_fit::force(&packing, &kinds, &mut rows, &mut left, watch);
    })?;
    Ok((int_table_of(py, &rows)?, to_ints(py, &left)))
}

/// Contents in proportion to the speed of machines, even if resources are exceeded, [D, N].
#[pyfunction]
fn deal_subtasks<'py>(
    py: Python<'py>,
    packing: Packing,
    kinds: Column<i32>,
) -> PyResult<Array2<'py, i32>> {
    let kinds = packing.kinds(kinds)?;
    int_table_of(py, &first_fit::deal(&packing, &kinds))
}

/// Contents [D, N] with the least excess found in so many steps, and their excess.
#[pyfunction]
fn anneal_machines<'py>(
    py: Python<'py>,
    packing: Packing,
    kinds: Column<i32>,
    rows: Rows<i32>,
    seed: u64,
    steps: usize,
    remaining: Remaining,
) -> PyResult<(Array2<'py, i32>, f64)> {
    let kinds = packing.kinds(kinds)?;
    let rows = packing.rows(rows, kinds.len())?;
    packing.check_together(&rows, &vec![0; packing.n_operators()])?;
    let mut random = Xorshift::new(seed);
    let (rows, excess) = remaining.watched(py, |watch| {
        annealing::anneal(&packing, &kinds, rows, &mut random, steps, watch)
    })?;
    Ok((int_table_of(py, &rows)?, excess))
}

/// Device of every unit [U]; None if there is no packing. Units are at -1 if the steps were used up.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn pack_units<'py>(
    py: Python<'py>,
    allowed: Rows<bool>,
    start: Column<i64>,
    rivals: Column<i64>,
    memory: Column<f64>,
    capacity: Column<f64>,
    order: Column<i64>,
    alike: bool,
    steps: usize,
) -> PyResult<Option<Array1<'py, i32>>> {
    let units = units(allowed, start, rivals, memory, capacity, order)?;
    let found = Remaining::ENDLESS.watched(py, |watch| memory::pack(&units, alike, steps, watch));
    Ok(match found? {
        Packed::Impossible => None,
        Packed::Whole(place) => Some(to_ints(py, &place)),
        Packed::Unknown(place) => Some(to_ints_or_none(py, &place)),
    })
}

/// Place units in order: on their device if they fit, else on the next one, else at -1.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn make_room<'py>(
    py: Python<'py>,
    place: Column<i32>,
    allowed: Rows<bool>,
    start: Column<i64>,
    rivals: Column<i64>,
    memory: Column<f64>,
    capacity: Column<f64>,
    order: Column<i64>,
) -> PyResult<Array1<'py, i32>> {
    let units = units(allowed, start, rivals, memory, capacity, order)?;
    let wishes = ids(place.0)?;
    let d = units.capacity.len();
    if wishes.len() != units.memory.len() || wishes.iter().any(|&wish| wish as usize >= d) {
        return Err(wrong("units are not on devices"));
    }
    Ok(to_ints_or_none(py, &memory::make_room(&units, &wishes)))
}

fn units(
    allowed: Rows<bool>,
    start: Column<i64>,
    rivals: Column<i64>,
    memory: Column<f64>,
    capacity: Column<f64>,
    order: Column<i64>,
) -> PyResult<Units> {
    let n = memory.0.len();
    if (allowed.0.rows(), allowed.0.columns()) != (n, capacity.0.len()) {
        return Err(wrong("allowed does not have a cell for every unit and device"));
    }
    let order = ids(order.0)?;
    length("order", order.len(), n).and_then(|()| permutation("order", &order)).map_err(wrong)?;
    let rivals = Rivals::new(ids(start.0)?, ids(rivals.0)?, n).map_err(wrong)?;
    Ok(Units { allowed: allowed.0, rivals, memory: memory.0, capacity: capacity.0, order })
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(machine_uses, module)?)?;
    module.add_function(wrap_pyfunction!(first_fit_machines, module)?)?;
    module.add_function(wrap_pyfunction!(force_subtasks, module)?)?;
    module.add_function(wrap_pyfunction!(deal_subtasks, module)?)?;
    module.add_function(wrap_pyfunction!(anneal_machines, module)?)?;
    module.add_function(wrap_pyfunction!(pack_units, module)?)?;
    module.add_function(wrap_pyfunction!(make_room, module)?)
}
