"""The comparison with Flink's own placement: jobs, clusters, arms, and the order of the runs.

Everything here is part of the protocol of the comparison in docs/results/evidence.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from flink_jobs import JOBS as KNOWN
from flink_jobs import FlinkJob

SEED = 20_270
DEVICES = tuple(f"tm-{i}" for i in range(4))
PARALLELISM, SLOTS_PER_DEVICE = 4, 4
SKEW = 0.4
"""Share of the tuples that carry one key, in the cluster kind *skewed*."""
JOBS: Mapping[str, FlinkJob] = {
    **{
        name: KNOWN[name]
        for name in (
            "heavy pipeline",
            "big diamond",
            "web shop log",
            "riot-etl",
            "nexmark-q3",
            "word-count",
            "meter readings",
        )
    },
    "nexmark-q5": FlinkJob("NexmarkQ5", 1_000_000),
    "spike-detection": FlinkJob("SpikeDetection", 1_000_000),
    "deliveries": FlinkJob("Deliveries", 1_000_000),
    "alarms": FlinkJob("Alarms", 1_000_000),
    "sales": FlinkJob("Sales", 1_000_000),
}
SKEWABLE = ("nexmark-q5", "spike-detection", "deliveries", "alarms", "sales")
"""Jobs with a key that can be skewed by an argument."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cluster."""

    cores: tuple[float, ...]  # of each TaskManager; they sum up to 0.72
    bandwidth_bps: float = 200e6  # that the card of a TaskManager sends at most, and receives
    skew: float = 0.0  # share of the tuples that carry one key
    partitions: str = ""  # relative sizes of those that jobs read from Kafka; empty for none

    @property
    def quotas(self) -> dict[str, float]:
        """Cores by TaskManager."""
        return dict(zip(DEVICES, self.cores, strict=True))


KINDS: Mapping[str, Kind] = {
    "equal": Kind((0.18,) * 4),
    "unequal": Kind((0.27, 0.27, 0.09, 0.09)),
    "scarce network": Kind((0.18,) * 4, bandwidth_bps=8e6),
    "skewed": Kind((0.18,) * 4, skew=SKEW),
    "Kafka equal": Kind((0.18,) * 4, partitions="1:1:1:1"),
    "Kafka unequal": Kind((0.27, 0.27, 0.09, 0.09), partitions="1:1:1:1"),
    "Kafka scarce network": Kind((0.18,) * 4, bandwidth_bps=8e6, partitions="1:1:1:1"),
    "Kafka uneven partitions": Kind((0.27, 0.27, 0.09, 0.09), partitions="4:2:1:1"),
}
KAFKA = ("WindowsJob", "JoinJob", "SqlJob")
"""Main classes of the jobs that read Kafka (tests/kafka)."""
FLINK = ("NONE", "SLOTS", "TASKS")
"""Flink's own arms: values of taskmanager.load-balance.mode."""
MOVE, AGAIN = "flink move", "SLOTS again"
ARMS = (*FLINK, AGAIN, MOVE)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A job on a kind of cluster, for the first time or again."""

    job: str
    kind: str
    repeat: int = 0

    @property
    def entry(self) -> str:
        """Main class of the job."""
        return self.job if self.job in KAFKA else JOBS[self.job].entry

    def arguments(self, rate: float | None = None) -> list[str]:
        """Arguments of the job, which offers more than any placement carries if not a rate.

        Of one that reads Kafka, those after the broker: windows of partitions that are read far
        ahead of others would fill the heap.
        """
        if self.job in KAFKA:
            return ["1e9", "30"] if self.job == "WindowsJob" else []
        job, skew = JOBS[self.job], KINDS[self.kind].skew
        everywhere = {row["name"]: PARALLELISM for row in job.operators}
        return [*job.arguments(rate, everywhere), *([f"{skew:g}"] if skew else [])]

    def rng(self, purpose: str) -> np.random.Generator:
        """Random numbers of this cell for one purpose, the same whenever it is asked."""
        text = f"{self.job}/{self.kind}/{purpose}"
        return np.random.default_rng([SEED, self.repeat, *text.encode()])

    def has(self, row: Row) -> bool:
        """Whether a line of the file is of this cell."""
        return (row["job"], row["kind"], row["repeat"]) == (self.job, self.kind, self.repeat)


def cells(repeats: int) -> list[Cell]:
    """All cells, in the order of the runs: however early it ends, no job and no kind is ahead.

    >>> from collections import Counter
    >>> len(cells(1)), sorted(Counter(cell.kind for cell in cells(1)[:8]).values())
    (53, [2, 2, 2, 2])
    >>> len({cell.job for cell in cells(1)[:12]})
    12
    """
    plain = [cell for repeat in range(repeats) for cell in _round_robin(repeat)]
    kinds = [kind for kind in KINDS if KINDS[kind].partitions]
    return [
        *plain,
        *(Cell(job, kind, i) for i in range(repeats) for kind in kinds for job in KAFKA),
    ]


def _round_robin(repeat: int) -> Iterator[Cell]:
    """Four turns of every job with another kind each, and in each turn one kind after the other."""
    rng = np.random.default_rng([SEED, repeat])
    plain = [str(name) for name in rng.permutation([n for n in JOBS if n not in SKEWABLE])]
    skewable = [str(name) for name in rng.permutation(SKEWABLE)]
    plainly = [name for name, kind in KINDS.items() if not kind.skew and not kind.partitions]
    kinds = [str(name) for name in rng.permutation(plainly)]
    skewed = [kind for kind in KINDS if KINDS[kind].skew]
    for turn in range(len(kinds) + len(skewed)):
        row = [((*kinds, *skewed)[(turn + 3 - i) % 4], job) for i, job in enumerate(skewable)]
        row += [(kinds[(turn + i) % 3], job) for i, job in enumerate(plain) if turn < 3]
        by_kind = [[Cell(job, kind, repeat) for k, job in row if k == kind] for kind in KINDS]
        for cells_together in zip_longest(*by_kind):
            yield from (cell for cell in cells_together if cell is not None)


def sessions(cell: Cell) -> list[tuple[str, list[str]]]:
    """Modes of load balancing in the order in which their clusters start, with their arms' order.

    >>> sorted(sessions(Cell("sales", "equal")))[1:]
    [('SLOTS', ['SLOTS', 'SLOTS again']), ('TASKS', ['TASKS'])]
    """
    rng = cell.rng("order")
    first = ["NONE", MOVE]
    by_mode = [
        ("NONE", [first[i] for i in rng.permutation(2)]),
        ("SLOTS", ["SLOTS", AGAIN]),
        ("TASKS", ["TASKS"]),
    ]
    return [by_mode[i] for i in rng.permutation(len(by_mode))]
