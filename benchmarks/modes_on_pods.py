"""What one start in a balance mode of Flink tells of the mode, for jobs of Flink's operator.

    PYTHONPATH=tests/support STREAMPLACE_KUBERNETES=… python benchmarks/modes_on_pods.py [JOB…]

Protocol: a job runs on pods of `CORES` with two slots each, with the reporter. Each of Flink's
modes is started `STARTS` times, in random order; each start is a patch of the mode, as a trial of
it would be. After `WARM_UP` seconds the job is measured until it is steady, and the rates of all
modes are predicted from this measurement. A line of ``assets/modes-on-pods.jsonl`` is appended for
every start, and starts that are there are not repeated. With STREAMPLACE_OPERATOR, a real operator
starts the jobs, else a stand-in.

The table says what a choice of a mode is worth, by the mean of its starts: of the mode whose start
was the fastest of one start each, for all such starts, and of the mode that is predicted to be the
fastest from one start. Without Kubernetes, only the table is printed.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any

import numpy as np
from flink_clusters import awaited
from flink_jars import build_jar
from flink_jobs import JOBS, ROOT, SOURCES
from operator_stand_in import StandIn, reconciled, specification
from plans_on_pods import CONFIG_MAP, rest, runs_since
from pods import NAMESPACE, VARIABLE, PodCluster, kubernetes

from streamplace.flink.decide.candidates import Question, candidates
from streamplace.flink.decide.slot_assignment import MODE_SETTING, MODES
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.local.dist import find_flink
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.mounting import reporter_files, reporter_patch
from streamplace.flink.operator.resource import FlinkResource
from streamplace.flink.rest.plan import layout_of
from streamplace.flink.watch.pods import numbered

FILE = ROOT / "docs/assets/modes-on-pods.jsonl"
STARTS, CORES, WARM_UP, WINDOW = 3, 0.25, 20.0, 5.0
PARALLELISM: Mapping[str, Mapping[str, int]] = {
    "heavy pipeline": {"w1": 1, "w2": 2, "w3": 4},
    "big diamond": {"left": 2, "right": 1, "join": 4},
    "web shop log": {},
}
"""Job → subtasks of its operators; four where nothing is said, and one of sources and sinks."""
Row = Mapping[str, Any]


def main(jobs: Sequence[str], path: Path = FILE) -> None:
    """Measure the starts that are missing, and print the table of all."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    missing = {job: unmeasured(rows, job) for job in jobs}
    if VARIABLE in os.environ and any(missing.values()):
        with tempfile.TemporaryDirectory() as name:
            flink = find_flink(None)
            with kubernetes(flink, Path(name)) as pods:
                java = [file for source in SOURCES for file in source.glob("*.java")]
                build_jar(flink, sorted(java), pods.home / "usrlib" / "jobs.jar")
                os.environ["KUBECONFIG"] = str(pods.work / "kubeconfig")
                for job, modes in missing.items():
                    for row in started(pods, job, modes) if modes else ():
                        rows.append(row)
                        with path.open("a") as file:
                            file.write(json.dumps(row) + "\n")
    print(as_table(rows))


def unmeasured(rows: Sequence[Row], job: str) -> list[str]:
    """Modes of the starts of a job that are missing, in random order."""
    known = [row["mode"] for row in rows if row["job"] == job]
    modes = [mode for mode in MODES for _ in range(STARTS - known.count(mode))]
    return [str(mode) for mode in np.random.default_rng(len(job)).permutation(modes)]


def started(pods: PodCluster, job: str, modes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Start a job in one mode after another; yield what was measured."""
    own = JOBS[job]
    spec = specification(**{"taskmanager.numberOfTaskSlots": "2"})
    spec["job"] |= {
        "jarURI": "local:///opt/flink/usrlib/jobs.jar",
        "entryClass": own.entry,
        "args": own.arguments(parallelism=PARALLELISM[job]),
        "parallelism": 4,
        "upgradeMode": "stateless",
    }
    spec["jobManager"]["resource"]["cpu"] = 0.5
    spec["taskManager"]["resource"]["cpu"] = CORES
    document = {"metadata": {"name": "job", "namespace": NAMESPACE}, "spec": spec}
    resource = FlinkResource("FlinkDeployment", NAMESPACE, "job", document, document)
    config_map = pods.work / CONFIG_MAP
    config_map.write_text(reporter_files(resource)[CONFIG_MAP])
    pods.kubectl("apply", "--filename", str(config_map))
    with reconciled(pods, "job", merged(spec, reporter_patch(resource)), runs=True) as operator:
        for number, mode in enumerate(modes):
            yield {"job": job, "mode": mode, **of_start(operator, mode, number)}


def of_start(operator: StandIn, mode: str, number: int) -> dict[str, Any]:
    """Start the job in a mode; return its rate, its layout, and what is predicted from there."""
    began = time.time()
    operator.patch({"flinkConfiguration": {MODE_SETTING: mode}, "restartNonce": number + 1})
    awaited(lambda: runs_since(began), 240.0)
    seconds = time.time() - began
    operator.await_stable()
    time.sleep(WARM_UP)
    print("measuring", mode, file=sys.stderr, flush=True)
    engine = FlinkEngine(rest())
    job = engine.job()
    measured = engine.measure(job, WINDOW)
    layout = layout_of(engine.rest, job, engine.rest.running_job(job))
    print("measured", measured.flow.rate, file=sys.stderr, flush=True)
    question = Question.of(engine.rest, job, measured, layout, None, None)
    return {
        "rate": measured.flow.rate,
        "is_limited": measured.flow.is_limited,
        "seconds": round(seconds, 1),
        "layout": dict(numbered(layout)),
        "predicted": {c.mode: [*c.shown] for c in candidates(question) if c.mode},
        "operator": "real" if os.environ.get("STREAMPLACE_OPERATOR") else "stand-in",
    }


def as_table(rows: Sequence[Row]) -> str:
    """Table of modes, and what one start tells of them."""
    lines = ["|job|mode|tuples/s of each start|layouts|", "|---|---|---:|---:|"]
    spreads: list[float] = []
    gains, by_start, by_prediction, errors = [], [], [], []
    for job in dict.fromkeys(row["job"] for row in rows):
        of_job = [row for row in rows if row["job"] == job]
        rates = {m: [row["rate"] for row in of_job if row["mode"] == m] for m in MODES}
        for mode, own in rates.items():
            layouts = {shape(row["layout"]) for row in of_job if row["mode"] == mode}
            told = ", ".join(f"{rate:,.0f}" for rate in own)
            lines.append(f"|{job}|{mode}|{told}|{len(layouts)}|")
            spreads.append(max(own) / min(own))
        means = {mode: geometric_mean(own) for mode, own in rates.items()}
        best = max(means.values())
        gains.append(best / means["NONE"])
        for one_each in product(*rates.values()):  # a start of each mode, of which the best stays
            found = dict(zip(rates, one_each, strict=True))
            by_start.append(means[max(found, key=found.__getitem__)] / best)
        for row in of_job:
            predicted = {mode: value for mode, (_, value, _) in row["predicted"].items()}
            by_prediction.append(means[max(predicted, key=predicted.__getitem__)] / best)
            others = {mode: value for mode, value in predicted.items() if mode != row["mode"]}
            errors += [abs(value / means[mode] - 1) for mode, value in others.items()]
    seconds = [row["seconds"] for row in rows]
    return "\n".join(
        [
            *lines,
            f"the best mode over NONE, by the means: {', '.join(f'{g:.2f}' for g in gains)}",
            f"fastest over slowest start of a mode: median {median(spreads):.2f}, "
            f"most {max(spreads):.2f}",
            f"the mode of the fastest of one start each: {mean(by_start):.1%} of the best mode, "
            f"least {min(by_start):.1%}",
            f"the mode that is predicted from one start: {mean(by_prediction):.1%}, "
            f"least {min(by_prediction):.1%}",
            f"predicted rates of other modes are off by {median(errors):.1%} in the median, "
            f"at most {max(errors):.1%}",
            f"seconds without the job: median {median(seconds):.0f}, most {max(seconds):.0f}",
        ]
    )


def shape(layout: Mapping[str, Sequence[str]]) -> frozenset[tuple[tuple[str, int], ...]]:
    """The subtasks of each pod, whatever its number."""
    pods: dict[str, dict[str, int]] = {}
    for task, places in layout.items():
        for pod in places:
            own = pods.setdefault(pod, {})
            own[task] = own.get(task, 0) + 1
    return frozenset(tuple(sorted(own.items())) for own in pods.values())


if __name__ == "__main__":
    unknown = {*sys.argv[1:]} - {*PARALLELISM}
    assert not unknown, f"jobs are {[*PARALLELISM]}"
    main(sys.argv[1:] or [*PARALLELISM])
