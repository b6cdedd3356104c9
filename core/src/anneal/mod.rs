//! Annealing of placements, by the loads of resources.

pub mod groups;
pub mod level;
pub mod non_delay;
pub mod schedules;
pub mod sequence;
pub mod walk;
