"""Predicted against measured: jobs on a real Flink whose devices have little CPU and network.

Run ``python benchmarks/calibration.py -o docs/``. Every job is measured under two probe placements,
all on one device and dealt out in turn, and under ten others that are then predicted from the
probes. A line of ``assets/calibration.jsonl`` is appended for every run, so that a stopped command
goes on; afterwards it prints its table, and ``assets/calibration.svg`` is drawn. Needs
Linux, root and a JDK, and takes about 25 seconds a run. ``--table`` measures nothing.
"""

import re
import signal
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from flink_jobs import JOBS, ROOT, jobs_jar
from limited import limit, measured_devices, release, threads
from studies import append_row, rank_correlation, read_rows, table

from streamplace import Cluster, Operator, Stream, StreamGraph, simulate
from streamplace.drawing.figures import GREY, new_figure, save
from streamplace.flink.cpu.limits import CpuShare
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import Flink, LocalCluster, find_flink
from streamplace.flink.measure.cluster import FRAMING, slowness
from streamplace.flink.measure.sampling import sample
from streamplace.flink.measure.streams import (
    BYTES_PER_TUPLE,
    RemoteFlow,
    SendingCost,
    remote_shares,
)
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import Rest
from streamplace.flink.rest.plan import FlinkTask, read_plan
from streamplace.io.clusters import cluster_from_tables
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.expansion import Expansion, expand

PROBES = TOGETHER, IN_TURN, CHAINED = "together", "in turn", "chained"
MIPS = 1000.0
"""Speed of a whole core, a unit of account."""
OFFERED = 1e6
DIFFERENT = 2.0
"""Minimum ratio of mean tuple sizes for telling costs per tuple and per byte apart."""
LEAST_RATE = 60.0
"""Tuples/s that an operator reads at least for its rate to be known well."""
DEAF = 0.8
"""A receiver that reads less of what is sent than this has a stream of its own kind."""

Run = Mapping[str, Any]
Flow = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Calibration:
    """A job, as it was seen all on one device and dealt out in turn."""

    together: Run
    apart: Run

    @cached_property
    def flow(self) -> Flow:
        """Tuples of every stream per tuple that the source lets in."""
        seen, flow = self.together["rates"], {}
        inputs, receivers = defaultdict(list), defaultdict(int)
        for source, target, _ in self.together["edges"]:
            inputs[target].append(source)
            receivers[source] += 1
        enters: dict[str, float] = {}
        for name in seen:
            for source in inputs[name]:
                sent = seen[source]["out"] / (seen[source]["in"] or seen[source]["out"] or 1.0)
                part = 1.0
                if len(inputs[name]) == 1 and receivers[source] > 1:
                    part = seen[name]["in"] / (seen[source]["out"] or 1.0)
                flow[source, name] = enters[source] * sent * (part if part < DEAF else 1.0)
            fed = [flow[source, name] for source in inputs[name]]
            enters[name] = sum(fed) if fed else 1.0
        return flow

    @cached_property
    def enters(self) -> dict[str, float]:
        """Tuples that every operator takes in per tuple that the source lets in."""
        found: dict[str, float] = dict.fromkeys(self.together["rates"], 0.0)
        for (_, target), tuples in self.flow.items():
            found[target] += tuples
        return {name: tuples or 1.0 for name, tuples in found.items()}

    def measured(self, run: Run) -> float:
        """Tuples/s that the source lets in, in the long run.

        Queues that still fill make operators before them quicker than they will be, so the slowest
        operator counts.
        """
        rates = {name: seen["in"] or seen["out"] for name, seen in run["rates"].items()}
        return min(r / self.enters[name] for name, r in rates.items() if r > LEAST_RATE)

    def seconds(self, run: Run) -> dict[str, float]:
        """Core seconds of every operator per tuple that the source lets in, with its garbage."""
        tuples = {name: seen["in"] or seen["out"] for name, seen in run["rates"].items()}
        cpu = {n: run["cpu"].get(n, 0.0) / (tuples[n] or 1.0) * self.enters[n] for n in tuples}
        besides = run["besides"] / self.measured(run)
        return {name: cost * (1 + besides / sum(cpu.values())) for name, cost in cpu.items()}

    @cached_property
    def sizes(self) -> dict[str, float]:
        """Bytes per tuple that every operator receives."""
        rates = self.apart["rates"]
        return {name: seen["bytes"] / (seen["in"] or 1.0) for name, seen in rates.items()}

    @property
    def remote_flows(self) -> dict[str, RemoteFlow]:
        """Device → what it sends and receives where operators are dealt out in turn."""
        apart, rate = self.apart, self.measured(self.apart)
        tuples: dict[str, float] = defaultdict(float)
        traffic: dict[str, float] = defaultdict(float)
        for (source, target), carried in self.flow.items():
            on = [Counter(apart["vectors"][name]) for name in (source, target)]
            for device, share in remote_shares(*on).items():
                tuples[device] += rate * carried * share
                traffic[device] += rate * carried * share * self.sizes[target]
        return {device: RemoteFlow(tuples[device], traffic[device]) for device in tuples}

    def graph(self, run: Run) -> StreamGraph:
        """The job with the parallelism of a placement."""
        cost = self.seconds(self.together)
        fed = {target for _, target in self.flow}
        operators = [
            Operator(
                name,
                cost[name] / self.enters[name] * MIPS * 1e6,
                rate=0.0 if name in fed else OFFERED,
                parallelism=len(run["vectors"][name]),
            )
            for name in self.enters
        ]
        kinds = {(source, target): kind for source, target, kind in self.together["edges"]}
        streams = [
            Stream(
                source,
                target,
                tuples / self.enters[source],
                self.sizes[target],
                kinds[source, target],
            )
            for (source, target), tuples in self.flow.items()
        ]
        return StreamGraph.of("job", operators, streams)

    def predicted(self, run: Run, cluster: Cluster) -> float:
        """Tuples/s that a placement sustains in the steady state."""
        split = expand(self.graph(run))
        assignment = assignment_of(split, run["vectors"])
        return OFFERED * simulate(split.graph, assignment, cluster).relative_throughput


def sending_of(calibrations: Mapping[str, Calibration]) -> SendingCost:
    """CPU cost of remote tuples on a cluster, from the traffic of its devices in all jobs."""
    flows, network = {}, {}
    for job, seen in calibrations.items():
        for device, flow in seen.remote_flows.items():
            flows[f"{job} {device}"] = flow
            network[f"{job} {device}"] = seen.apart["networks"][device]
    return least_squares(network, flows)


def least_squares(cores: Mapping[str, float], flows: Mapping[str, RemoteFlow]) -> SendingCost:
    """Cost per tuple and per byte without a part at any rate, told apart where sizes differ."""
    rows = [(*flow, cores[key]) for key, flow in flows.items() if flow.tuples > 0]
    if not rows:
        return SendingCost(0.0, 0.0)
    tuples, traffic, taken = np.array(rows, np.float64).T
    sizes = traffic / tuples
    if not (sizes.min() > 0 and sizes.max() >= DIFFERENT * sizes.min()):
        per_byte = float(taken.sum() / (BYTES_PER_TUPLE * tuples + traffic).sum())
        return SendingCost(BYTES_PER_TUPLE * per_byte, per_byte)
    amounts = np.stack([tuples, traffic], axis=1)
    both = np.linalg.lstsq(amounts, taken, rcond=None)[0]
    if (both >= 0).all():
        return SendingCost(float(both[0]), float(both[1]))
    alone = (amounts * taken[:, None]).sum(axis=0) / (amounts**2).sum(axis=0)
    rest = ((taken[:, None] - amounts * alone) ** 2).sum(axis=0)
    if rest[0] <= rest[1]:
        return SendingCost(float(alone[0]), 0.0)
    return SendingCost(0.0, float(alone[1]))


def limited_devices(
    cores: Mapping[str, float],
    mips: float,
    java: float,
    sending: SendingCost,
    card: float,
    bandwidth: float,
) -> Cluster:
    """Limited devices, as ``streamplace flink cluster`` writes them."""
    slow = sending.slower(slowness(map(CpuShare, cores.values())))
    limits = {"reserved": java * mips, "egress": card, "ingress": card}
    return cluster_from_tables(
        {
            "bandwidth": bandwidth,
            "framing": FRAMING,
            "headroom": FLINK_HEADROOM,
            "overhead": slow.per_tuple,
            "overhead_per_byte": slow.per_byte,
            "devices": [{"name": name, "mips": c * mips, **limits} for name, c in cores.items()],
        }
    )


def assignment_of(split: Expansion, vectors: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Subtask → device."""
    return {
        subtask: device
        for name, devices in vectors.items()
        for subtask, device in zip(split.subtasks(name), devices, strict=True)
    }


def java_of(runs: Sequence[Run]) -> float:
    """Core seconds per second that Java takes of a TaskManager, the median of the probes."""
    return median(run["java"] for run in runs if run["placement"] in PROBES)


DEVICES = tuple(f"cal-{i}" for i in range(4))
CORES, BANDWIDTH = 0.25, 40e6
WARM_UP, SETTLE, SECONDS = 7.0, 3.0, 5.0
PLACEMENTS = 10


def cpu_seconds(cluster: LocalCluster) -> dict[str, float]:
    """CPU time of every thread so far."""
    return {
        folder.name: seconds
        for device in DEVICES
        for folder, _, seconds in threads(cluster, device)
    }


def thread_names(cluster: LocalCluster) -> dict[str, dict[str, str]]:
    """Device → id of a thread → its full name."""
    dumps = {
        device: subprocess.Popen(
            ["jcmd", str(cluster.processes[device].pid), "Thread.print"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for device in DEVICES
    }
    pattern = re.compile(r'^"(.+?)" .*?nid=(\w+)', re.M)
    return {
        device: {str(int(nid, 0)): name for name, nid in pattern.findall(dump.communicate()[0])}
        for device, dump in dumps.items()
    }


def shared_out(spent: dict[str, float], tasks: list[FlinkTask]) -> dict[str, Any]:
    """Cores by operator, of Java in the mean, of the network, and of what else belongs to a job."""
    cpu: dict[str, float] = defaultdict(float)
    limiting = 0.0
    for thread, cores in spent.items():
        owner = next((t.name for t in tasks if thread.startswith(f"{t.thread_name} (")), None)
        if owner is not None:
            cpu[owner] += cores
        elif "Netty" in thread:
            cpu["network"] += cores
        elif thread.startswith("flink-rate-limiter"):
            limiting += cores
        elif thread == "VM Thread" or thread.startswith(("OutputFlusher", "Time Trigger")):
            cpu["besides"] += cores
        elif "Compiler" not in thread:
            cpu["java"] += cores / len(DEVICES)
    sources = [t.name for t in tasks if t.thread_name.startswith("Source: ")]
    for name in sources:  # the threads that let them keep a rate do not name them
        cpu[name] += limiting / len(sources)
    kinds = {kind: round(cpu.pop(kind, 0.0), 5) for kind in ("java", "network", "besides")}
    return {"cpu": {name: round(cores, 5) for name, cores in cpu.items()}, **kinds}


def watch(cluster: LocalCluster, rest: Rest, job: str, *, probe: bool) -> dict[str, Any]:
    """Measure a job within its limits; for a probe, also where the CPU goes."""
    _, tasks, edges = read_plan(rest, job)
    start, before = time.monotonic(), cpu_seconds(cluster)
    activity = sample(rest, job, [task.id for task in tasks], SECONDS)
    after, span = cpu_seconds(cluster), time.monotonic() - start
    release(cluster)
    name_of = {task.id: task.name for task in tasks}
    row: dict[str, Any] = {
        "rates": {
            name_of[task]: {
                "in": round(task_activity.records_in, 1),
                "out": round(task_activity.records_out, 1),
                "bytes": round(task_activity.rates.get("numBytesIn", 0.0)),
            }
            for task, task_activity in activity.items()
        },
        "edges": [(name_of[e.source], name_of[e.target], e.partitioning) for e in edges],
    }
    if probe:
        spent: dict[str, float] = defaultdict(float)
        networks = dict.fromkeys(DEVICES, 0.0)
        for device, names in thread_names(cluster).items():
            for thread, name in names.items():
                cores = (after.get(thread, 0.0) - before.get(thread, 0.0)) / span
                spent[name] += cores
                networks[device] += cores if "Netty" in name else 0.0
        row |= shared_out(spent, tasks)
        row["networks"] = {device: round(cores, 5) for device, cores in networks.items()}
    return row


def parallelisms(rest: Rest, jar: str, entry: str, arguments: list[str]) -> dict[str, int]:
    """Operators of a job and their numbers of subtasks."""
    job = rest.run_jar(jar, entry, arguments)
    rest.wait_running(job)
    _, tasks, _ = read_plan(rest, job)
    rest.cancel(job)
    return {task.name: task.parallelism for task in tasks}


def drawn(counts: dict[str, int], rng: np.random.Generator) -> dict[str, list[str]]:
    """A placement on two to four devices, of operators cut in a row or dealt out at random."""
    k = int(rng.integers(2, len(DEVICES) + 1))
    devices = [str(device) for device in rng.permutation(DEVICES)[:k]]
    if rng.random() < 0.5:
        cuts = np.sort(rng.choice(np.arange(1, len(counts)), k - 1, replace=False))
        index = np.searchsorted(cuts, np.arange(len(counts)), side="right")
    else:
        index = rng.integers(0, k, len(counts))
    vectors = {}
    for (name, n), i in zip(counts.items(), index, strict=True):
        if n > 1 and rng.random() < 0.7:
            vectors[name] = sorted(devices[j] for j in rng.integers(0, k, n))
        else:
            vectors[name] = [devices[i]] * n
    return vectors


def placements(job: str, counts: dict[str, int]) -> dict[str, dict[str, list[str]]]:
    """The probes, and placements that are judged."""
    turn, i = {}, 0
    for name, n in counts.items():
        turn[name] = [DEVICES[(i + j) % len(DEVICES)] for j in range(n)]
        i += n
    together = {v: [DEVICES[0]] * n for v, n in counts.items()}
    vectors_of = dict(zip(PROBES, (together, turn, together), strict=True))
    rng = np.random.default_rng(sum(map(ord, job)))
    while len(vectors_of) < PLACEMENTS + len(PROBES):
        vectors = drawn(counts, rng)
        if vectors not in vectors_of.values():
            vectors_of[str(len(vectors_of) - len(PROBES) + 1)] = vectors
    return vectors_of


def measure(flink: Flink, jobs: list[str], output: Path) -> None:
    """Append what is missing in the file."""
    done = {(run["job"], run["placement"]) for run in read_rows(output)}
    with (
        tempfile.TemporaryDirectory() as folder,
        measured_devices(flink, DEVICES, cores=CORES, bandwidth_bps=BANDWIDTH) as cluster,
    ):
        rest, jar = cluster.rest, jobs_jar(flink, Path(folder) / "jobs.jar")
        uploaded = rest.upload(jar)
        for name in jobs:
            entry, arguments = JOBS[name].entry, JOBS[name].arguments()
            release(cluster)
            for title, vectors in placements(
                name, parallelisms(rest, uploaded, entry, arguments)
            ).items():
                if (name, title) in done:
                    continue
                chaining = {"pipeline.operator-chaining.enabled": str(title == CHAINED).lower()}
                program = Program(jar, entry, arguments, settings=chaining)
                job = apply(rest, program, Layout(vectors), seconds=100)
                time.sleep(WARM_UP)
                limit(cluster, dict.fromkeys(DEVICES, CORES))
                time.sleep(SETTLE)
                row = watch(cluster, rest, job, probe=title in PROBES)
                rest.cancel(job)
                append_row(output, {"job": name, "placement": title, "vectors": vectors} | row)
                print(f"{name}, {title}", flush=True)


def judged(runs: list[Run]) -> dict[str, np.ndarray]:
    """Job → rows of what was measured and predicted."""
    by_job: dict[str, dict[str, Run]] = defaultdict(dict)
    for run in runs:
        by_job[run["job"]].setdefault(run["placement"], run)
    complete = {job: s for job, s in by_job.items() if len(s) >= PLACEMENTS + len(PROBES)}
    probed = {
        job: Calibration(placed[TOGETHER], placed[IN_TURN]) for job, placed in complete.items()
    }
    cores, sending = dict.fromkeys(DEVICES, CORES), sending_of(probed)
    cluster = limited_devices(cores, MIPS, java_of(runs), sending, BANDWIDTH, BANDWIDTH)
    results = {}
    for job, placed in complete.items():
        calibration = probed[job]
        results[job] = np.array(
            [
                [calibration.measured(run), calibration.predicted(run, cluster)]
                for title, run in placed.items()
                if title not in PROBES
            ]
        )
    return results


def errors_table(results: dict[str, np.ndarray]) -> str:
    """Errors of every job and of all, as Markdown."""
    heads = ("job", "placements", "measured, tuples/s", "median error", "90 % within")
    heads += ("rank correlation",)
    lines = []
    shares = {job: rows / rows[:, :1].max() for job, rows in results.items()}
    for job, rows in [*results.items(), ("all", np.concatenate(list(shares.values())))]:
        error = np.abs(rows[:, 1] / rows[:, 0] - 1)
        low, high = rows[:, 0].min(), rows[:, 0].max()
        span = "" if job == "all" else f"{low:,.0f}–{high:,.0f}"
        ends = f"{np.median(error):.1%}", f"{np.quantile(error, 0.9):.1%}"
        lines.append((job, len(rows), span, *ends, f"{rank_correlation(*rows.T):.2f}"))
    return table(heads, lines)


def ratios(results: dict[str, np.ndarray]) -> str:
    """Errors of predicted ratios of two placements of a job, of which the profile's errors cancel.

    Each pair counts in the direction in which the prediction promises a gain.
    """
    errors: list[float] = []
    for rows in results.values():
        measured, predicted = rows[:, 0], rows[:, 1]
        for i, j in permutations(range(len(rows)), 2):
            if predicted[i] > predicted[j]:
                gained = measured[i] / measured[j]
                errors.append(abs(predicted[i] / predicted[j] / gained - 1))
    median, most = np.quantile(errors, [0.5, 0.9])
    return (
        f"Ratios of two placements of a job, {len(errors)} pairs: median error {median:.1%}, "
        f"90 % within {most:.1%}.\n"
    )


def draw(results: dict[str, np.ndarray], path: Path) -> None:
    """Predicted over measured, as shares of the best measured placement of the job."""
    figure, (axis,) = new_figure(1, width=5.0, height=4.5)
    axis.plot([0, 1.1], [0, 1.1], color=GREY, linewidth=0.8)
    for i, (job, rows) in enumerate(results.items()):
        best = rows[:, 0].max()
        axis.scatter(
            rows[:, 0] / best,
            rows[:, 1] / best,
            s=16,
            label=job,
            marker="osD^vP*X"[i],
            color=f"C{i}",
        )
    axis.set_xlabel("measured, of the job's best")
    axis.set_ylabel("predicted")
    axis.legend(fontsize=8, frameon=False)
    save(figure, path)


def main() -> None:
    """Measure what is missing, then tell."""
    parser = ArgumentParser(description="Predicted against measured throughput of Flink jobs.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs", help="folder")
    parser.add_argument("--jobs", default=",".join(JOBS), help="such as riot-etl,word-count")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    file = options.output / "assets" / "calibration.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not options.table:
        measure(find_flink(), options.jobs.split(","), file)
    results = judged(read_rows(file))
    print(f"{errors_table(results)}\n{ratios(results)}")
    draw(results, file.with_suffix(".svg"))


if __name__ == "__main__":
    main()
