//! `engine` for Python.

use numpy::{PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arrays::{Column, attribute, attributes_of, exports, wrong};
use super::instance::Problem;
use super::remaining::Remaining;
use crate::engine::runs::{self, Log, Sums};
use crate::engine::single_tuples::{self, MAX_WAITING, Randomness, Times};
use crate::engine::wiring::{Policy, Settings, Wiring};
use crate::engine::{Stopped, rates};
use crate::instance::Instance;
use crate::table::Table;
use crate::watch::Watch;

#[pyfunction]
fn simulate<'py>(
    py: Python<'py>,
    problem: &Problem,
    wiring: &Bound<'py, PyAny>,
    placements: Table<i32>,
    jump: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let instance = &problem.0;
    let (wiring, placements) = (read(instance, wiring)?, placements.placements(instance)?);
    let (n, k, d) = (instance.n_operators(), wiring.windows.len(), instance.n_devices());
    let (b, inlets) = (placements.rows(), wiring.inlets.len());
    let shapes: [&[usize]; 7] =
        [&[b, n], &[b, k], &[b, d], &[b, d, d], &[b, inlets], &[b, inlets], &[b]];
    fill(py, shapes, |[taken, emitted, busy, link, opening, closing, repeating], watch| {
        let mut sums = Sums { taken, emitted, busy, link, opening, closing, repeating };
        runs::simulate(instance, &wiring, &placements, jump, &mut sums, watch)
    })
    .map(|(sums, ())| sums)
}

#[pyfunction]
fn simulate_logged<'py>(
    py: Python<'py>,
    problem: &Problem,
    wiring: &Bound<'py, PyAny>,
    placement: Column<i32>,
) -> PyResult<Bound<'py, PyTuple>> {
    let instance = &problem.0;
    let (wiring, placement) = (read(instance, wiring)?, placement.placement(instance)?);
    let (n, m, t) = (instance.n_operators(), instance.n_streams(), wiring.settings.ticks);
    let (k, s, d) = (wiring.windows.len(), wiring.sources.len(), instance.n_devices());
    let shapes: [&[usize]; 8] =
        [&[t, m], &[t, m], &[t, s], &[t, n], &[t, k], &[t, d], &[t, m], &[t, 2, n]];
    fill(py, shapes, |[queued, transit, backlog, taken, emitted, busy, link, delay], watch| {
        let mut log = Log { queued, transit, backlog, taken, emitted, busy, link, delay };
        runs::simulate_logged(instance, &wiring, &placement, &mut log, watch)
    })
    .map(|(log, ())| log)
}

#[pyfunction]
#[pyo3(signature = (problem, wiring, placement, weights, *, random, seed, horizon, tuples))]
#[allow(clippy::too_many_arguments)]
fn tuple_times<'py>(
    py: Python<'py>,
    problem: &Problem,
    wiring: &Bound<'py, PyAny>,
    placement: Column<i32>,
    weights: Column<f64>,
    random: usize,
    seed: u64,
    horizon: f64,
    tuples: usize,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let instance = &problem.0;
    let (wiring, placement) = (read(instance, wiring)?, placement.placement(instance)?);
    let all = [Randomness::Nothing, Randomness::Arrivals, Randomness::All];
    let random = *all.get(random).ok_or_else(|| wrong("there is no such randomness"))?;
    if weights.0.len() != instance.n_operators() || !horizon.is_finite() {
        return Err(wrong("weights do not fit, or the horizon is not finite"));
    }
    let rows = tuples.saturating_add(MAX_WAITING);
    let (times, written) = fill(py, [&[3, rows]], |[times], watch| {
        let (since_generation, rest) = times.split_at_mut(rows);
        let (since_admission, weight) = rest.split_at_mut(rows);
        let mut times = Times { since_generation, since_admission, weight };
        let (random, weights) = ((random, seed), &weights.0);
        single_tuples::follow(
            instance, &wiring, &placement, weights, random, horizon, &mut times, watch,
        )
    })?;
    Ok((times.get_item(0)?, written))
}

#[pyfunction]
fn source_equivalents(problem: &Problem) -> Column<f64> {
    Column(rates::source_equivalents(&problem.0))
}

#[pyfunction]
fn drifts(
    problem: &Problem,
    admitted: Table<f64>,
    taken: Table<f64>,
    emitted: Table<f64>,
) -> PyResult<Table<f64>> {
    Ok(rates::drifts(&problem.0, &admitted, &taken, &emitted)?)
}

exports!(; simulate simulate_logged tuple_times source_equivalents drifts);

/// Wiring of an object that has the columns of `streamsim.engine.wiring.Wiring`.
fn read(instance: &Instance, wiring: &Bound<'_, PyAny>) -> PyResult<Wiring> {
    let policy: usize = attribute(wiring, "policy")?;
    let policies = [Policy::Dynamic, Policy::Uniform, Policy::Weighted];
    let policy = *policies.get(policy).ok_or_else(|| wrong("there is no such policy"))?;
    let settings = attributes_of!(wiring, Settings:
        generated constant_from weights capacity peak ticks warm_ticks iterations dt slice_seconds;
        policy
    );
    Ok(Wiring::new(instance, settings)?)
}

/// Make arrays of zeros and let a run write into them, without the GIL.
///
/// numpy makes them, so that too little memory is an error.
fn fill<'py, T: Send, const K: usize>(
    py: Python<'py>,
    shapes: [&[usize]; K],
    write: impl FnOnce([&mut [f64]; K], &mut Watch<'_>) -> Result<T, Stopped> + Send,
) -> PyResult<(Bound<'py, PyTuple>, T)> {
    let zeros = py.import("numpy")?.getattr("zeros")?;
    let array = |shape: &[usize]| -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        Ok(zeros.call1((PyTuple::new(py, shape)?,))?.cast_into()?)
    };
    let arrays = shapes.into_iter().map(array).collect::<PyResult<Vec<_>>>()?;
    let mut borrowed: Vec<_> = arrays.iter().map(PyArrayMethods::readwrite).collect();
    let slices = borrowed.iter_mut().map(|array| array.as_slice_mut());
    let slices = slices.collect::<Result<Vec<_>, _>>()?;
    let slices = slices.try_into().map_err(|_| wrong("a wrong number of arrays"))?;
    let done = Remaining::ENDLESS.watched(|watch| write(slices, watch))?;
    let result = done.map_err(|stopped| match stopped {
        Stopped::OutOfMemory => PyMemoryError::new_err("the run needs more memory than there is"),
        Stopped::Interrupted => PyKeyboardInterrupt::new_err(()),
    })?;
    drop(borrowed);
    Ok((PyTuple::new(py, arrays)?, result))
}
