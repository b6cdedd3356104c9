//! Pilot: a policy that places units one by one, seeing what every device already carries.
//!
//! - `order`: the order in which units are placed.
//! - `features`: what the policy sees of devices.
//! - `layers`: products of vectors and matrices in single precision, in one order everywhere.
//! - `decision`: the layers that both pilots share, from features of devices to their logits.
//! - `network`: the network on the units of a problem.
//! - `record`: the inputs of decisions.
//! - `rollouts`: placements built unit by unit.

pub mod decision;
pub mod features;
pub mod layers;
pub mod network;
pub mod order;
pub mod record;
pub mod rollouts;
