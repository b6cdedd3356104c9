//! One pass: the time that one set of tuples takes through a placed graph.
//!
//! - `compiled`: the work of operators and the bytes of streams, with devices and links.
//! - `sending`: the sending equation. `ranks`: levels, and the longest way to an end.
//! - `simulator`: the event loop, over `events`, `state`, `queue` and `network`.
//! - `bounds`: lower bounds of the makespan. `costs`: resources that a pass uses.

mod bounds;
mod compiled;
mod costs;
mod events;
mod network;
mod queue;
mod ranks;
mod sending;
mod simulator;
mod state;

pub use bounds::{Bounds, bounds};
pub use compiled::{Device, Link, Operator, Pass, Stream};
pub use costs::Costs;
pub use ranks::{levels, longest_to_end};
pub use sending::{fixed_seconds, sending_seconds};
pub use simulator::{Noise, Simulator};
pub use state::{Journey, Network, Progress, Queue, Rules};
