//! Rates: what the sums of runs mean, in tuples of the sources and shares of full rates.

use super::wiring::{sources, window_of, windows};
use crate::arithmetic::max;
use crate::check::{Wrong, shape};
use crate::instance::Instance;
use crate::table::Table;

/// Number of source tuples that an input tuple of each sink represents; 0 at other operators.
///
/// At full rate every operator distributes the source tuples that it represents to its streams, in
/// proportion to their tuples; ω(v) arrives at v. A sink emits nothing, and each of its λ(v) input
/// tuples counts for ω(v) / λ(v). Σ ω over the sinks is Σ R, so a graph that keeps up has a
/// throughput of exactly its rate. The sums take one pass over the streams.
#[must_use]
pub fn source_equivalents(instance: &Instance) -> Vec<f64> {
    let mut stands_for = instance.rate.clone();
    let mut emitted = vec![0.0; stands_for.len()];
    for (&u, tuples) in instance.source.iter().zip(&instance.tuples) {
        emitted[u as usize] += tuples;
    }
    for e in 0..instance.n_streams() {
        let (u, v) = instance.ends(e);
        if emitted[u] > 0.0 {
            let part = instance.tuples[e] / emitted[u];
            stands_for[v] += stands_for[u] * part;
        }
    }
    for (v, stands_for) in stands_for.iter_mut().enumerate() {
        let ends = emitted[v] == 0.0 && instance.input_rate[v] > 0.0;
        *stands_for = if ends { *stands_for / instance.input_rate[v] } else { 0.0 };
    }
    stands_for
}

/// Imbalance of each operator's input, as a share of its full rate, [B, N].
///
/// `admitted` [B, S], `taken` [B, N] and `emitted` [B, K] are tuples/s of B runs. While queues,
/// send buffers, links or panes still fill, operators downstream take in less than follows from
/// the admitted tuples. For a window that is not linear, the emitted tuples are used instead, since
/// its output for changing counts differs from its output for their mean.
pub fn drifts(
    instance: &Instance,
    admitted: &Table,
    taken: &Table,
    emitted: &Table,
) -> Result<Table, Wrong> {
    let (n, runs, sources) = (instance.n_operators(), taken.rows(), sources(instance));
    let (window_of, windows) = (window_of(instance), windows(instance, 0.0)?);
    shape("admitted", admitted, runs, sources.len())?;
    shape("taken", taken, runs, n)?;
    shape("emitted", emitted, runs, windows.len())?;
    let mut drift = Table::filled(0.0, runs, n);
    let mut arriving = vec![0.0; instance.port_start[n] as usize];
    for b in 0..runs {
        arriving.fill(0.0);
        for (&v, &rate) in sources.iter().zip(admitted.row(b)) {
            arriving[instance.ports(v as usize)].fill(rate);
        }
        for v in instance.in_order() {
            let comes = arriving[instance.ports(v)].iter().copied().reduce(max).unwrap_or(0.0);
            if instance.input_rate[v] > 0.0 {
                drift[(b, v)] = (comes - taken[(b, v)]).abs() / instance.input_rate[v];
            }
            let leaves = match window_of[v] {
                Some(k) if windows[k as usize].is_linear() => windows[k as usize].scaled(comes),
                Some(k) => emitted[(b, k as usize)],
                None => comes,
            };
            for e in instance.outputs(v) {
                arriving[instance.port[e] as usize] += instance.selectivity[e] * leaves;
            }
        }
    }
    Ok(drift)
}
