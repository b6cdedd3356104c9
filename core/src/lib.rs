//! The parts of streamplace that run a million times.
//!
//! A module is named after the room of the Python package that calls it, and knows no Python.
//! `python` is the thin layer between both, with a file of the same name for each of them.
//!
//! - `arithmetic`, `table`: maxima of numbers, and tables with rows of equal length.
//! - `instance`: one placement problem, checked once.
//! - `equation`, `loads`: the load equation, and the loads of a placement.
//! - `steady`, `incremental`: throughput, and throughput that follows moves.
//! - `watch`, `random`, `rivals`: the end of a search, its random numbers, units to keep apart.
//! - `anneal`, `exact`: searches for placements, and proofs that none is better.

pub mod anneal;
pub mod arithmetic;
pub mod equation;
pub mod exact;
pub mod incremental;
pub mod instance;
pub mod loads;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod rivals;
pub mod steady;
pub mod table;
pub mod watch;
