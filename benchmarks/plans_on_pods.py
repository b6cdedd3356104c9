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
import sys
import time
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flink_jobs import JOBS, ROOT, UNSEEN, streamplace
from operator_stand_in import StandIn
from pod_runs import ADDRESS, OPERATOR, Rows, completed, deployed, rest, restarted
from pods import PodCluster
from studies import read_rows

from streamplace.control.policies.autoscaler import CATCH_UP, RESTART, TARGET
from streamplace.flink.measure.profile import JobProfile, steady_profile

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


def main(jobs: Sequence[str], path: Path = FILE) -> None:
    """Measure what is missing of some jobs, and print the table of all."""
    known = {(row["job"], row["times"]) for row in read_rows(path)}
    missing = {job: [n for n in TIMES if (job, n) not in known] for job in jobs}
    print(as_table(completed(path, missing, measured)))


def measured(pods: PodCluster, job: str, times: Sequence[int]) -> Rows:
    """Rows of a job: one for each multiple of its base rate."""
    entry, base = (JOBS | UNSEEN)[job].entry, [str(BASE[job])]
    with deployed(pods, entry, base, 2, cores=NOW, slots=1) as operator:
        profile()
        time.sleep(WARM_UP)
        plans = {number: advised(pods.work, number * BASE[job]) for number in times}
        before = profile()
        found: dict[Pods, dict[str, Any]] = {}
        for number, advice in plans.items():
            plan, rate = advice["plan"], number * BASE[job]
            ((size, pods_of_plan),) = plan["machines"].items()
            (slots,) = plan["slots"]["machines"].values()
            planned = Pods(float(size.removeprefix("of ")), pods_of_plan, slots)
            now = Pods(NOW, 2, 1)
            sizes = {
                "plan": planned,
                "fewer": planned._replace(number=pods_of_plan - 1),
                "smaller": planned._replace(cores=next_smaller(planned.cores)),
                "autoscaler": now._replace(number=by_autoscaler(before, number)),
                "now": now,
            }
            # What is held back at one rate carries no more at a higher one.
            found = {pods: row for pods, row in found.items() if row["is_limited"]}
            for each in sizes.values():
                if each.exists and each not in found:
                    found[each] = carried(operator, each, rate)
            yield {
                "job": job,
                "times": number,
                "rate": rate,
                "bound": plan["bound"],
                "predicted": plan["carries"],
                "at_least": plan.get("at_least"),
                "operator": OPERATOR,
                **{
                    name: {**each._asdict(), "cost": price(each), **found[each]}
                    for name, each in sizes.items()
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
    done = streamplace("flink", "advise", "--rest", ADDRESS, "--rate", rate, *given)
    assert done.returncode == 0, done.stderr
    advice: dict[str, Any] = json.loads(done.stdout)
    return advice


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
    seconds = restarted(operator, patch)
    flow = profile().flow
    return {"rate": flow.rate, "is_limited": flow.is_limited, "seconds": seconds}


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
