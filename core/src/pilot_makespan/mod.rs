//! Pilot for the makespan: a policy that rebuilds a schedule task by task.
//!
//! - `features`: what the policy sees of devices for one task.
//! - `rollouts`: the network, and schedules built with it.

pub mod features;
pub mod rollouts;
