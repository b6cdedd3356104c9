//! `Problem`: the core's copy of a `streamsim.instance.Instance`, made and checked once.

use numpy::Element;
use pyo3::prelude::*;

use super::arrays::{elements, ids, wrong};
use crate::instance::{Id, Instance, Platform};
use crate::table::Table;

/// The core's copy of a problem.
#[pyclass(frozen, module = "streamsim._core")]
pub struct Problem(pub Instance);

#[pymethods]
impl Problem {
    #[new]
    fn new(instance: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = read(instance)?;
        found.check().map_err(wrong)?;
        Ok(Self(found))
    }
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Problem>()
}

/// Columns of an object, by name.
pub struct Columns<'a, 'py>(pub &'a Bound<'py, PyAny>);

impl Columns<'_, '_> {
    /// Shape and elements of a column.
    pub fn any<T: Element + Copy>(
        &self,
        name: &str,
        dimensions: usize,
    ) -> PyResult<(Vec<usize>, Vec<T>)> {
        let found = self.0.getattr(name)?;
        let (shape, values) = elements(&found).map_err(|error| named(&found, name, &error))?;
        if shape.len() != dimensions {
            return Err(wrong(format!("{name} has {} dimensions, not {dimensions}", shape.len())));
        }
        Ok((shape, values))
    }

    /// Numbers.
    pub fn floats(&self, name: &str) -> PyResult<Vec<f64>> {
        Ok(self.any(name, 1)?.1)
    }

    /// Indices.
    pub fn ids(&self, name: &str) -> PyResult<Vec<Id>> {
        ids::<i32>(self.any(name, 1)?.1).map_err(|error| named(self.0, name, &error))
    }

    /// Indices in 64 bits.
    pub fn long_ids(&self, name: &str) -> PyResult<Vec<Id>> {
        ids::<i64>(self.any(name, 1)?.1).map_err(|error| named(self.0, name, &error))
    }

    /// Elements of a column.
    pub fn column<T: Element + Copy>(&self, name: &str) -> PyResult<Vec<T>> {
        Ok(self.any(name, 1)?.1)
    }

    /// Rows of elements.
    pub fn table<T: Element + Copy>(&self, name: &str) -> PyResult<Table<T>> {
        let (shape, values) = self.any(name, 2)?;
        Ok(Table::new(values, shape[0], shape[1]))
    }

    /// One number.
    pub fn float(&self, name: &str) -> PyResult<f64> {
        self.0.getattr(name)?.extract()
    }
}

fn named(found: &Bound<'_, PyAny>, name: &str, error: &PyErr) -> PyErr {
    let text = format!("{name}: {}", error.value(found.py()));
    PyErr::from_type(error.get_type(found.py()), text)
}

/// Platform of an object that has the columns of `streamsim.platform.Platform`.
pub fn read_platform(of: &Columns<'_, '_>) -> PyResult<Platform> {
    Ok(Platform {
        cores: of.floats("cores")?,
        free_cores: of.floats("free_cores")?,
        seconds_per_byte: of.table("seconds_per_byte")?,
        latency: of.table("latency")?,
        egress: of.floats("egress")?,
        ingress: of.floats("ingress")?,
        overhead: of.float("overhead")?,
        overhead_per_byte: of.float("overhead_per_byte")?,
        gap: of.float("gap")?,
    })
}

fn read(instance: &Bound<'_, PyAny>) -> PyResult<Instance> {
    let of = Columns(instance);
    Ok(Instance {
        order: of.ids("order")?,
        sources: of.ids("sources")?,
        rate: of.floats("rate")?,
        joins: of.any::<bool>("joins", 1)?.1,
        port_start: of.ids("port_start")?,
        input_rate: of.floats("input_rate")?,
        output_rate: of.floats("output_rate")?,
        parallelism: of.floats("parallelism")?,
        seconds: of.table("seconds")?,
        load: of.table("load")?,
        core_load: of.table("core_load")?,
        constant: of.table("constant")?,
        core_constant: of.table("core_constant")?,
        max_rate: of.floats("max_rate")?,
        windows: of.table("windows")?,
        source: of.ids("source")?,
        target: of.ids("target")?,
        port: of.ids("port")?,
        selectivity: of.floats("selectivity")?,
        payload: of.floats("payload")?,
        tuples: of.floats("tuples")?,
        intake: of.floats("intake")?,
        traffic: of.floats("traffic")?,
        stream_index: of.ids("stream_index")?,
        out_start: of.ids("out_start")?,
        out_end: of.ids("out_end")?,
        in_start: of.ids("in_start")?,
        in_streams: of.ids("in_streams")?,
        device_type: of.ids("device_type")?,
        platform: read_platform(&of)?,
    })
}
