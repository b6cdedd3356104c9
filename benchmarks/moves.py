"""How long a job stands still while it is moved: outages of many moves of one job on a real Flink.

    python benchmarks/moves.py --moves 20 -o moves.json

Flink runs on this machine, one TaskManager per device. The job is `examples/flink/LogJob.java`,
which is moved from savepoint to savepoint, each time by one device.
"""

import json
import tempfile
from pathlib import Path

import click
import numpy as np
from flink_jars import build_jar

from streamplace.flink.layout import Layout
from streamplace.flink.local.session import find_flink, local_cluster
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.program.program import Program
from streamplace.flink.rest.plan import layout_of

SOURCE = Path(__file__).parents[1] / "examples" / "flink" / "LogJob.java"


@click.command()
@click.option("--moves", type=click.IntRange(2), default=20, show_default=True)
@click.option("--devices", type=click.IntRange(2, 64), default=5, show_default=True)
@click.option("--rate", default="200", show_default=True, help="Lines per second.")
@click.option("--backend", default="hashmap", show_default=True, help="Where state is kept.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Every move, as JSON.")
def main(moves: int, devices: int, rate: str, backend: str, output: Path | None) -> None:
    """Move a job to and fro, and print quantiles of its outages."""
    flink, names = find_flink(None), [f"dev-{i}" for i in range(devices)]
    with tempfile.TemporaryDirectory() as folder, local_cluster(flink, names) as cluster:
        rest, jar = cluster.rest, Path(folder) / "log-job.jar"
        build_jar(flink, [SOURCE], jar)
        settings = {"state.backend.type": backend, "execution.checkpointing.interval": "10 s"}
        program = Program(jar, "LogJob", (rate,), settings=settings)
        job = rest.post(
            f"/jars/{rest.upload(jar)}/run",
            {"entryClass": "LogJob", "programArgsList": [rate], "flinkConfiguration": settings},
        )["jobid"]
        rest.wait_running(job)
        operators = layout_of(rest, job, rest.job(job))
        move = FlinkMove(
            rest,
            program,
            lambda _: None,
            MoveSettings((Path(folder) / "saved").as_uri(), settle=0.0),
        )
        outages = []
        for i in range(moves):
            places = {
                name: [names[(k + i) % devices]] * len(now)
                for k, (name, now) in enumerate(operators.items())
            }
            moved = move.run(move.plan(job, Layout(places)))
            job = moved.job
            outages.append(moved.interruption)
            click.echo(f"{i + 1}: {moved.interruption:.2f} s", err=True)
        rest.cancel(job)
    quantiles = np.quantile(outages, [0.0, 0.5, 0.9, 1.0])
    click.echo(f"{moves} moves of {len(operators)} operators on {devices} devices, {backend}")
    least, median, most_of, most = quantiles
    click.echo(
        f"outage in s: least {least:.2f}, median {median:.2f}, 90 % {most_of:.2f}, most {most:.2f}"
    )
    if output is not None:
        output.write_text(json.dumps({"outages": outages}) + "\n")


if __name__ == "__main__":
    main()
