"""Work of the operators of a chain, which samples of the stacks of its threads show."""

from collections.abc import Iterable, Mapping

from streamplace.engines.flink.cpu.stack_samples import StackCounts
from streamplace.engines.flink.measure.local_cost import LEAST_SAMPLES
from streamplace.engines.flink.program.chains import is_line, operators_in
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.model.graph import StreamGraph

WORK_IN = "work in "
"""Prefix of attributes with the share of each operator of a chain in the work of the chain."""


def work_in_chains(tasks: Iterable[FlinkTask], stacks: Mapping[str, StackCounts]) -> dict[str, str]:
    """Attributes of a graph for chains without branches that were sampled often enough.

    ``stacks``: samples of each task, by id.
    """
    facts = {}
    for task in tasks:
        number = len(task.operators)
        samples = stacks.get(task.id, StackCounts()).work
        is_known = (
            1 < number == len(operators_in(task.name))
            and len(samples) <= number
            and is_line(task.thread_name, task.operators)
        )
        if is_known and sum(samples) >= LEAST_SAMPLES:
            each = [count / sum(samples) for count in samples] + [0.0] * (number - len(samples))
            facts[f"{WORK_IN}{task.name}"] = " ".join(f"{share:.3g}" for share in each)
    return facts


def measured_work(graph: StreamGraph, chain: str) -> list[float]:
    """Share of each operator in the work of a chain; empty if it was not measured."""
    try:
        shares = [float(word) for word in str(graph.attributes.get(WORK_IN + chain, "")).split()]
    except ValueError:
        return []
    return shares if len(shares) == len(operators_in(chain)) and sum(shares) > 0 else []
