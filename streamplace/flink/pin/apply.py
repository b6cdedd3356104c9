"""Apply a placement: submit an unchanged job so that its subtasks run on their devices.

`verify` compares the device of every subtask of a running job with the placement.
"""

import base64
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from streamplace.display.report import Report, Sheet, by_device
from streamplace.flink.deployment import deployment_of
from streamplace.flink.layout import Layout
from streamplace.flink.move.savepoints import CopyRuns, free_ids, refuse_copy, refuse_moved
from streamplace.flink.pin.free_resources import fitted
from streamplace.flink.pin.pinning import Pinning
from streamplace.flink.program.jars import placed_jar
from streamplace.flink.program.program import Program, Savepoint, remember
from streamplace.flink.program.submission import (
    ClusterJar,
    explained,
    is_spent,
    submit,
    unique_name,
    uploaded,
)
from streamplace.flink.rest.client import (
    AT_WORK,
    FINISHED,
    JAR_SECONDS,
    RUNNING,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    turns,
)
from streamplace.flink.rest.plan import placed_subtasks, plan_of
from streamplace.flink.rest.settings import job_fault
from streamplace.model.defaults import START_SECONDS
from streamplace.model.message_text import listed, quoted

RESTORING = "INITIALIZING"
"""State of a task that restores its state in its slots, and of a job that has no plan yet."""
STARTING = frozenset({RESTORING, "CREATED", RUNNING})
CHECK = {"streamplace.check": "true"}
"""Settings that make the pinning class check a job without submitting it."""
FITS = "the job fits its placement"
"""Message of the pinning class after the check of a job; the settings of the job follow it."""


class StillStarting(NoAnswer):
    """A job has all its slots, but still restores its state after the timeout."""


def apply(
    rest: Rest,
    program: Program,
    layout: Layout,
    *,
    savepoint: Savepoint | None = None,
    seconds: float = START_SECONDS,
) -> str:
    """Submit a job with a placement, wait until all of it runs or has run, and return its id.

    Operators whose parallelism the program does not set get the parallelism of the placement.

    Raises PlacementError when a device of the placement is not a TaskManager of the cluster, or
    cannot be pinned to. Raises CopyRuns when a job from the same savepoint is running, or when the
    savepoint belongs to an unfinished move. Raises FlinkError when the cluster's scheduler ignores
    placements, when the job is not the placed one, or when it does not start; the job is then
    cancelled, unless Flink stops answering. Raises StillStarting when it still restores its state
    after ``seconds``; it is not cancelled.
    """
    if obstacle := deployment_of(rest).obstacle_to_jobs:
        raise FlinkError(obstacle)
    if savepoint is not None:
        refuse_moved(savepoint.path)
        refuse_copy(rest, savepoint.path)
    rest.wait_released()
    with placed_upload(rest, program, fitted(rest, layout, program.managed_mb)) as jar:
        job = _submitted(rest, jar, program, savepoint)
    try:
        remember(job, program)
        wait_started(rest, job, seconds, layout.devices)
    except StillStarting:
        raise
    except BaseException as error:
        _cancel(rest, job, error)
        raise
    return job


def _submitted(rest: Rest, jar: ClusterJar, program: Program, savepoint: Savepoint | None) -> str:
    """Submit a job and return its id.

    If Flink has accepted the id for an earlier job from the savepoint, the job gets the next one.
    """
    request = program.run_request(savepoint)
    ids = iter([secrets.token_hex(16)]) if savepoint is None else free_ids(rest, savepoint.path)
    while True:
        job = next(ids)
        try:
            is_new = submit(rest, jar, request, job, rest.wait_released, JAR_SECONDS)
        except Refusal as error:
            if savepoint is None or not is_spent(error):
                raise
            refuse_copy(rest, savepoint.path)
            continue
        except NoAnswer as error:
            raise NoAnswer(
                f"{error}; whether job {job} was started is not known, so look for it before you "
                "submit it again"
            ) from None
        if is_new or savepoint is None:  # no other command has a random id
            return job
        raise CopyRuns(f"another command has started job {job} from the same savepoint")


def _cancel(rest: Rest, job: str, error: BaseException) -> None:
    """Cancel a job that did not start; if Flink does not answer, raise an error with its id."""
    try:
        rest.cancel(job)
    except NoAnswer as silence:
        reason = f"{error}; " if isinstance(error, FlinkError) else ""
        raise NoAnswer(
            f"{reason}job {job} could not be cancelled and may run ({silence}), so look for it "
            "before you submit it again"
        ) from None


def check(
    rest: Rest, program: Program, layout: Layout, without: str, savepoint: Savepoint | None = None
) -> dict[str, str]:
    """Run a job's main method as ``apply`` would, submit nothing, and return the job's settings.

    The resources of the job ``without`` count as free. The program must have all operators with
    state in the ``savepoint``, if that can still be read.
    """
    plan = None
    with suppress(FlinkError):  # if it no longer runs
        plan = plan_of(rest.running_job(without))
    pinning = fitted(rest, layout, program.managed_mb, [without], plan)
    with placed_upload(rest, program, pinning) as jar:
        try:
            job = str(jar.run(program.run_request(savepoint, CHECK))["jobid"])
        except FlinkError as error:
            text = error.complaint if isinstance(error, Refusal) else ""
            if FITS not in text:
                raise explained(error) from None
            return _settings(text)
    rest.cancel(job)
    raise FlinkError("the job is not submitted by its main method, so it cannot be placed")


def _settings(answer: str) -> dict[str, str]:
    """Settings of a job, from the answer of the pinning class."""
    match = re.search(rf"{FITS} <([A-Za-z0-9+/=]*)>", answer)
    lines = base64.b64decode(match[1]).decode().splitlines() if match else []
    pairs = (line.partition("=") for line in lines)
    with_case = (".dir", ".name")
    return {key: text if key.endswith(with_case) else text.lower() for key, _, text in pairs}


@contextmanager
def placed_upload(rest: Rest, program: Program, pinning: Pinning) -> Iterator[ClusterJar]:
    """Upload the job's jar with the pinning class in it, and delete it when the block ends."""
    program.check()
    name = unique_name(f"placed-{program.jar.name}")
    with (
        placed_jar(program.jar, program.libraries, pinning, name) as path,
        uploaded(rest, path) as jar,
    ):
        yield jar


def wait_started(rest: Rest, job: str, seconds: float, needed: Collection[str]) -> None:
    """Wait until every subtask of a job runs; raise FlinkError as soon as one cannot.

    The job cannot run without the TaskManagers ``needed``; others may join meanwhile. Raises
    StillStarting when it still restores its state after ``seconds``.
    """
    for _ in turns(seconds):
        document = rest.job(job)
        if document["state"] == FINISHED:
            return
        if document["state"] not in STARTING:
            raise FlinkError(f"job {job} is {document['state']}: {rest.failure(job)}")
        if fault := job_fault(rest, document):
            raise FlinkError(fault)
        waiting = [v for v in document["vertices"] if v["status"] not in AT_WORK]
        if document["vertices"] and not waiting:
            return
        refuse_lost(rest, needed)
    if document["state"] == RUNNING and {v["status"] for v in waiting} == {RESTORING}:
        raise StillStarting(
            f"job {job} is still starting after {seconds:g} s: {quoted(waiting[0]['name'])} is "
            f"{RESTORING}, as tasks are while they restore their state"
        )
    late = [f"; {quoted(v['name'])} is {v['status']}" for v in waiting[:1]]
    raise FlinkError(f"job {job} does not run after {seconds:g} s{''.join(late)}")


def refuse_lost(rest: Rest, needed: Collection[str]) -> None:
    """Raise FlinkError if the cluster lacks one of these TaskManagers."""
    if needed and (lost := sorted(set(needed).difference(rest.offered()))):
        raise FlinkError(f"the cluster has lost {listed(lost)}")


UNCOUNTED = (
    "the placement does not say how many subtasks its operators have, so they were not counted; "
    "placements from 'streamplace place' say it"
)


@dataclass(frozen=True, slots=True)
class OperatorCheck:
    """Expected and actual number of an operator's subtasks on each device.

    ``expected`` is empty for an operator that is not in the placement, ``actual`` for one that is
    not in the job.
    """

    operator: str
    expected: Mapping[str, int]
    actual: Mapping[str, int]

    @property
    def fine(self) -> bool:
        """Whether both agree."""
        return dict(self.expected) == dict(self.actual)


@dataclass(frozen=True, slots=True)
class Verification:
    """Comparison of a running job with its placement."""

    checks: tuple[OperatorCheck, ...]
    problems: tuple[str, ...] = ()  # problems of the whole job, as sentences
    uncounted: tuple[str, ...] = ()  # operators whose number of subtasks is not in the placement

    @property
    def fine(self) -> bool:
        """Whether every subtask runs where it should."""
        return not self.problems and all(check.fine for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            "ok": self.fine,
            "problems": list(self.problems),
            "uncounted": list(self.uncounted),
            "operators": [
                {
                    "name": check.operator,
                    "ok": check.fine,
                    "expected": dict(check.expected),
                    "actual": dict(check.actual),
                }
                for check in self.checks
            ],
        }

    def report(self) -> Report:
        """Table of all operators, and the differences."""
        rows = [
            (
                check.operator,
                by_device(check.expected),
                by_device(check.actual),
                "ok" if check.fine else "differs",
            )
            for check in self.checks
        ]
        problems = [f"problem: {problem}" for problem in self.problems]
        uncounted = [f"note: {UNCOUNTED}"] if self.uncounted else []
        wrong = sum(not check.fine for check in self.checks)
        verdict = f"{wrong} of {len(self.checks)} operators differ."
        if self.fine:
            verdict = "Every subtask runs where it was placed."
        sheet = Sheet(("operator", "expected", "actual", ""), tuple(rows))
        return Report((sheet, *problems, *uncounted, verdict))


def verify(rest: Rest, job: str, layout: Layout) -> Verification:
    """Compare a running job with a placement, by counts of subtasks per operator and device."""
    document = rest.job(job)
    subtasks: dict[str, list[str]] = defaultdict(list)
    for names, rows in placed_subtasks(rest, job, document):
        devices = [str(row.get("taskmanager-id") or "(unassigned)") for row in rows]
        for name in dict.fromkeys(names):
            subtasks[name] += devices
    actual = Layout({name: sorted(devices) for name, devices in subtasks.items()})
    expected = layout.counted(actual)
    every = dict.fromkeys((*actual, *layout))
    checks = (OperatorCheck(name, expected.counts(name), actual.counts(name)) for name in every)
    uncounted = (name for name in layout if name in layout.uncounted)
    problems = []
    if (state := document["state"]) != RUNNING:
        problems.append(f"the job is {state}; only a running job has a placement")
    if fault := job_fault(rest, document):
        problems.append(fault)
    return Verification(tuple(checks), tuple(problems), tuple(uncounted))


def check_placed(rest: Rest, job: str, layout: Layout) -> bool:
    """Whether a job runs as placed; False if it has finished by itself.

    Raises FlinkError when it has ended in another way, or runs on other devices.
    """
    verification = verify(rest, job, layout)
    if verification.fine:
        return True
    state = rest.state(job)
    if state == FINISHED:
        return False
    if state != RUNNING:
        raise FlinkError(f"job {job} is {state}: {rest.failure(job)}")
    wrong = tuple(check.operator for check in verification.checks if not check.fine)
    problems = "; ".join(verification.problems)
    raise FlinkError(problems or f"{listed(wrong)} do not run where they are placed")
