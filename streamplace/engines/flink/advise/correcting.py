"""Correction of a measured job whose present layout carries another rate than its model says.

After a plan is carried out, advice on the job that runs there mends the plan: if its sources are
held back at less than was predicted, all costs count so much more.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite

from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.io.ledger import NOISE
from streamplace.model.graph import StreamGraph
from streamplace.model.trust import WRONG


def correction(seen: JobProfile, carried: float | None) -> float:
    """Factor of all costs with which the present layout carries what was measured; 1 if unknown.

    It is known if the sources are held back. A model that is further off than profiles may be is
    not corrected: something else limits the job.

    Parameters
    ----------
    carried
        Tuples/s that the present layout carries by the model; None if unknown.
    """
    observed = sum(seen.tuples[source.id] for source in seen.sources)
    if carried is None or not isfinite(carried) or not observed or not seen.is_limited:
        return 1.0
    factor = carried / observed
    return factor if 1 - WRONG <= factor <= 1 + WRONG else 1.0


def scaled(graph: StreamGraph, factor: float) -> StreamGraph:
    """Return the graph whose operators and streams take so many times the CPU per tuple."""
    streams = replace(graph.streams, ipt=factor * graph.streams.ipt)
    operators = replace(graph.operators, ipt=factor * graph.operators.ipt)
    return replace(graph, streams=streams).with_operators(operators)


def note_on(factor: float) -> Iterator[str]:
    """Note on costs that were scaled, if that is more than noise."""
    if abs(factor - 1) > NOISE:
        yield (
            f"the sources are held back at {1 / factor:.0%} of what the model says of the present "
            f"layout, so all costs count {factor:.2f} times"
        )
