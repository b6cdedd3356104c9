"""Plans for more of what jobs read from Kafka: what `flink advise` asks for, and what is enough.

    python benchmarks/kafka_plans.py --minutes 40
    python benchmarks/kafka_plans.py --table

Protocol: each job of tests/kafka runs at 4,000 tuples/s on four TaskManagers of 0.18 cores, as
Flink spreads it, and `flink advise` plans such TaskManagers for two and four times that rate. Then
the job runs at these rates, in random order, on one TaskManager, on two, and so on until it keeps
up with both: its lag is known and grows by less than 2 % of the rate in half a minute. A line of
``assets/kafka-plans.jsonl`` is appended for every run, so that a stopped command goes on. Needs
what against_flink.py needs.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
from against_cells import KAFKA, KINDS, Cell
from against_runs import INPUTS, Session, session
from flink_jobs import ROOT, streamplace
from kafka import kafka_flink, kafka_jobs
from studies import append_row, read_rows, table

from streamplace.errors import StreamplaceError
from streamplace.flink.local.session import find_flink
from streamplace.flink.measure.source_lag import source_flow
from streamplace.model.defaults import SPEED
from streamplace.model.units import mips

FILE = ROOT / "docs/assets/kafka-plans.jsonl"
KIND = "Kafka equal"
RATE, TIMES = 4_000, (2, 4)
WARM, WARM_UP, SECONDS = 100_000, 30.0, 30.0
"""Records that a throw-away job reads first; seconds before a measurement, and of it."""
GROWTH, MOST = 0.02, 4
Row = dict[str, Any]


@click.command()
@click.option("--minutes", type=float, default=40.0, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--table", is_flag=True, help="Measure nothing, and print the table.")
def main(minutes: float, seed: int, table: bool) -> None:
    """Plan, and measure how many TaskManagers are enough."""
    if table:
        click.echo(as_table(read_rows(FILE)))
        return
    deadline = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        flink = kafka_flink(find_flink(None), folder / "flink")
        jar = kafka_jobs(flink, folder / "kafka.jar")
        for job in random.Random(seed).sample(KAFKA, len(KAFKA)):
            while (number := missing(job, read_rows(FILE))) is not None:
                if time.monotonic() > deadline:
                    return
                saved = Path(tempfile.mkdtemp(dir=folder))
                cell = Cell(job, KIND)
                with session(flink, jar, cell, "SLOTS", saved, number or 4, WARM) as made:
                    for row in [planned(made)] if number == 0 else sustained(made, number):
                        append_row(FILE, {"job": job, "number": number} | row)
                        click.echo(f"{job} on {number}: {row}", err=True)


def missing(job: str, rows: list[Row]) -> int | None:
    """TaskManagers of the next run of a job, 0 for its plans; None if all is known."""
    own = [row for row in rows if row["job"] == job]
    if not any("asked" in row for row in own):
        return 0
    seen = [row["number"] for row in own]
    if all(enough(own, times) for times in TIMES):
        return None
    return next((number for number in range(1, MOST + 1) if seen.count(number) < len(TIMES)), None)


def enough(rows: list[Row], times: int) -> int | None:
    """Fewest TaskManagers on which a job kept up with a multiple of the rate."""
    return min(
        (
            row["number"]
            for row in rows
            if row.get("times") == times
            and row.get("pending") is not None
            and row["growth"] < GROWTH * times * RATE
        ),
        default=None,
    )


@contextmanager
def running(made: Session, rate: int) -> Iterator[str]:
    """Run the job, warm, while its topics are fed; it has read all that waited."""
    assert made.broker is not None
    with ExitStack() as stack:
        for topic in INPUTS:
            stack.enter_context(made.broker.fed(topic, rate=rate, first=WARM, keys=1000, end=False))
        yield made.start()
        made.clear()


def planned(made: Session) -> Row:
    """What `flink advise` asks for, by multiple of the rate."""
    asked: Row = {}
    offers = made.folder / "offers.toml"
    (cores,) = set(KINDS[KIND].cores)
    speed = f"{cores * mips(SPEED):g} MIPS"
    offers.write_text(
        f"[[offers]]\nname = 'one'\nprice = 1\ncores = 1\nmips = '{speed}'\nmemory = '2 GB'\n"
    )
    with running(made, RATE):
        time.sleep(WARM_UP)
        for times in TIMES:
            words = ["--rest", made.cluster.url, "--rate", f"{times}x", "--offers", offers]
            store = str(made.folder)
            done = streamplace("flink", "advise", "--json", *words, XDG_STATE_HOME=store)
            plan = json.loads(done.stdout)["plan"] if done.returncode == 0 else {}
            asked[str(times)] = {"plan": plan, "told": done.stderr}
    return {"asked": asked}


def sustained(made: Session, number: int) -> Iterator[Row]:
    """Whether the job keeps up with each rate on so many TaskManagers."""
    for times in random.sample(TIMES, len(TIMES)):
        rate = times * RATE
        try:
            with running(made, rate) as job:
                time.sleep(WARM_UP)
                flow = source_flow(made.cluster.rest, job, SECONDS)
        except StreamplaceError as error:
            yield {"times": times, "failed": str(error)}
            continue
        assert flow is not None
        yield {"times": times, "rate": flow.rate, "pending": flow.pending, "growth": flow.growth}


def as_table(rows: list[Row]) -> str:
    """TaskManagers that are planned and that are enough, as Markdown."""
    lines = []
    for job in KAFKA:
        own = [row for row in rows if row["job"] == job]
        plans = next((row["asked"] for row in own if "asked" in row), {})
        for times in TIMES:
            machines = plans.get(str(times), {}).get("plan", {}).get("machines", {})
            plan, least = sum(machines.values()) or "none", enough(own, times) or f"> {MOST}"
            lines.append((job, f"{times * RATE:,}", plan, least))
    return table(("job", "rate of each topic", "planned", "enough"), lines)


if __name__ == "__main__":
    main()
