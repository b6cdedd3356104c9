//! `Problem`: the core's copy of a `streamsim.instance.Instance`, made and checked once.

use pyo3::prelude::*;

use super::arrays::{Attribute, attributes_of, exports};
use crate::instance::{Instance, Platform};

/// The core's copy of a problem.
#[pyclass(frozen, module = "streamsim._core")]
pub struct Problem(pub Instance);

#[pymethods]
impl Problem {
    #[new]
    fn new(instance: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(instance, Instance:
            order sources rate joins port_start input_rate output_rate parallelism seconds load
            core_load constant core_constant max_rate windows source target port selectivity payload
            tuples intake traffic stream_index out_start out_end in_start in_streams device_type;
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

exports!(Problem; );
