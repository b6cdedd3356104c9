"""Flink jobs of benchmarks: main classes, offers of sources, their jar, and how they start."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flink_jars import build_jar

from streamplace.flink.local.session import Flink
from streamplace.flink.rest.client import Rest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "examples/flink", ROOT / "datasets/applications/jobs", ROOT / "benchmarks/jobs")
Row = Mapping[str, Any]
NO_PARALLELISM: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class FlinkJob:
    """A job of which the rate of the sources can be set."""

    entry: str  # main class
    rate: float  # tuples/s offered by default: more than any placement carries
    operators: tuple[Row, ...] = ()  # the graph, if the main class is GraphJob
    streams: tuple[Row, ...] = ()

    def arguments(
        self, rate: float | None = None, parallelism: Mapping[str, int] = NO_PARALLELISM
    ) -> list[str]:
        """Arguments of the main class; of a GraphJob also with so many subtasks per operator.

        >>> FlinkJob("WordCount", 1e6).arguments(), FlinkJob("WordCount", 1e6).arguments(2.5)
        (['1000000'], ['2.5'])
        """
        offered = self.rate if rate is None else rate
        if not self.operators:
            return [f"{offered:.10g}"]
        fed = {stream["to"] for stream in self.streams}
        rows: list[dict[str, Any]] = [
            {**row}
            | ({} if row["name"] in fed else {"rate": offered})
            | {"parallelism": parallelism.get(row["name"], 1)}
            for row in self.operators
        ]
        return [json.dumps({"operators": rows, "streams": self.streams})]


def jobs_jar(flink: Flink, jar: Path, *others: Path) -> Path:
    """Build all jobs, and other Java files, into a jar; returns it."""
    java = [file for folder in SOURCES for file in folder.glob("*.java")]
    build_jar(flink, sorted([*java, *others]), jar)
    return jar


def submit(
    rest: Rest,
    jar: str,
    entry: str,
    arguments: Sequence[str],
    parallelism: int,
    settings: Mapping[str, Any] | None = None,
) -> str:
    """Submit a job of an uploaded jar, with a default parallelism; returns its id."""
    request: dict[str, Any] = {"entryClass": entry, "programArgsList": [*arguments]}
    request |= {"parallelism": parallelism}
    request |= {"flinkConfiguration": dict(settings)} if settings else {}
    return str(rest.post(f"/jars/{quote(jar, safe='')}/run", request)["jobid"])


def command(*words: object) -> list[str]:
    """Words of a command of streamplace, as a user types it."""
    return [sys.executable, "-m", "streamplace", *map(str, words)]


def streamplace(
    *words: object, timeout: float | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of streamplace as a user does, with variables of the environment."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=timeout, env=environment
    )


HEAVY = FlinkJob(
    "GraphJob",
    20_000,
    (
        {"name": "src", "payload": 64},
        {"name": "w1", "rounds": 20_000, "payload": 64},
        {"name": "w2", "rounds": 40_000, "payload": 64},
        {"name": "w3", "rounds": 60_000, "payload": 64},
        {"name": "sink"},
    ),
    (
        {"from": "src", "to": "w1"},
        {"from": "w1", "to": "w2"},
        {"from": "w2", "to": "w3"},
        {"from": "w3", "to": "sink"},
    ),
)
BIG = FlinkJob(
    "GraphJob",
    5_000,
    (
        {"name": "src", "payload": 8000},
        {"name": "left", "rounds": 20_000, "payload": 4000},
        {"name": "right", "rounds": 20_000, "payload": 2000},
        {"name": "join", "rounds": 20_000, "payload": 8000},
        {"name": "sink"},
    ),
    (
        {"from": "src", "to": "left"},
        {"from": "src", "to": "right"},
        {"from": "left", "to": "join"},
        {"from": "right", "to": "join"},
        {"from": "join", "to": "sink", "selectivity": 0.5},
    ),
)
JOBS = {
    "heavy pipeline": HEAVY,
    "web shop log": FlinkJob("LogJob", 5_000),
    "riot-etl": FlinkJob("RiotEtl", 1_000_000),
    "big diamond": BIG,
    "nexmark-q3": FlinkJob("NexmarkQ3", 3_000_000),
    "word-count": FlinkJob("WordCount", 1_000_000),
    "meter readings": FlinkJob("Readings", 1_000_000),
    "payment rules": FlinkJob("Rules", 1_000_000),
}
UNSEEN = {
    "click-analytics": FlinkJob("ClickAnalytics", 1_000_000),
    "riot-stats": FlinkJob("RiotStats", 1_000_000),
    "voip-stream": FlinkJob("VoipStream", 1_000_000),
    "yahoo-streaming": FlinkJob("YahooStreaming", 1_000_000),
}
"""Four jobs drawn from those of datasets/applications that no parameter was chosen with."""
