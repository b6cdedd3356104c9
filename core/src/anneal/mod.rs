//! Annealing of placements, by the loads of resources.

pub mod level;
