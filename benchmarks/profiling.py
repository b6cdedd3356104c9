"""Profiles of jobs with named operators and with default names, and what is predicted from them.

    python benchmarks/profiling.py -o profiling.json

Two jobs with fast tuples run on four TaskManagers of a quarter of a core. Each is profiled once,
where Flink itself puts it; the model is then asked about that placement and about others, drawn at
random, on which the job is measured afterwards. Needs Linux, root and a JDK; a run takes half a
minute.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import click
import numpy as np
from calibration import BANDWIDTH, CORES, DEVICES, SETTLE, WARM_UP, drawn
from flink_jobs import SOURCES
from limiting import limit, measured_devices, release

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink, find_flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.measure.graph import Agreement, agreement, measured_graph
from streamplace.engines.flink.measure.profile import JobProfile, profile
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

JOBS = {"meter readings": "Readings", "payment rules": "Rules"}
RATE = "1000000"
"""Tuples/s that sources offer: more than any placement carries."""
SECONDS = 15.0
MIPS = 1000.0
Row = dict[str, str | float]


@click.command()
@click.option("--placements", type=click.IntRange(1), default=4, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Every run, as JSON.")
def main(placements: int, output: Path | None) -> None:
    """Print how far predictions are from what is measured, with names and without."""
    flink = find_flink(None)
    with (
        tempfile.TemporaryDirectory() as folder,
        measured_devices(flink, DEVICES, cores=CORES, bandwidth_bps=BANDWIDTH) as cluster,
    ):
        jar = Path(folder) / "jobs.jar"
        build_jar(flink, sorted(file for f in SOURCES for file in f.glob("*.java")), jar)
        rows = [
            row
            for job, entry in JOBS.items()
            for names in ("named", "default names")
            for row in runs(flink, cluster, jar, (job, entry, names), placements)
        ]
    if output is not None:
        output.write_text(json.dumps(rows, indent=1) + "\n")
    for names in ("named", "default names"):
        own = [abs(row["error"]) for row in rows if row["names"] == names and row["own"]]
        others = [abs(row["error"]) for row in rows if row["names"] == names and not row["own"]]
        click.echo(
            f"{names}: profiled placement within {max(own):.0%}, "
            f"others {median(others):.0%} in the median, {max(others):.0%} at most"
        )


def runs(
    flink: Flink, cluster: LocalCluster, jar: Path, job: tuple[str, str, str], placements: int
) -> Iterator[Row]:
    """Profile a job where Flink puts it, then measure it on other placements."""
    title, entry, names = job
    rest, arguments = cluster.rest, (RATE, *(("unnamed",) if names != "named" else ()))
    release(cluster)
    started = rest.run_jar(rest.upload(jar), entry, [*arguments])
    rest.wait_running(started)
    first = watched(cluster, rest, started)
    yield row_of(title, names, checked(first, first), own=True)
    counts = {task.name: task.parallelism for task in first.tasks}
    rng = np.random.default_rng(0)
    for _ in range(placements):
        vectors = drawn(counts, rng)
        started = apply(rest, flink, Program(jar, entry, arguments), Layout(vectors), seconds=100)
        yield row_of(title, names, checked(first, watched(cluster, rest, started)), own=False)


def watched(cluster: LocalCluster, rest: Rest, job: str) -> JobProfile:
    """Profile of a job that has warmed up; it is cancelled, and its devices are free again."""
    time.sleep(WARM_UP)
    limit(cluster, dict.fromkeys(DEVICES, CORES))
    time.sleep(SETTLE)
    seen = profile(rest, job, SECONDS)
    rest.cancel(job)
    release(cluster)
    return seen


def checked(first: JobProfile, seen: JobProfile) -> Agreement:
    """Compare the first profile's prediction for another placement with the measurement there."""
    assert first.present is not None
    assert seen.present is not None
    devices: Mapping[str, Sequence[str]] = seen.present.devices
    predicted = agreement(
        measured_graph(first, MIPS),
        first.present._replace(devices=devices),
        first.sending,
        is_limited=True,
    )
    measured = agreement(measured_graph(seen, MIPS), seen.present, seen.sending, is_limited=True)
    assert predicted is not None
    assert measured is not None
    return measured._replace(predicted=predicted.predicted)


def row_of(job: str, names: str, check: Agreement, *, own: bool) -> Row:
    """Print a run and return it."""
    which = "profiled placement" if own else "another"
    click.echo(
        f"{job}, {names}, {which}: predicted {check.predicted:,.0f}, measured "
        f"{check.measured:,.0f} tuples/s ({check.error:+.0%})"
    )
    return {
        "job": job,
        "names": names,
        "own": own,
        "predicted": check.predicted,
        "measured": check.measured,
        "error": check.error,
    }


if __name__ == "__main__":
    main()
