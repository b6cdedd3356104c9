//! `packing` for Python.

use pyo3::prelude::*;

use super::arrays::{Column, attributes_of, detached, devices_or_none, exports, wrong};
use super::remaining::Remaining;
use crate::check::{length, permutation, shape};
use crate::instance::Id;
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
        let needs = attributes_of!(&object, Needs:
            instructions cores at_max_rate memory source target tuples bits forward bundle
            slot_group unit part rival_start rival parallelism most least stored capacity per_tuple per_bit allowed network
        );
        needs.check()?;
        Ok(Self::new(needs))
    }
}

impl Packing {
    fn kinds(&self, kinds: Column<Id>) -> PyResult<Vec<Id>> {
        kinds.below("kinds", self.needs.capacity.rows())
    }

    /// Check the contents of machines beside further subtasks: a machine may get all subtasks, and
    /// there are no more of an operator than its shares tell about.
    fn check(&self, rows: &Table<u32>, machines: usize, left: &[u32]) -> PyResult<()> {
        shape("contents", rows, machines, self.n_operators())?;
        length("left", left, self.n_operators())?;
        let column = |v: usize| (0..machines).map(move |m| u64::from(rows[(m, v)]));
        let sum = |v: usize| u64::from(left[v]) + column(v).sum::<u64>();
        if (0..left.len()).any(|v| sum(v) > self.most_subtasks() as u64) {
            return Err(wrong("there are too many subtasks of an operator"));
        }
        if !(0..machines).all(|m| self.is_whole(rows.row(m))) || !self.is_whole(left) {
            return Err(wrong("colocated operators are apart"));
        }
        Ok(())
    }
}

#[pyfunction]
fn machine_uses(packing: Packing, kinds: Column<Id>, rows: Table<u32>) -> PyResult<Table<f64>> {
    let kinds = packing.kinds(kinds)?;
    shape("contents", &rows, kinds.len(), packing.n_operators())?;
    if rows.cells().iter().any(|&subtasks| subtasks as usize > packing.most_subtasks()) {
        return Err(wrong("a machine has too many subtasks"));
    }
    let each = kinds.iter().enumerate();
    let shares = |(m, &kind): (usize, &Id)| packing.shares(kind as usize, rows.row(m));
    let cells = detached(|| each.flat_map(shares).collect());
    Ok(Table::new(cells, kinds.len(), N_RESOURCES))
}

#[pyfunction]
fn first_fit_machines(
    packing: Packing,
    kinds: Column<Id>,
    remaining: Remaining,
) -> PyResult<Option<(Table<u32>, Column<u32>)>> {
    let kinds = packing.kinds(kinds)?;
    let fill = |watch: &mut Watch| first_fit::first_fit(&packing, &kinds, watch);
    Ok(remaining.watched(fill)?.map(|(rows, left)| (rows, Column(left))))
}

#[pyfunction]
fn force_subtasks(
    packing: Packing,
    kinds: Column<Id>,
    mut rows: Table<u32>,
    mut left: Column<u32>,
    remaining: Remaining,
) -> PyResult<(Table<u32>, Column<u32>)> {
    let kinds = packing.kinds(kinds)?;
    if kinds.is_empty() {
        return Err(wrong("there is no machine"));
    }
    packing.check(&rows, kinds.len(), &left.0)?;
    remaining.watched(|watch| {
        first_fit::force(&packing, &kinds, &mut rows, &mut left.0, watch);
    })?;
    Ok((rows, left))
}

#[pyfunction]
fn deal_subtasks(packing: Packing, kinds: Column<Id>) -> PyResult<Table<u32>> {
    Ok(first_fit::deal(&packing, &packing.kinds(kinds)?))
}

#[pyfunction]
fn anneal_machines(
    packing: Packing,
    kinds: Column<Id>,
    rows: Table<u32>,
    seed: u64,
    steps: usize,
    remaining: Remaining,
) -> PyResult<(Table<u32>, f64)> {
    let kinds = packing.kinds(kinds)?;
    packing.check(&rows, kinds.len(), &vec![0; packing.n_operators()])?;
    let mut random = Xorshift::new(seed);
    remaining.watched(|watch| annealing::anneal(&packing, &kinds, rows, &mut random, steps, watch))
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn pack_units(
    allowed: Table<bool>,
    start: Column<Id>,
    rivals: Column<Id>,
    memory: Column<f64>,
    capacity: Column<f64>,
    order: Column<Id>,
    alike: bool,
    steps: usize,
) -> PyResult<Option<Column<i32>>> {
    let units = units(allowed, start, rivals, memory, capacity, order)?;
    let found = Remaining::ENDLESS.watched(|watch| memory::pack(&units, alike, steps, watch));
    Ok(match found? {
        Packed::Impossible => None,
        Packed::Found(place) => Some(devices_or_none(&place)),
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn make_room(
    place: Column<i32>,
    allowed: Table<bool>,
    start: Column<Id>,
    rivals: Column<Id>,
    memory: Column<f64>,
    capacity: Column<f64>,
    order: Column<Id>,
) -> PyResult<Column<i32>> {
    let units = units(allowed, start, rivals, memory, capacity, order)?;
    let wishes = place.devices(units.memory.len(), units.capacity.len())?;
    Ok(devices_or_none(&memory::make_room(&units, &wishes)))
}

fn units(
    allowed: Table<bool>,
    start: Column<Id>,
    rivals: Column<Id>,
    memory: Column<f64>,
    capacity: Column<f64>,
    order: Column<Id>,
) -> PyResult<Units> {
    let (memory, capacity, order) = (memory.0, capacity.0, order.0);
    let n = memory.len();
    shape("allowed", &allowed, n, capacity.len())?;
    length("order", &order, n)?;
    permutation("order", &order)?;
    let rivals = Rivals::new(start.0, rivals.0);
    rivals.check(n)?;
    Ok(Units { allowed, rivals, memory, capacity, order })
}

exports!(;
    machine_uses first_fit_machines force_subtasks deal_subtasks anneal_machines pack_units
    make_room
);
