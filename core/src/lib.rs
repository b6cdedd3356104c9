//! The parts of streamplace that run a million times.
//!
//! A module is named after the room of the Python package that calls it, and knows no Python.
//! `python` is the thin layer between both, with a file of the same name for each of them.
//!
//! - `arithmetic`, `table`, `check`: maxima of numbers, tables, and checks of both.
//! - `instance`: one placement problem, checked once.
//! - `flow`, `topology`, `sources`: order, adjacency and rates of a graph.
//! - `equation`, `loads`: the load equation, and the loads of a placement.
//! - `engine`: simulations of queues, tick by tick and tuple by tuple.
//! - `steady`, `incremental`: throughput, and throughput that follows moves.
//! - `survival`: what a placement carries after the loss of a device.
//! - `latency`, `overload`, `canonical`: paths, overloaded jobs, equal devices.
//! - `passes`, `scheduling`: single passes, and schedules of them.
//! - `watch`, `random`, `rivals`: the end of a search, its random numbers, units to keep apart.
//! - `coarsening`, `partition`: problems of merged operators, and devices for parts of graphs.
//! - `packing`: units in the memory of devices, and subtasks on machines.
//! - `pilot`, `pilot_makespan`: policies that place operators, or tasks, one by one.
//! - `anneal`, `exact`: searches for placements, and proofs that none is better.

pub mod anneal;
pub mod arithmetic;
pub mod canonical;
pub mod check;
pub mod coarsening;
pub mod engine;
pub mod equation;
pub mod exact;
pub mod flow;
pub mod incremental;
pub mod instance;
pub mod latency;
pub mod loads;
pub mod overload;
pub mod packing;
pub mod partition;
pub mod passes;
pub mod pilot;
pub mod pilot_makespan;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod rivals;
pub mod scheduling;
pub mod sources;
pub mod steady;
pub mod survival;
pub mod table;
pub mod topology;
pub mod watch;
