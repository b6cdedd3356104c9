"""Fixed parallelism: which operators have it by their program, whatever a job is submitted with."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.answer_shapes import PlanNode
from streamplace.engines.flink.identity import operators_of
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.uploads import own_name, uploaded

TRIED = (1, 2)
"""Parallelisms that the job is planned with; every maximum parallelism but 1 allows both."""
CHAINING = "pipeline.operator-chaining.enabled"


def fixed_parallelism(rest: Rest, program: Program) -> dict[str, int]:
    """Operators of a program that have a parallelism of their own: name → parallelism.

    The program is planned twice by the JobManager, with two default parallelisms and without
    chains; nothing runs.

    Raises
    ------
    FlinkError
        When the program cannot be planned, or does not have the same operators both times.
    """
    program.check()
    with uploaded(rest, lambda: _copy(program.jar)) as jar:
        low, high = (_planned(rest, jar.id, program, number) for number in TRIED)
    if low.keys() != high.keys():
        raise FlinkError(
            "the program has other operators with another parallelism, so that which of them have "
            "a parallelism of their own cannot be told"
        )
    return {name: number for name, number in low.items() if high[name] == number}


@contextmanager
def _copy(jar: Path) -> Iterator[Path]:
    """Return a copy under a name of our own, with which no other upload is removed."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copyfile(jar, Path(folder) / own_name(f"planned-{jar.name}")))


def _planned(rest: Rest, jar: str, program: Program, parallelism: int) -> Mapping[str, int]:
    """Operator → parallelism, as the JobManager plans a program."""
    request: dict[str, Any] = {
        "entryClass": program.entry,
        "programArgsList": [*program.arguments],
        "parallelism": parallelism,
        "flinkConfiguration": {**program.settings, CHAINING: "false"},
    }
    answer = rest.post(f"/jars/{quote(jar, safe='')}/plan", request)
    nodes: list[PlanNode] = answer["plan"]["nodes"]
    return {
        name: node.get("parallelism", 1)
        for node, names in zip(nodes, _names(nodes), strict=True)
        for name in names
    }


def _names(nodes: list[PlanNode]) -> list[tuple[str, ...]]:
    """Names of the operators of each node, as placements call them."""
    vertices: list[Any] = [
        {"id": node["id"], "name": node.get("description", "").removesuffix("<br/>")}
        for node in nodes
    ]
    return [operators.names for operators in operators_of(vertices, nodes)]
