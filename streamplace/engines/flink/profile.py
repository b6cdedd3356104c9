"""Profiling: a running job as a stream graph with measured rates, payloads and CPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamplace.engines.flink.cpu import Cores, cores_by_task, runs_python, thread_times
from streamplace.engines.flink.flows import flows, payloads
from streamplace.engines.flink.plan import Edge, Task, read_plan
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.sampling import Activity, sample
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream

BLOCKED = 0.02
"""Share of its time that a source may be back-pressured before its rate means nothing."""
ALIKE = 0.02
"""Payloads that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What was seen of a job.

    Attributes
    ----------
    cpu
        Core seconds per second of each task, by id.
    doubts
        What could not be measured, in words.
    """

    name: str
    tasks: Sequence[Task]
    edges: Sequence[Edge]
    activity: Mapping[str, Activity]
    cpu: Mapping[str, float]
    doubts: list[str] = field(default_factory=list)

    def graph(self, mips: float) -> StreamGraph:
        """Stream graph whose instructions are those of cores of ``mips``.

        Attribute ``unmeasured`` holds the doubts.
        """
        name_of = {task.id: task.name for task in self.tasks}
        carried, guessed = self._flows()
        sizes, mixed = payloads(self._pairs(), carried, self._bytes())
        for e in sorted(guessed):
            self.doubts.append(f"selectivity of {self._label(e)}: guessed, several inputs mix")
        for e in sorted(mixed):
            self.doubts.append(f"payload of {self._label(e)}: a mean, several inputs mix")
        usual = {edge.source: sizes[e] for e, edge in reversed(list(enumerate(self.edges)))}
        operators = [self._operator(task, usual.get(task.id, 0.0), mips) for task in self.tasks]
        streams = [
            Stream(
                name_of[edge.source],
                name_of[edge.target],
                carried[e] / (self._tuples(edge.source) or 1.0),
                _own_payload(sizes[e], usual[edge.source]),
                edge.partitioning,
            )
            for e, edge in enumerate(self.edges)
        ]
        facts: dict[str, str | float] = {"mips": mips}
        if self.doubts:
            facts["unmeasured"] = "; ".join(self.doubts)
        return StreamGraph.of(self.name, operators, streams, facts)

    def _operator(self, task: Task, payload: float, mips: float) -> Operator:
        tuples = self._tuples(task.id)
        if not tuples:
            self.doubts.append(f"ipt of {task.name}: it took in nothing")
        ipt = self.cpu[task.id] / tuples * mips * 1e6 if tuples else 0.0
        rate = 0.0 if self._is_fed(task.id) else self._rate(task)
        return Operator(task.name, ipt, payload, rate, task.parallelism)

    def _rate(self, source: Task) -> float:
        seen = self.activity[source.id]
        if not seen.records_out:
            raise FlinkError(
                f"source {quoted(source.name)} sent nothing that another task took in; "
                "profile while data flows, with chaining off "
                "(pipeline.operator-chaining.enabled: false)"
            )
        blocked = seen.back_pressured / source.parallelism
        if blocked > BLOCKED:
            self.doubts.append(
                f"rate of {source.name}: back-pressured {100 * blocked:.0f} % of the time, it "
                "would send more; give its own rate with --rate when placing"
            )
        return seen.records_out

    def _tuples(self, task: str) -> float:
        """Tuples/s that a task works on: what it reads, or sends where it is a source."""
        seen = self.activity[task]
        return seen.records_in if self._is_fed(task) else seen.records_out

    def _is_fed(self, task: str) -> bool:
        return any(edge.target == task for edge in self.edges)

    def _flows(self) -> tuple[dict[int, float], set[int]]:
        read = {task: seen.records_in for task, seen in self.activity.items()}
        written = {task: seen.records_out for task, seen in self.activity.items()}
        return flows(self._pairs(), read, written)

    def _pairs(self) -> list[tuple[str, str]]:
        return [(edge.source, edge.target) for edge in self.edges]

    def _bytes(self) -> dict[str, float]:
        return {task: seen.bytes_in for task, seen in self.activity.items()}

    def _label(self, e: int) -> str:
        name_of = {task.id: task.name for task in self.tasks}
        return f"{name_of[self.edges[e].source]}→{name_of[self.edges[e].target]}"


def profile(rest: Rest, job: str, seconds: float) -> Profile:
    """Watch a running job for about ``seconds``.

    CPU time is that of the tasks' threads where all their TaskManagers run on this machine, and no
    other task bears their name. Else it is Flink's busy time, which overestimates cheap operators;
    the doubts then say so.
    """
    name, tasks, edges = read_plan(rest, job)
    first = thread_times()
    activity = sample(rest, job, [task.id for task in tasks], seconds)
    cores = cores_by_task(first, thread_times())
    seen = Profile(name, tasks, edges, activity, {}, [])
    cpu = {task.id: _cpu(seen, task, cores) for task in tasks}
    seen.doubts.extend(
        f"{task.name}: bears another operator's name; give both names of their own, else they "
        "cannot be placed apart"
        for task in tasks
        if task.is_namesake
    )
    if runs_python():
        seen.doubts.append(
            "ipt of Python operators: without what their Python processes take; to have it "
            "measured, run the job with python.execution-mode: thread"
        )
    return Profile(name, tasks, edges, activity, cpu, seen.doubts)


def _cpu(seen: Profile, task: Task, cores: Mapping[str, Cores]) -> float:
    found = cores.get(task.thread_name, Cores())
    if found.threads == task.parallelism:
        return found.cores
    seen.doubts.append(
        f"ipt of {task.name}: from busy time, {found.threads or 'no'} threads on this machine bear "
        f"its name instead of {task.parallelism}"
    )
    return seen.activity[task.id].busy


def _own_payload(size: float, usual: float) -> float | None:
    """Payload of a stream, None where it is that of its source."""
    return None if abs(size - usual) <= ALIKE * max(size, usual) else size
