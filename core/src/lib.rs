//! The parts of streamplace that run a million times.
//!
//! A module is named after the room of the Python package that calls it, and knows no Python.
//! `python` is the thin layer between both, with a file of the same name for each of them.
//!
//! - `arithmetic`, `table`: maxima of numbers, and tables with rows of equal length.
//! - `instance`: one placement problem, checked once.
//! - `equation`, `loads`: the load equation, and the loads of a placement.
//! - `engine`: simulations of queues, tick by tick and tuple by tuple.
//! - `steady`, `incremental`: throughput, and throughput that follows moves.

pub mod arithmetic;
pub mod engine;
pub mod equation;
pub mod incremental;
pub mod instance;
pub mod loads;
#[cfg(feature = "python")]
mod python;
pub mod steady;
pub mod table;
