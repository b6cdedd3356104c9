//! `Problem`: the core's copy of a `streamsim.instance.Instance`, made and checked once.

use pyo3::prelude::*;

use super::arrays::{Attribute, attribute, attributes_of, exports};
use crate::instance::{Instance, Platform};
use crate::rivals::{Rivals, Rules};
use crate::topology::Adjacency;

/// The core's copy of a problem.
#[pyclass(frozen, module = "streamsim._core")]
pub struct Problem(pub Instance);

#[pymethods]
impl Problem {
    #[new]
    fn new(instance: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(instance, Instance:
            sources rate joins port_start input_rate output_rate parallelism seconds load core_load
            constant core_constant max_rate windows port selectivity payload tuples intake traffic
            stream_index device_type;
            graph: Adjacency::read(instance)?,
            platform: Platform::read(instance)?
        );
        found.check()?;
        Ok(Self(found))
    }
}

/// An object with the columns of `streamsim.platform.Platform`.
impl Attribute for Platform {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(attributes_of!(found, Self:
            cores free_cores seconds_per_byte latency egress ingress overhead overhead_per_byte gap
        ))
    }
}

/// Columns of a graph.
impl Attribute for Adjacency {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(attributes_of!(found, Self:
            order source target out_start out_end in_start in_streams
        ))
    }
}

/// Columns `rival_start`, `rivals`, `memory` and `room` of an object.
impl Attribute for Rules {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rivals = Rivals::new(attribute(found, "rival_start")?, attribute(found, "rivals")?);
        Ok(attributes_of!(found, Self: memory room; rivals))
    }
}

exports!(Problem; );
