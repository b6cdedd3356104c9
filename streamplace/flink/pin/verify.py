"""Verify a running job: compare the device of every subtask with the placement."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamplace.display.report import Report, Sheet, by_device
from streamplace.flink.layout import Layout
from streamplace.flink.rest.client import FINISHED, RUNNING, FlinkError, Rest
from streamplace.flink.rest.plan import placed_subtasks
from streamplace.flink.rest.settings import job_fault
from streamplace.model.message_text import listed

UNCOUNTED = (
    "the placement does not say how many subtasks its operators have, so they were not counted; "
    "a placement that 'streamplace place' writes does"
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
    problems: tuple[str, ...] = ()  # sentences on problems that concern the whole job
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

    Raises FlinkError when it has ended otherwise, or runs elsewhere.
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
