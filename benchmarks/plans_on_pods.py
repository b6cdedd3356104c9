"""Plans of equal pods, applied by their patches, against one pod fewer and the autoscaler's rule.

    PYTHONPATH=tests/support STREAMPLACE_KUBERNETES=… python benchmarks/plans_on_pods.py [JOB…]

Protocol: a job whose operators set no parallelism runs at a base rate on two pods of `NOW` cores,
with the reporter. `flink advise` plans pods of `SIZES` cores for multiples of that rate. Its patch
is applied, together with the arguments for that rate, and the job is measured once it is steady;
likewise with one pod fewer. Beside it stand the pods by the rule of Flink's autoscaler (busy time
at a utilization of 0.7, pods as now), and the pods as they are. A line of
``assets/plans-on-pods.jsonl`` is appended for every plan, and plans that are there are not measured
again. With STREAMPLACE_OPERATOR, a real operator starts the jobs, else a stand-in. Each start is
from nothing, as generators keep their splits.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, nan
from pathlib import Path
from typing import Any

from flink_jars import build_jar
from flink_jobs import JOBS, ROOT, SOURCES, UNSEEN
from operator_stand_in import StandIn, reconciled, specification
from pods import NAMESPACE, PodCluster, kubernetes

from streamplace.engines.flink.local.dist import find_flink
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.steadiness import steady_profile
from streamplace.engines.flink.operator.mounting import reporter_files
from streamplace.engines.flink.operator.resource import FlinkResource, rest_of

FILE = ROOT / "docs/assets/plans-on-pods.jsonl"
BASE = {
    "word-count": 20_000,
    "click-analytics": 20_000,
    "riot-stats": 4_500,
    "yahoo-streaming": 40_000,
}
"""Job → base rate, which takes about a fifth of a core."""
TIMES, NOW, SIZES = (2, 4), 0.2, (0.2, 0.3, 0.4)
PER_CORE, PER_GB, MEMORY = 0.04, 0.002, "1024 MiB"
CARRIED, UTILIZATION, PATIENCE = 0.97, 0.7, 45.0
ADDRESS = f"kubernetes:{NAMESPACE}/job"


def main(jobs: Sequence[str], path: Path = FILE) -> None:
    """Measure what is missing of some jobs, and print the table of all."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["job"], row["times"]) for row in rows}
    missing = {job: [n for n in TIMES if (job, n) not in known] for job in jobs}
    with tempfile.TemporaryDirectory() as name:
        folder, flink = Path(name), find_flink(None)
        if any(missing.values()):
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
    for name, text in reporter_files(
        FlinkResource("FlinkDeployment", NAMESPACE, "job", document, document)
    ).items():
        (folder / name).write_text(text)
    pods.kubectl("apply", "--filename", str(folder / "reporter.json"))
    spec |= json.loads((folder / "patch.json").read_text())["spec"] | {
        "flinkConfiguration": {
            **spec["flinkConfiguration"],
            **json.loads((folder / "patch.json").read_text())["spec"]["flinkConfiguration"],
        }
    }
    with reconciled(pods, "job", spec, runs=True) as operator:
        plans = {number: advised(folder, number) for number in times}
        before = profile()
        for number, advice in plans.items():
            rate = number * BASE[job]
            change = advice["patch"]["spec"] if advice["patch"] else {}
            (pods_of_plan,) = advice["plan"]["machines"].values()
            (slots,) = advice["plan"]["slots"]["machines"].values()
            run = {"job": {**change.get("job", {}), "args": [str(rate)]}}
            yield {
                "job": job,
                "times": number,
                "rate": rate,
                "machines": advice["plan"]["machines"],
                "slots": slots,
                "cost": advice["plan"]["cost"],
                "bound": advice["plan"]["bound"],
                "predicted": advice["plan"]["carries"],
                "at_least": advice["plan"].get("at_least"),
                "now": advice["current"]["cost"],
                "autoscaler": by_autoscaler(before, number) * price(NOW),
                "measured": carried(operator, {**change, **run}),
                "fewer": carried(operator, fewer(change, run, pods_of_plan - 1, slots))
                if pods_of_plan > 1
                else None,
                "operator": "real" if os.environ.get("STREAMPLACE_OPERATOR") else "stand-in",
            }


def price(cores: float) -> float:
    """Price per hour of a pod."""
    return PER_CORE * cores + PER_GB * 1.073741824


def advised(folder: Path, times: int) -> dict[str, Any]:
    """Advice on the job, as the command prints it."""
    offers = "".join(
        f'[[offers]]\nname = "of {n:g}"\nmips = "{n * 2500:g} MIPS"\nmemory = "{MEMORY}"\n'
        for n in SIZES
    )
    (folder / "offers.toml").write_text(f"per_core = {PER_CORE}\nper_gb = {PER_GB}\n{offers}")
    (folder / "own.toml").write_text(f"seconds = 5\npatience = {PATIENCE}\n")
    given = ("--offers", folder / "offers.toml", "--settings", folder / "own.toml", "--json")
    command = ("flink", "advise", "--rest", ADDRESS, "--rate", f"{times}x", *map(str, given))
    done = subprocess.run([sys.executable, "-m", "streamplace", *command], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    advice: dict[str, Any] = json.loads(done.stdout)
    return advice


def profile() -> JobProfile:
    """The running job, once it is steady."""
    rest = rest_of(*ADDRESS.removeprefix("kubernetes:").split("/"))
    (job,) = rest.live_jobs()
    rest.wait_running(job, 120.0)
    return steady_profile(rest, job, 5.0, PATIENCE)


def carried(operator: StandIn, change: Mapping[str, Any]) -> dict[str, Any]:
    """Rate that a job sustains as changed, and whether it is held back."""
    operator.patch(change)
    operator.await_stable()
    flow = profile().flow
    return {"rate": flow.rate, "is_limited": flow.is_limited}


def fewer(
    change: Mapping[str, Any], run: Mapping[str, Any], number: int, slots: int
) -> dict[str, Any]:
    """The same change for another number of pods."""
    return {**change, "job": {**run["job"], "parallelism": number * slots}}


def by_autoscaler(before: JobProfile, times: int) -> int:
    """Pods of one slot by Flink's autoscaler: its target rate over its true processing rate."""
    pods = 1
    for task in before.tasks:
        busy = before.activity[task.id].busy or nan
        if busy == busy:
            pods = max(pods, ceil(times * busy / UTILIZATION))
    return pods


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Table of all plans."""
    text = (
        "| job | tuples/s | pods | per hour | carried | one fewer | autoscaler | as now |\n"
        "|---|---:|---|---:|---:|---:|---:|---:|\n"
    )

    def of(result: Mapping[str, Any] | None, rate: float) -> str:
        return "" if result is None else f"{result['rate'] / rate:.0%}"

    for row in rows:
        machines = ", ".join(
            f"{n} × {name.removeprefix('of ')}" for name, n in row["machines"].items()
        )
        cells = [
            row["job"], f"{row['rate']:,}", machines, f"{row['cost']:.3f}",
            of(row["measured"], row["rate"]), of(row["fewer"], row["rate"]),
            f"{row['autoscaler']:.3f}", f"{row['now']:.3f}",
        ]  # fmt: skip
        text += f"| {' | '.join(cells)} |\n"
    held = [row["measured"]["rate"] >= CARRIED * row["rate"] for row in rows]
    less = [row["fewer"]["rate"] < CARRIED * row["rate"] for row in rows if row["fewer"]]
    return f"{text}\n{sum(held)} of {len(held)} carry; {sum(less)} of {len(less)} fewer do not"


if __name__ == "__main__":
    main(sys.argv[1:] or [*BASE])
