"""Moving: a running job, with its state, to where it is placed; and back, if that fails."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamplace.engines.flink.apply import apply, check
from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.pinning import Vectors, counts, devices_of
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import ENDED, FlinkError, Rest
from streamplace.engines.flink.state import Savepoint, begin_stop, saved_by, stopped_at
from streamplace.engines.flink.tasks import read_vertices
from streamplace.engines.flink.verify import verify
from streamplace.model.messages import listed

Tell = Callable[[str], None]
Counted = dict[str, list[str]]
"""Operator → the device of each of its subtasks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What moving a job means.

    Attributes
    ----------
    job
        The job that runs.
    before, after
        Where its subtasks are, and where they shall be.
    """

    job: str
    before: Counted
    after: Counted

    @property
    def moved(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Operators that move, with the numbers of their subtasks by device before and after."""
        pairs = {
            name: (counts(sorted(self.before.get(name, ()))), counts(sorted(devices)))
            for name, devices in self.after.items()
        }
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class Move:
    """A cluster, and what is needed to submit the job to it again.

    Attributes
    ----------
    tell
        Is told every step.
    folder
        Where savepoints go; None for the cluster's own folder.
    allow_non_restored
        Whether state that no operator takes over may be left behind.
    seconds
        In which the job must have come up again.
    """

    rest: Rest
    flink: Flink
    program: Program
    tell: Tell
    folder: str | None = None
    allow_non_restored: bool = False
    seconds: float = 120.0

    def plan(self, job: str, vectors: Vectors) -> Plan:
        """Find out where a job runs and whether it can be moved and, if need be, moved back.

        Nothing is stopped; the job's main method runs twice, but submits nothing.
        """
        vertices = read_vertices(self.rest, job, self.rest.running_job(job), vectors)
        before: Counted = {}
        for vertex in vertices:
            devices = [device for device, n in vertex.devices.items() for _ in range(n)]
            before.update(dict.fromkeys(vertex.operators, devices))
        unsure = {name: before[name] for vertex in vertices for name in vertex.unsure}
        if any(devices != next(iter(unsure.values())) for devices in unsure.values()):
            names = listed(tuple(unsure))
            self.tell(f"note: which of {names} is which is not known, should the job go back")
        plan = Plan(job, before, _counted(vectors, before))
        self.tell("checking that the job fits the placement, and its present one")
        for wanted in (plan.after, plan.before):
            check(self.rest, self.flink, self.program, wanted)
        return plan

    def run(self, plan: Plan) -> tuple[str, str]:
        """Move a job; returns its new id and the path of the savepoint that it went with.

        Raises
        ------
        FlinkError
            When it cannot be saved, and goes on; or when it does not run where it shall, and runs
            again where it ran.
        """
        self.tell(f"stopping job {plan.job} with a savepoint")
        request, path = begin_stop(self.rest, plan.job, self.folder), None
        try:
            path = stopped_at(self.rest, plan.job, request)
            self.tell(f"its state is in {path}")
            self.rest.wait(plan.job, ENDED)
            return self._started(plan.after, path), path
        except BaseException as error:
            self._go_back(plan, path or self._last_saved(plan.job, request), error)
            raise

    def _last_saved(self, job: str, request: str) -> str:
        """Where the state of a job is that is being stopped; raises why there is none, if it runs.

        Once asked for, a stop goes on, be it interrupted here.
        """
        try:
            return stopped_at(self.rest, job, request)
        except FlinkError:
            saved = saved_by(self.rest, job)
            if self.rest.job(job)["state"] == "FINISHED" and not (saved and saved.is_savepoint):
                raise FlinkError(
                    f"job {job} came to its end before it could be saved; there is nothing to move"
                ) from None
            if saved is None or saved.last is None or saved.state not in ENDED:
                raise
            return saved.last

    def _started(self, vectors: Counted, path: str) -> str:
        """Id of the job, restored and verified; else nothing of it is left running."""
        self.tell(f"starting it from there on {listed(_devices(vectors))}")
        saved = Savepoint(path, self.allow_non_restored)
        job = apply(
            self.rest, self.flink, self.program, vectors, savepoint=saved, seconds=self.seconds
        )
        try:
            found = verify(self.rest, job, vectors)
            if not found.fine:
                wrong = tuple(check.operator for check in found.checks if not check.fine)
                told = "; ".join(found.problems)
                raise FlinkError(told or f"{listed(wrong)} do not run where they are placed")
        except BaseException:
            self.rest.cancel(job)
            raise
        self.tell(f"job {job} runs; every subtask is where it is placed")
        return job

    def _go_back(self, plan: Plan, path: str, error: BaseException) -> None:
        """Start a job again where it ran; raises what became of it, unless it was interrupted."""
        why = str(error) or type(error).__name__
        self.tell(f"that failed: {why}; going back")
        try:
            self.rest.cancel(plan.job)
            job = self._started(plan.before, path)
        except FlinkError as failure:
            raise FlinkError(
                f"{why}; going back failed, too: {failure}. Nothing of the job runs; its state is "
                f"in {path}: start it by 'streamplace flink apply' with --savepoint {path}"
            ) from None
        if isinstance(error, Exception):
            raise FlinkError(f"{why}; the job runs again where it ran, as job {job}") from None


def _counted(vectors: Vectors, before: Mapping[str, list[str]]) -> Counted:
    """Devices of every subtask; where their number is not said there are as many as before."""
    return {
        name: [vector] * max(1, len(before.get(name, ()))) if isinstance(vector, str) else [*vector]
        for name, vector in vectors.items()
    }


def _devices(vectors: Vectors) -> tuple[str, ...]:
    return tuple(sorted({d for vector in vectors.values() for d in devices_of(vector)}))
