//! Scheduling of one pass: tasks, ranks, and list schedulers.
//!
//! - `tasks`: the tasks, the streams between them, and the devices that they may run on.
//! - `ranks`: time before and after every task, and orders by rank.
//! - `homes`: the devices of units that stay together, and of their rivals.
//! - `insertion`, `lists`: list scheduling, and the best of several orders of equal ranks.
//! - `soonest`, `batches`: by earliest start, and batch by batch.
//! - `eft`: the device on which a task finishes earliest while all others stay.

mod batches;
mod eft;
mod homes;
mod insertion;
mod lists;
mod ranks;
mod soonest;
mod tasks;

pub use batches::{Rule, by_batches};
pub use eft::earliest_device;
pub use insertion::{
    Choice, Growing, Inserter, ListSchedule, Slot, by_upward_rank, latest_starts, ready_at,
};
pub use lists::shorter;
pub use ranks::{by_rank, comes_before, downward, least_after, optimistic_costs, upward};
pub use soonest::start_soonest;
pub use tasks::Tasks;
