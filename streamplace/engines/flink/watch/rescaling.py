"""Change the numbers of subtasks of a watched job that Flink's adaptive scheduler runs.

The scheduler takes new requirements, restarts the job from its last checkpoint with as many
subtasks, and keeps its id. Setting the same requirements twice changes nothing. So a watch that is
killed meanwhile reads them afterwards, and knows what it has begun.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streamplace.engines.flink.move.settling import (
    Settling,
    SourceFlow,
    check_rate,
    seconds_for,
    source_flow,
)
from streamplace.engines.flink.rest.answer_shapes import Requirements
from streamplace.engines.flink.rest.client import AT_WORK, ENDED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.plan import read_plan
from streamplace.engines.flink.rest.scheduler import largest_numbers, require, requirements
from streamplace.engines.flink.watch.acting import freed_of, keep_devices, note_rate
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import running_layout
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.engines.flink.watch.replacing import answer_of
from streamplace.engines.flink.watch.rescaled_plans import (
    Scaling,
    Subtasks,
    packs_subtasks,
    required_of,
)
from streamplace.io.watch_store import (
    FAILED,
    MOVED,
    RESCALE,
    RETURNED,
    UNBEGUN,
    StoreError,
    WatchDecision,
    utc_now,
)
from streamplace.model.messages import quoted

LOOK_SECONDS = 0.2
"""Seconds between two looks at a job that is being rescaled; its outage is known as well as that.
"""
SETTLE_SECONDS = 10.0
"""Seconds after which the rate of a rescaled job is compared with that of before."""
RELEASE_SECONDS, RELEASE_LOOK_SECONDS = 120.0, 2.0
"""Seconds to wait for the release of idle slots, which by default takes up to 100, and between two
looks at them.
"""


def scaling_of(rest: Rest, log: WatchLog, job: str) -> Scaling:
    """Return how the numbers of subtasks of a job can be scaled.

    They are scaled from those before the first time it was rescaled, or from those that are
    required now if it was not, or if its tasks are others since.
    """
    _, tasks, _ = read_plan(rest, job)
    base = required_of(rest, job, tasks)
    for one in log.decisions.values():
        if one.kind == RESCALE and one.job == job:
            before: dict[str, int] = json.loads(one.transaction)["before"]
            base = before if before.keys() == base.keys() else base
            break
    most = {task.name: task.max_parallelism or task.parallelism for task in tasks}
    return Scaling(base, most, packs_subtasks(rest))


@dataclass(frozen=True, slots=True)
class Rescaler:
    """Rescales a watched job."""

    rest: Rest
    log: WatchLog
    tell: Callable[[str], None]
    seconds: float = 120.0  # time within which the scheduler must have rescaled a job
    # File to which predicted and measured rates are appended; None writes none.
    ledger: Path | None = None
    confidence: float | None = None  # confidence of the predictions; None if unknown
    # Receives the job and the TaskManagers on which no job has a slot any more.
    left: Callable[[str, Sequence[str]], None] = keep_devices

    def carry_out(self, model: JobModel, target: WatchPlan, reason: str) -> str:
        """Give a job the subtasks of a plan; return its id.

        Raises
        ------
        StoreError
            When the decision cannot be written; nothing was done.
        FlinkError
            When Flink refuses them; nothing was done.
        """
        job = model.job
        numbers = {name: len(devices) for name, devices in target.layout.items()}
        _, tasks, _ = read_plan(self.rest, job)
        ids = {task.name: task.id for task in tasks}
        before = self._required(job, ids)
        least = self._least(job, ids)
        request = {"tasks": ids, "before": before, "after": numbers, "least": least}
        flow = source_flow(self.rest, job, seconds_for(varies=model.varies))
        decision = WatchDecision(
            utc_now(),
            RESCALE,
            job,
            json.dumps(request, ensure_ascii=False),
            {name: [*devices] for name, devices in target.layout.items()},
            (model.present.machines, target.machines),
            reason,
            *target.carries,
            believed=model.believed_of(target),
            kept=model.kept,
            spread=model.spread,
        )
        number = self.log.begin(decision)
        try:
            self._require(job, ids, numbers, least)
        except NoAnswer:  # it may have arrived
            pass
        except FlinkError as error:
            self.log.end(number, decision, UNBEGUN, str(error), job)
            raise
        self.finish(number, decision, model.name, flow)
        is_to_fewer = target.machines < model.present.machines
        with suppress(StoreError):
            if is_to_fewer and self.log.decisions[number].state == MOVED:
                self._await_release(job, model.present.devices)
                if freed := freed_of(self, model.present.devices):
                    self.left(job, freed)
        return job

    def finish(
        self, number: int, decision: WatchDecision, name: str, before: SourceFlow | None = None
    ) -> str | None:
        """Finish a decision, also of a watch that was ended; return the job's id if it runs.

        Parameters
        ----------
        before
            Output of its sources before, below which it must not fall; None if unknown.
        """
        return answer_of(lambda: self._settle(number, decision, name, before), self.tell)

    def _settle(
        self, number: int, decision: WatchDecision, name: str, before: SourceFlow | None
    ) -> str | None:
        """Wait until the job runs with the subtasks of a decision, and note what came of it."""
        job, known = decision.job, json.loads(decision.transaction)
        ids, numbers = known["tasks"], known["after"]
        if self.rest.state(job) in (None, *ENDED):
            self.log.end(number, decision, FAILED, f"job {job} has ended", "")
            return None
        if self._required(job, ids) != numbers:
            why = "Flink has not got the request, or has got another one since"
            self.log.end(number, decision, UNBEGUN, why, job)
            return job
        outage = self._wait(job, ids, numbers)
        if outage is None:
            why = f"the scheduler has not rescaled the job within {self.seconds:g} s"
            return self._back(number, decision, UNBEGUN, why)
        if outage == math.inf:
            why = f"the job did not run with these subtasks within {self.seconds:g} s"
            return self._back(number, decision, RETURNED, why)
        words = f"interrupted for {outage:.1f} s" if outage else ""
        where = _subtask_words(numbers)
        self.tell(f"job {job} runs with the subtasks {where}{words and ', '}{words}")
        if before is not None:
            time.sleep(SETTLE_SECONDS)
            try:
                check_rate(self.rest, job, Settling(never_slower=True), before)
            except NoAnswer:
                raise
            except FlinkError as error:
                return self._back(number, decision, RETURNED, str(error))
        ended = self.log.end(number, decision, MOVED, words, job)
        note_rate(self, number, ended, name)
        return job

    def _wait(self, job: str, ids: Mapping[str, str], numbers: Subtasks) -> float | None:
        """Seconds for which a job is interrupted until all of it runs with so many subtasks.

        None if the scheduler does not begin to rescale it within the time, infinite if it is
        interrupted and does not run with them by then; 0 if it does already.
        """
        deadline, stopped = time.monotonic() + self.seconds, None
        while time.monotonic() < deadline:
            vertices = self.rest.job(job)["vertices"]
            runs = bool(vertices) and {vertex["status"] for vertex in vertices} <= AT_WORK
            there = {vertex["id"]: vertex["parallelism"] for vertex in vertices}
            now = time.monotonic()
            if not runs:
                stopped = now if stopped is None else stopped
            elif there == {ids[name]: number for name, number in numbers.items()}:
                return 0.0 if stopped is None else now - stopped
            time.sleep(LOOK_SECONDS)
        return None if stopped is None else math.inf

    def _back(self, number: int, decision: WatchDecision, state: str, why: str) -> str:
        """Require the numbers of subtasks of before, and note why."""
        job, known = decision.job, json.loads(decision.transaction)
        words = _subtask_words(known["before"])
        self.tell(f"{why}; job {job} gets its earlier subtasks: {words}")
        # Each is asked until Flink answers: the decision would else be judged by what it required.
        request = (known["tasks"], known["before"], known["least"])
        answer_of(lambda: self._require(job, *request), self.tell)
        answer_of(lambda: self._wait(job, known["tasks"], known["before"]), self.tell)
        self.log.end(number, decision, state, why, job)
        return job

    def _required(self, job: str, ids: Mapping[str, str]) -> dict[str, int]:
        """Largest number of subtasks of each task, by its name."""
        now = largest_numbers(self.rest, job)
        return {name: now[task] for name, task in ids.items()}

    def _least(self, job: str, ids: Mapping[str, str]) -> dict[str, int]:
        """Least number of subtasks of each task, as required before it was first rescaled."""
        now = requirements(self.rest, job)
        least = {name: now[task]["parallelism"]["lowerBound"] for name, task in ids.items()}
        for one in self.log.decisions.values():
            if one.kind == RESCALE and one.job == job:
                first: dict[str, int] = json.loads(one.transaction)["least"]
                return {name: max(number, first.get(name, 0)) for name, number in least.items()}
        return least

    def _await_release(self, job: str, devices: Sequence[str]) -> None:
        """Wait until a job has no slot on those of some devices that run no subtask of it.

        The scheduler keeps slots that have become idle for up to twice Flink's slot.idle.timeout.
        """
        deadline = time.monotonic() + RELEASE_SECONDS
        with suppress(FlinkError):  # the next look at the job tells
            layout = running_layout(self.rest, job)
            used = {device for vector in layout.values() for device in vector}
            idle = [device for device in devices if used and device not in used]
            while any(job in self.rest.holders(device) for device in idle):
                if time.monotonic() >= deadline:
                    return
                time.sleep(RELEASE_LOOK_SECONDS)

    def _require(
        self, job: str, ids: Mapping[str, str], numbers: Subtasks, least: Subtasks
    ) -> None:
        """Set the largest numbers of subtasks, and the least ones, unless these are larger."""
        wanted: Requirements = {
            task: {
                "parallelism": {
                    "lowerBound": min(least[name], numbers[name]),
                    "upperBound": numbers[name],
                }
            }
            for name, task in ids.items()
        }
        require(self.rest, job, wanted)


def _subtask_words(numbers: Mapping[str, int]) -> str:
    """Numbers of subtasks, in words.

    >>> _subtask_words({"map": 2, "sink": 1})
    "2 × 'map', 1 × 'sink'"
    """
    return ", ".join(f"{number} × {quoted(name)}" for name, number in numbers.items())
