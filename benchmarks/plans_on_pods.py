"""Plans of equal pods, applied by their patches, against fewer or smaller pods and the autoscaler.

    PYTHONPATH=tests/support STREAMPLACE_KUBERNETES=… python benchmarks/plans_on_pods.py [JOB…]

Protocol: a job whose operators set no parallelism runs at a base rate on two pods of `NOW` cores,
with the reporter, for `WARM_UP` seconds, since so small pods compile for minutes. `flink advise`
plans pods of `SIZES` cores for multiples of that rate. Its pods are deployed, with the arguments
for that rate, and the job is measured once it is steady; likewise with one pod fewer, with as many
pods of the next smaller size, with the pods by the rule of Flink's autoscaler (of the busiest task,
pods of the size that they have), and with the pods as they are. A line of
``assets/plans-on-pods.jsonl`` is appended for every plan, and plans that are there are not measured
again. With STREAMPLACE_OPERATOR, a real operator starts the jobs, else a stand-in. Each start is
from nothing, as generators keep their splits.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flink_clusters import awaited
from flink_jars import build_jar
from flink_jobs import JOBS, ROOT, SOURCES, UNSEEN
from operator_stand_in import StandIn, reconciled, specification
from pods import NAMESPACE, PodCluster, kubernetes

from streamplace.control.policies.autoscaler import CATCH_UP, RESTART, TARGET
from streamplace.flink.local.dist import find_flink
from streamplace.flink.measure.profile import JobProfile
from streamplace.flink.measure.steadiness import steady_profile
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.mounting import CONFIG_MAP, reporter_files, reporter_patch
from streamplace.flink.operator.resource import FlinkResource, rest_of
from streamplace.flink.rest.client import RUNNING, FlinkError, Rest

FILE = ROOT / "docs/assets/plans-on-pods.jsonl"
BASE = {"word-count": 8_000, "click-analytics": 7_000, "riot-stats": 500, "yahoo-streaming": 13_000}
"""Job → base rate, which two pods as now carry."""
TIMES, NOW, SIZES = (2, 3), 0.2, (0.2, 0.3, 0.4)
PER_CORE, PER_GB, MEMORY = 0.04, 0.002, "1024 MiB"
CARRIED, PATIENCE, WARM_UP = 0.97, 45.0, 120.0
COLUMNS = {
    "plan": "plan",
    "fewer": "one pod less",
    "smaller": "smaller pods",
    "autoscaler": "autoscaler",
    "now": "as it is",
}
ADDRESS = f"kubernetes:{NAMESPACE}/job"


def main(jobs: Sequence[str], path: Path = FILE) -> None:
    """Measure what is missing of some jobs, and print the table of all."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["job"], row["times"]) for row in rows}
    missing = {job: [n for n in TIMES if (job, n) not in known] for job in jobs}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if any(missing.values()):
            flink = find_flink(None)
            with kubernetes(flink, folder) as pods:
                java = [file for source in SOURCES for file in source.glob("*.java")]
                build_jar(flink, sorted(java), pods.home / "usrlib" / "jobs.jar")
                os.environ["KUBECONFIG"] = str(pods.work / "kubeconfig")
                for job, times in missing.items():
                    for row in measured(pods, job, times, folder) if times else ():
                        rows.append(row)
                        with path.open("a") as file:
                            file.write(json.dumps(row) + "\n")
    print(as_table(rows))


def measured(
    pods: PodCluster, job: str, times: Sequence[int], folder: Path
) -> Iterator[dict[str, Any]]:
    """Rows of a job: one for each multiple of its base rate."""
    entry = (JOBS | UNSEEN)[job].entry
    spec = specification(**{"taskmanager.numberOfTaskSlots": "1"})
    spec["job"] |= {
        "jarURI": "local:///opt/flink/usrlib/jobs.jar",
        "entryClass": entry,
        "args": [str(BASE[job])],
        "parallelism": 2,
        "upgradeMode": "stateless",
    }
    spec["taskManager"]["resource"]["cpu"] = NOW
    document = {"metadata": {"name": "job", "namespace": NAMESPACE}, "spec": spec}
    resource = FlinkResource("FlinkDeployment", NAMESPACE, "job", document, document)
    (folder / CONFIG_MAP).write_text(reporter_files(resource)[CONFIG_MAP])
    pods.kubectl("apply", "--filename", str(folder / CONFIG_MAP))
    spec = merged(spec, reporter_patch(resource))
    with reconciled(pods, "job", spec, runs=True) as operator:
        profile()
        time.sleep(WARM_UP)
        plans = {number: advised(folder, number * BASE[job]) for number in times}
        before = profile()
        found: dict[Pods, dict[str, Any]] = {}
        for number, advice in plans.items():
            plan, rate = advice["plan"], number * BASE[job]
            ((size, pods_of_plan),) = plan["machines"].items()
            (slots,) = plan["slots"]["machines"].values()
            planned = Pods(float(size.removeprefix("of ")), pods_of_plan, slots)
            now = Pods(NOW, 2, 1)
            deployed = {
                "plan": planned,
                "fewer": planned._replace(number=pods_of_plan - 1),
                "smaller": planned._replace(cores=next_smaller(planned.cores)),
                "autoscaler": now._replace(number=by_autoscaler(before, number)),
                "now": now,
            }
            # What is held back at one rate carries no more at a higher one.
            found = {pods: row for pods, row in found.items() if row["is_limited"]}
            for each in deployed.values():
                if each.exists and each not in found:
                    found[each] = carried(operator, each, rate)
            yield {
                "job": job,
                "times": number,
                "rate": rate,
                "bound": plan["bound"],
                "predicted": plan["carries"],
                "at_least": plan.get("at_least"),
                "operator": "real" if os.environ.get("STREAMPLACE_OPERATOR") else "stand-in",
                **{
                    name: {**each._asdict(), "cost": price(each), **found[each]}
                    for name, each in deployed.items()
                    if each.exists
                },
            }


class Pods(NamedTuple):
    """Equal pods, and the slots of each."""

    cores: float
    number: int
    slots: int

    @property
    def exists(self) -> bool:
        """Whether there are any, of a size that is offered."""
        return self.number > 0 and self.cores > 0


def next_smaller(cores: float) -> float:
    """Return the next smaller size; 0 if there is none."""
    return max((size for size in SIZES if size < cores), default=0.0)


def price(pods: Pods) -> float:
    """Price per hour."""
    return pods.number * (PER_CORE * pods.cores + PER_GB * 1.073741824)


def advised(folder: Path, rate: int) -> dict[str, Any]:
    """Advice on the job, as the command prints it."""
    offers = "".join(
        f'[[offers]]\nname = "of {n:g}"\nmips = "{n * 2500:g} MIPS"\nmemory = "{MEMORY}"\n'
        for n in SIZES
    )
    (folder / "offers.toml").write_text(f"per_core = {PER_CORE}\nper_gb = {PER_GB}\n{offers}")
    (folder / "own.toml").write_text(f"seconds = 5\npatience = {PATIENCE}\n")
    given = ("--offers", folder / "offers.toml", "--settings", folder / "own.toml", "--json")
    command = ("flink", "advise", "--rest", ADDRESS, "--rate", str(rate), *map(str, given))
    done = subprocess.run([sys.executable, "-m", "streamplace", *command], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    advice: dict[str, Any] = json.loads(done.stdout)
    return advice


def rest() -> Rest:
    """REST interface of the job's cluster."""
    return rest_of(*ADDRESS.removeprefix("kubernetes:").split("/"))


def profile() -> JobProfile:
    """The running job, once it is steady."""
    own = rest()
    (job,) = own.live_jobs()
    own.wait_running(job, 120.0)
    return steady_profile(own, job, 5.0, PATIENCE)


def carried(operator: StandIn, pods: Pods, rate: int) -> dict[str, Any]:
    """Rate that a job sustains on some pods, whether it is held back, and when it ran on them."""
    patch = {
        "job": {"args": [str(rate)], "parallelism": pods.number * pods.slots},
        "taskManager": {"resource": {"cpu": pods.cores}},
        "flinkConfiguration": {"taskmanager.numberOfTaskSlots": str(pods.slots)},
    }
    began = time.time()
    operator.patch(patch)
    awaited(lambda: runs_since(began), 240.0)
    seconds = time.time() - began
    operator.await_stable()
    flow = profile().flow
    return {"rate": flow.rate, "is_limited": flow.is_limited, "seconds": round(seconds, 1)}


def runs_since(moment: float) -> bool:
    """Whether all subtasks of a job run that began after a moment."""
    with suppress(FlinkError):
        own = rest()
        for job in own.live_jobs():
            document = own.job(job)
            states = {vertex["status"] for vertex in document["vertices"]}
            if document["timestamps"]["CREATED"] >= 1000 * moment and states == {RUNNING}:
                return True
    return False


def by_autoscaler(before: JobProfile, times: int) -> int:
    """Pods of one slot by Flink's autoscaler: its target rate over its true processing rate."""
    busy = max(before.activity[task.id].busy or 0.0 for task in before.tasks)
    return max(1, ceil(times * busy * (1 / TARGET + RESTART / CATCH_UP)))


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Table of all plans: pods, and what they carry of the rate."""
    heads = "".join(f"{head}|carries|" for head in COLUMNS.values())
    lines = [f"|job|tuples/s|{heads}", f"|---|---:|{'---:|---:|' * len(COLUMNS)}"]
    for row in rows:
        cells = [row["job"], f"{row['rate']:,}"]
        for name in COLUMNS:
            pods = row.get(name)
            cells += (
                [f"{pods['number']}×{pods['cores']:g}", f"{part(row, name):.0%}"]
                if pods
                else ["", ""]
            )
        lines += [f"|{'|'.join(cells)}|"]
    for name in COLUMNS:
        if not (of_column := [row for row in rows if name in row]):
            continue
        carry = sum(part(row, name) >= CARRIED for row in of_column)
        cost = np.median([row[name]["cost"] / row["plan"]["cost"] for row in of_column])
        lines += [f"{name}: {carry} of {len(of_column)} carry, {cost:.2f} × the cost of the plan"]
    started = [row[name] for row in rows for name in COLUMNS if "seconds" in row.get(name, {})]
    if seconds := [pods["seconds"] for pods in started]:
        quantiles = ", ".join(f"{n:.0f}" for n in np.quantile(seconds, (0.05, 0.5, 0.95)))
        lines += [f"seconds from a patch until the job runs, 5, 50 and 95 %: {quantiles}"]
    return "\n".join(lines)


def part(row: Mapping[str, Any], name: str) -> float:
    """What some pods carry of the rate, at most all of it."""
    return min(1.0, float(row[name]["rate"]) / float(row["rate"]))


if __name__ == "__main__":
    main(sys.argv[1:] or [*BASE])
