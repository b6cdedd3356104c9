//! Packing of units into the memory of devices, and of subtasks onto machines.
//!
//! - `memory`: units with memory, some of which must not meet.
//! - `contents`: the resources that the subtasks on a machine use.
//! - `first_fit`: subtasks are placed one after the other.
//! - `annealing`: subtasks are moved until no machine is overloaded.

pub mod annealing;
pub mod contents;
pub mod first_fit;
pub mod memory;

/// Share by which a use may exceed a capacity, for rounding.
pub const SLACK: f64 = 1e-9;
