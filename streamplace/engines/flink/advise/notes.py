"""Notes of an advice: assumed costs, and what a plan leaves out or keeps.

A plan divides the tuples of an operator as Flink divides keys that are all alike. How it would
divide popular keys among other numbers of subtasks is not known, so the plan leaves them out.
"""

from collections.abc import Iterator, Set

from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.local_cost import ASSUMED, LOCAL_COST, chain_saving
from streamplace.engines.flink.measure.message_cost import MESSAGE_COST
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted
from streamplace.model.units import digits
from streamplace.planning.result import PlanResult

LEAST_SAVING = 0.02
"""Chaining is mentioned if it saves at least this part of the CPU."""


def notes_on_busiest(plan: PlanResult, shares: Shares) -> Iterator[str]:
    """Notes on operators whose busiest subtask fills a core before the plan is full.

    A subtask that reads a share of the operator's tuples is full at the multiple of the rate

        (speed of a core - constant part) / (share · instructions per second at the rate)
    """
    graph = plan.graph
    speed = 1e6 * float(plan.cluster.devices.mips.max())
    for name, parts in shares.items():
        row = graph.operators.index(name)
        subtasks = float(graph.operators.parallelism[row])
        needed = max(parts) * float(graph.charged_ipt[row] * graph.input_rate[row])
        free = speed - 1e6 * float(graph.charged_constant[row]) / subtasks
        if needed and (full := plan.rate * max(0.0, free) / needed) < plan.carries:
            yield (
                f"one subtask of {quoted(name)} gets {max(parts):.0%} of its tuples, which the "
                "plan leaves out: if it stays so, that subtask fills the fastest core of the plan "
                f"at {digits(full)} tuples/s of all sources, however many machines there are"
            )


def notes_on_copies(receivers: Set[str]) -> Iterator[str]:
    """Note on operators that keep their parallelism, because each of their subtasks gets copies."""
    if receivers:
        yield (
            "every subtask that receives a broadcast stream gets a copy of each tuple, so the plan "
            f"keeps the parallelism of {listed(sorted(receivers))}"
        )


def notes_on_streams(graph: StreamGraph) -> Iterator[str]:
    """Notes on the assumed costs of messages and of local streams, or on what chains save."""
    if MESSAGE_COST in graph.attributes:
        yield f"what a message between subtasks costs is {graph.attributes[MESSAGE_COST]}"
    source = str(graph.attributes.get(LOCAL_COST, ""))
    if source.startswith(ASSUMED):
        yield f"what a tuple costs between two threads of a TaskManager is {source}"
        return
    saving = chain_saving(graph)
    if saving.share >= LEAST_SAVING:
        yield (
            f"if Flink chained {listed(saving.streams)}, {saving.share:.0%} of the CPU of the "
            "operators would be saved (pipeline.operator-chaining.enabled)"
        )
