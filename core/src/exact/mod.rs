//! Proofs: bounds of the largest load, branch and bound, and all placements one by one.

pub mod annealing;
pub mod branching;
pub mod listing;
pub mod packing;
pub mod patterns;
pub mod units;
pub mod windows;
