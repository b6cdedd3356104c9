"""Series of a job of known costs, as Flink's reporter writes them, over days."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

START = 1_767_225_600
"""2026-01-01T00:00 in UTC."""
SCRAPE, HOUR, DAYS = 60, 3600, 3
SPAN = "2026-01-01T00:00..2026-01-04T00:00"
NAMES = {"v0": "Source:_src", "v1": "split", "v2": "out"}
COSTS = {"v0": (0.01, 20e-6), "v1": (0.03, 150e-6), "v2": (0.02, 40e-6)}
"""Task → cores of a subtask at any rate, and core seconds per tuple."""
SPLIT = 2.5
"""Tuples that the second task sends for each that it reads."""
BYTES = 40.0
HEAP, MANAGED = (90e6, 500e6), (40e6, 64e6)
"""Least content of the heap of the first TaskManager, and its size; managed memory."""
BUSY = 1.3
"""Busy seconds per second of CPU."""
BUFFERS, WAKING = 200.0, 60e-6
"""Buffers per second that a subtask of the sink receives, and seconds until its thread runs."""
JAVA = 0.03
"""Cores of Java itself in each TaskManager."""


def hourly_rates(hours=24 * DAYS):
    """Tuples/s of each hour: a wave over the day, and noise."""
    hour = np.arange(hours)
    noise = np.random.default_rng(1).normal(1.0, 0.05, hours)
    return np.round(400 * (1.2 - np.cos(2 * np.pi * hour / 24)) * noise)


@dataclass
class WrittenJob:
    """Metrics of a job of a source, a splitter and a sink, each on two TaskManagers."""

    rates: np.ndarray = field(default_factory=hourly_rates)  # tuples/s of each hour
    job: str = "a" * 32
    name: str = "shop"
    labels: tuple[tuple[str, str], ...] = ()
    shares: tuple[float, float] = (0.5, 0.5)  # of the tuples of the splitter's subtasks
    noise: float = 0.03
    cpu_seconds: bool = True  # whether TaskManagers report their CPU
    # Whether tasks report counters, and gauges of their rates.
    counters: bool = True
    gauges: bool = True
    lag: float = 0.0  # records that wait more per second
    begins: float = 0.0  # seconds after the first sample
    ends: float = float("inf")
    restarts: float = float("inf")  # when all counters begin again
    checkpoint: float = 2.0  # seconds that each takes
    throttled: float | None = None  # share of periods of pods whose quota has stopped them
    limits: tuple[float, float] | None = None  # cores and bytes of these pods, if that is told
    device: str = "dev"  # beginning of the names of its TaskManagers, and of its pods

    @property
    def times(self):
        """Times of all samples."""
        return START + np.arange(0, len(self.rates) * HOUR + 1, SCRAPE)

    def series(self):
        """Metric and labels → samples."""
        random = np.random.default_rng(2)
        rate = np.repeat(self.rates, HOUR // SCRAPE)  # between two samples
        cores = defaultdict[int, np.ndarray](lambda: np.zeros(len(rate)))
        found = {}
        for task, (fixed, per_tuple) in COSTS.items():
            for i, share in enumerate(self.shares if task == "v1" else (0.5, 0.5)):
                own = share * rate * (SPLIT if task == "v2" else 1.0)
                sent = own * {"v0": 1.0, "v1": SPLIT, "v2": 0.0}[task]
                used = (fixed + per_tuple * own) * random.normal(1.0, self.noise, len(rate))
                cores[i] += used
                task_labels = self._of_task(task, i)
                buffers = np.full(len(rate), BUFFERS if task == "v2" else 0.0)
                busy = BUSY * used + WAKING * buffers
                metrics = {
                    "numRecordsIn": np.zeros(len(rate)) if task == "v0" else own,
                    "numRecordsOut": sent,
                    "numBytesIn": np.zeros(len(rate)) if task == "v0" else BYTES * own,
                    "numBytesOut": BYTES * sent,
                    "numBuffersInLocal": buffers / 2,
                    "numBuffersInRemote": buffers / 2,
                    "accumulateBusyTimeMs": 1000 * busy,
                    "accumulateBackPressuredTimeMs": np.zeros(len(rate)),
                    "accumulateIdleTimeMs": 1000 * (1 - busy),
                }
                for metric, per_second in metrics.items():
                    found |= self._counted("task_", metric, task_labels, per_second)
                if task == "v0":
                    operator = (*task_labels, ("operator_name", NAMES[task]))
                    for metric in ("numRecordsOut", "numRecordsIn"):
                        found |= self._counted("task_operator_", metric, operator, own)
                    if self.lag:
                        waits = np.concatenate([[0.0], np.full(len(rate), self.lag * SCRAPE / 2)])
                        name = "flink_taskmanager_job_task_operator_pendingRecords"
                        found[name, operator] = self._from(np.cumsum(waits))
        for i, used in cores.items():
            spent = np.concatenate([[0.0], np.cumsum((used + JAVA) * SCRAPE)])
            key = (("tm_id", f"{self.device}_{i}"), *self.labels)
            if self.cpu_seconds:
                found["flink_taskmanager_Status_JVM_CPU_Time", key] = self._from(1e9 * spent)
            found |= self._memory(i, key)
            if self.throttled is not None:
                found |= self._container(i, spent)
        times = np.full(len(self.times), 1000.0 * self.checkpoint)
        key = (("job_id", self.job), ("job_name", self.name), *self.labels)
        found["flink_jobmanager_job_lastCheckpointDuration", key] = self._from(times)
        found["flink_jobmanager_job_lastCheckpointSize", key] = self._from(0.0 * times + 5e6)
        return found

    def _memory(self, number, key):
        """Heap of a TaskManager, full of garbage in the end of every four minutes, and RocksDB."""
        minute = np.arange(len(self.times)) % 4
        contents = {
            "JVM_Memory_Heap_Used": (HEAP[0] + 10e6 * number) * (1 + minute),
            "JVM_Memory_Heap_Max": np.full(len(minute), HEAP[1]),
            "Flink_Memory_Managed_Used": np.full(len(minute), MANAGED[0]),
            "Flink_Memory_Managed_Total": np.full(len(minute), MANAGED[1]),
        }
        prefix = "flink_taskmanager_Status_"
        return {(prefix + name, key): self._from(values) for name, values in contents.items()}

    def _container(self, number, spent):
        """Metrics of the container of a TaskManager, and of the pod as a whole."""
        pod = (*self.labels, ("pod", f"{self.device}-{number}"))
        periods = np.cumsum(np.full(len(spent), 10.0 * SCRAPE))
        metrics = {
            "usage_seconds": spent,
            "cfs_periods": periods,
            "cfs_throttled_periods": self.throttled * periods,
        }
        names = {name: f"cpu_{name}_total" for name in metrics}
        if self.limits is not None:
            sizes = (100_000 * self.limits[0], 100_000, self.limits[1])
            specs = ("spec_cpu_quota", "spec_cpu_period", "spec_memory_limit_bytes")
            metrics |= {k: np.full(len(spent), v) for k, v in zip(specs, sizes, strict=True)}
        return {
            (
                f"container_{names.get(metric, metric)}",
                (*pod, ("container", container)),
            ): self._from(values)
            for metric, values in metrics.items()
            for container in ("", "flink-main-container")
        }

    def _of_task(self, task, number):
        return (
            ("job_id", self.job),
            ("job_name", self.name),
            ("task_id", task),
            ("task_name", NAMES[task]),
            ("subtask_index", str(number)),
            ("tm_id", f"{self.device}_{number}"),
            *(() if self.throttled is None else (("pod", f"{self.device}-{number}"),)),
            *self.labels,
        )

    def _counted(self, scope, metric, labels, per_second):
        prefix = f"flink_taskmanager_job_{scope}"
        gauge = metric.removeprefix("accumulate").removesuffix("Ms")
        gauge = (
            f"{metric}PerSecond" if gauge == metric else f"{gauge[0].lower()}{gauge[1:]}MsPerSecond"
        )
        counts = np.concatenate([[0.0], np.cumsum(per_second * SCRAPE)])
        if metric == "accumulateBusyTimeMs":  # idle time is counted late, so it falls
            counts[::7] += 20_000
        rates = np.concatenate([per_second[:1], per_second])
        found = {(prefix + metric, labels): self._from(counts)} if self.counters else {}
        return found | ({(prefix + gauge, labels): self._from(rates)} if self.gauges else {})

    def _from(self, values):
        since = self.times - START
        again = np.interp(self.restarts, since, values, right=0.0)
        values = np.where(since >= self.restarts, values - again, values)
        return np.where((since >= self.begins) & (since <= self.ends), values, np.nan)


def merged(*jobs):
    """Series of several jobs of one time; a series of two has the samples of both."""
    found = {}
    for job in jobs:
        for key, values in job.series().items():
            before = found.get(key, np.full(len(values), np.nan))
            found[key] = np.where(np.isnan(before), values, before)
    return found
