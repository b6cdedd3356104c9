//! Annealing of placements, by the loads of resources.

pub mod groups;
pub mod level;
pub mod walk;
