//! List scheduling by ranks, with several orders of tasks of equal rank.

use super::insertion::{Choice, Inserter, ListSchedule};
use super::ranks::by_rank;
use super::tasks::Tasks;
use crate::arithmetic::max;
use crate::table::Table;

/// Share of the highest rank within which ranks count as equal.
const TIE: f64 = 1e-9;

/// Shortest complete schedule with random ties that is below `least`, if there is one.
///
/// Every row of `draws` has a number from 0 to 1 for every task.
#[must_use]
pub fn shorter(
    tasks: &Tasks,
    rank: &[f64],
    choice: &Choice,
    draws: &Table,
    mut least: f64,
) -> Option<ListSchedule> {
    let tie = TIE * rank.iter().fold(f64::NEG_INFINITY, |top, &rank| max(top, rank));
    let (usual, mut inserter, mut best) = (by_rank(tasks, rank), Inserter::new(tasks), None);
    for i in 0..draws.rows() {
        let drawn = rank.iter().zip(draws.row(i)).map(|(rank, draw)| rank + tie * draw);
        let order = by_rank(tasks, &drawn.collect::<Vec<_>>());
        if order == usual {
            continue;
        }
        let schedule = inserter.all(&order, choice);
        if schedule.is_complete() && schedule.makespan() < least {
            least = schedule.makespan();
            best = Some(schedule.clone());
        }
    }
    best
}
