"""Limits of a plan by the busiest subtasks of operators whose tuples are unevenly shared.

A plan divides the tuples of an operator as Flink divides keys that are all alike. How it would
divide popular keys among other numbers of subtasks is not known, so the plan leaves them out.
"""

from collections.abc import Iterator

from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.model.messages import quoted
from streamplace.model.units import digits
from streamplace.planning.result import PlanResult


def notes_on_busiest(plan: PlanResult, shares: Shares) -> Iterator[str]:
    """Notes on operators whose busiest subtask fills a core before the plan is full.

    A subtask that reads a share of the operator's tuples is full at the multiple of the rate

        (speed of a core - constant part) / (share · instructions per second at the rate)

    Parameters
    ----------
    shares
        Shares of the subtasks in the tuples of operators where they are uneven.
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
