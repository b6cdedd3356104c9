"""The table of a move: every combination of what it depends on, and every course of a small world.

The world is a Flink reduced to the states of the jobs of one move. Whatever befalls it (errors,
lost answers, interrupts, kills, a JobManager that forgets, other users), at most one copy of the
job runs, no saved state is lost, and every course ends.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

import pytest

from streamplace.flink.move.decision_table import (
    ENDS,
    HAS_ENDED,
    LIVE,
    ROWS,
    UNFINISHED_ENDS,
    Copy,
    JobState,
    MoveObservation,
    Step,
    StepOutcome,
    Stop,
    decide,
)

STEPS = [step for step in Step if step not in ENDS]
GONE = JobState.GONE
STARTS = (Step.START, Step.RETURN)


def combinations():
    """Every combination of journal, answers of Flink and last step that can be."""
    listed = [(Copy.NONE, GONE, Stop.UNKNOWN)]
    listed += [(Copy.MOVED, s, stop) for s in JobState if s is not GONE for stop in Stop]
    listed += [
        (copy, s, Stop.UNKNOWN)
        for copy in (Copy.SUCCESSOR, Copy.RETURNED)
        for s in JobState
        if s is not GONE
    ]
    last_steps = [(None, StepOutcome.DONE), *product(STEPS, StepOutcome)]
    for (copy, state, stop), (after, outcome) in product(listed, last_steps):
        for requested, saved, returns, cancels, path, interrupts in product(
            Copy, (False, True), (False, True), (False, True), (None, "s"), (0, 1, 2)
        ):
            begins = requested in (Copy.SUCCESSOR, Copy.RETURNED) or returns
            if (saved and path is None) or (begins and not saved):
                continue  # what asks for a start also writes the state that it starts from
            yield MoveObservation(
                requested,
                saved,
                returns,
                cancels,
                copy,
                state,
                stop,
                path,
                after,
                outcome,
                interrupts,
            )


def test_every_combination_has_a_step_that_is_safe_and_every_row_decides_some():
    """None starts a copy beside another, or without a state, or acts on an unknown answer.

    A row that others cover would be read in vain.
    """
    deciding, steps = Counter[int](), Counter[Step]()
    for observation in combinations():
        step = decide(observation)
        steps[step] += 1
        rows = (i for i, row in enumerate(ROWS) if row.step is step and row.holds(observation))
        deciding[next(rows)] += 1
        if step in STARTS:
            assert observation.state in (*HAS_ENDED, GONE), observation
            assert (
                observation.path is not None
                or observation.is_saved
                or observation.state is JobState.STOPPED
            ), observation
        if observation.outcome in (StepOutcome.SILENT, StepOutcome.STARTING, StepOutcome.OTHERS):
            assert step in ENDS, observation
        if observation.interrupts > 1:
            assert step in (Step.LEFT, Step.KEPT), observation
        if observation.interrupts or observation.returns:
            assert step is not Step.START or observation.last is Copy.MOVED, observation
        if step is Step.MOVED:
            assert observation.last is Copy.SUCCESSOR, observation
        if step is Step.HAS_RETURNED:
            assert observation.last is Copy.RETURNED, observation
        if step in (Step.STOP, Step.CANCEL):
            assert observation.last is Copy.MOVED, observation
        if observation.requested is Copy.NONE and observation.outcome is StepOutcome.SILENT:
            assert step not in UNFINISHED_ENDS, observation
    assert [row for i, row in enumerate(ROWS) if not deciding[i]] == []
    assert set(steps) == set(Step)
    assert steps.total() > 100_000


@dataclass(frozen=True, slots=True)
class World:
    """A Flink with the jobs of a move, the journal, and the process that carries it out."""

    jobs: tuple[JobState, ...] = (JobState.RUNNING, GONE, GONE, GONE)  # of the chain
    used: tuple[bool, ...] = (True, False, False, False)  # ids that Flink takes no more
    stop: Stop = Stop.UNKNOWN
    late: int = 0  # number of a job whose start has no answer yet, and may still have an effect
    is_stored: bool = False  # whether a savepoint of the job exists
    requested: Copy = Copy.NONE
    is_saved: bool = False
    returns: bool = False
    after: Step | None = None
    outcome: StepOutcome = StepOutcome.DONE
    interrupts: int = 0
    faults: int = 0
    end: Step | None = None

    def __str__(self):
        """Return what differs from a move that has not begun."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        changed = (f"{k}={v}" for k, v in fields.items() if v != getattr(BEGIN, k))
        jobs = ", ".join(state.name for state in self.jobs)
        return f"[{jobs}] {' '.join(changed)}"

    @property
    def copies(self):
        """Number of copies of the job that run."""
        return sum(state in LIVE for state in self.jobs)

    def observed(self):
        """What the process reads."""
        last = max((i for i, state in enumerate(self.jobs) if state is not GONE), default=-1)
        copy = [Copy.MOVED, Copy.SUCCESSOR, Copy.RETURNED, Copy.RETURNED, Copy.NONE][last]
        return MoveObservation(
            self.requested, self.is_saved, self.returns, False, copy,
            self.jobs[last] if last >= 0 else GONE,
            self.stop if last == 0 else Stop.UNKNOWN,
            "s" if self.is_stored else None, self.after, self.outcome, min(self.interrupts, 2),
        )  # fmt: skip

    def with_job(self, number, state):
        """A job of the chain in another state."""
        jobs = tuple(state if i == number else old for i, old in enumerate(self.jobs))
        used = tuple(i == number or old for i, old in enumerate(self.used))
        return replace(self, jobs=jobs, used=used)


BEGIN = World()


def effects(world, step):  # noqa: C901
    """What a step may do to Flink and the journal, with what the process learns."""
    done = StepOutcome.DONE
    if step in (Step.PREPARE, Step.STEADY):
        yield world, done
    elif step is Step.STOP:
        asked = replace(world, requested=Copy.MOVED)
        yield replace(asked, stop=Stop.UNDER_WAY), done
        yield asked, StepOutcome.FAILED
    elif step is Step.AWAIT_STOP:
        if world.stop is Stop.SAVED:
            yield replace(world, is_saved=True), done
        else:
            yield world, StepOutcome.FAILED
    elif step is Step.START:
        yield from started(replace(world, requested=Copy.SUCCESSOR, is_saved=True), 1)
    elif step in (Step.SETTLE, Step.AWAIT_RETURN):
        number = max(i for i, state in enumerate(world.jobs) if state is not GONE)
        is_live = world.jobs[number] in LIVE
        yield world, done if is_live else StepOutcome.FAILED
        if is_live:
            yield world, StepOutcome.FAILED
    elif step is Step.END:
        ending = replace(world, returns=True, is_saved=True)
        if world.used[1] and world.jobs[1] is GONE:
            yield ending, done  # it ended long ago
        elif world.jobs[1] in LIVE:
            yield ending.with_job(1, JobState.STOPPED), done
            yield ending.with_job(1, JobState.CANCELED), done
        else:
            known = world.jobs[1] is not GONE
            yield ending if known else ending.with_job(1, JobState.CANCELED), done
        yield ending, StepOutcome.FAILED
    elif step is Step.RETURN:
        last = max((i for i, state in enumerate(world.jobs) if state is not GONE), default=1)
        number = min(max(last + 1, 2), 3)
        if number == 2 and world.used[2] and world.jobs[2] is GONE:
            number = 3
        yield from started(
            replace(world, requested=Copy.RETURNED, returns=True, is_saved=True), number
        )


def started(world, number):
    """What the start of a job of the chain may do; Flink takes each id once."""
    others = [i for i, state in enumerate(world.jobs) if state in LIVE and i != number]
    if others:
        yield world, StepOutcome.OTHERS
    elif world.used[number]:
        yield (world, StepOutcome.DONE if world.jobs[number] is not GONE else StepOutcome.SPENT)
    else:
        yield world.with_job(number, JobState.RUNNING), StepOutcome.DONE
        yield world.with_job(number, JobState.FAILED), StepOutcome.DONE
        yield world, StepOutcome.FAILED
        yield replace(world, late=number), StepOutcome.SILENT


def passing(world):
    """What Flink does meanwhile."""
    if world.stop is Stop.UNDER_WAY and world.jobs[0] is JobState.RUNNING:
        stopped = replace(world.with_job(0, JobState.STOPPED), is_stored=True)
        yield replace(stopped, stop=Stop.SAVED)
        yield replace(world, stop=Stop.FAILED)
        yield replace(world.with_job(0, JobState.FAILED), stop=Stop.FAILED)
        yield replace(world.with_job(0, JobState.FAILED), stop=Stop.FAILED, is_stored=True)
    if world.late and not world.used[world.late]:
        yield replace(world.with_job(world.late, JobState.RUNNING), late=0)


def befallen(world):
    """What may befall the move."""
    fault = replace(world, faults=world.faults + 1)
    if world.after is not None or world.outcome is not StepOutcome.DONE:  # killed, and resumed
        yield replace(fault, after=None, outcome=StepOutcome.DONE, interrupts=0)
    yield replace(fault, after=None, outcome=StepOutcome.DONE, interrupts=world.interrupts + 1)
    gone = (GONE,) * 4
    if world.jobs != gone:  # a JobManager without high availability
        yield replace(fault, jobs=gone, used=(False,) * 4, late=0, stop=Stop.UNKNOWN)
    yield replace(fault, outcome=StepOutcome.SILENT, after=world.after or Step.PREPARE)
    for number, state in enumerate(world.jobs):
        if state in LIVE:
            is_stopping = number == 0 and fault.stop is Stop.UNDER_WAY
            ended = replace(fault, stop=Stop.FAILED if is_stopping else fault.stop)
            yield ended.with_job(number, JobState.CANCELED)
            yield ended.with_job(number, JobState.FINISHED)


def successors(world, most_faults):
    """Every world that may come next."""
    yield from passing(world)
    if world.end is not None:
        if world.end in UNFINISHED_ENDS and world.faults < most_faults:  # --resume
            yield replace(
                world, end=None, after=None, outcome=StepOutcome.DONE, interrupts=0,
                faults=world.faults + 1,
            )  # fmt: skip
        return
    if world.faults < most_faults:
        yield from befallen(world)
    step = decide(world.observed())
    if step in ENDS:
        saves = step is Step.STOPPED_BY_OTHERS
        asked = Copy.MOVED if saves else world.requested
        yield replace(world, end=step, requested=asked, is_saved=world.is_saved or saves)
        return
    if step is Step.AWAIT_STOP and world.stop is Stop.UNDER_WAY:
        return  # until Flink has gone on
    for after, outcome in effects(world, step):
        yield replace(after, after=step, outcome=outcome)
        if world.faults < most_faults:  # interrupted or killed once it has its effect
            cut = replace(after, after=None, outcome=StepOutcome.DONE, faults=world.faults + 1)
            yield replace(cut, interrupts=world.interrupts + 1)
            yield replace(cut, interrupts=0)


@pytest.mark.parametrize(
    "most_faults", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)), 3]
)
def test_one_copy_runs_in_every_course_of_the_world(most_faults):
    """And each ends: a job that does not run then has ended by itself, or can be resumed."""
    start = BEGIN
    reached: dict[World, World | None] = {start: None}
    following: dict[World, list[World]] = {}
    front = [start]
    while front:
        world = front.pop()
        following[world] = [*successors(world, most_faults)]
        assert following[world] or world.end is not None, course(reached, world)
        for new in following[world]:
            if new in reached:
                continue
            reached[new] = world
            assert new.copies <= 1, course(reached, new)
            if (
                new.end is not None
                and new.end not in UNFINISHED_ENDS
                and new.copies == 0
                and not new.late
            ):
                check_end(new, course(reached, new))
            front.append(new)
    assert any(world.end is Step.MOVED for world in reached)
    check_ends_are_reached(following)


def check_end(world, words):
    """Where no copy runs and nothing is left to resume, others have ended it, or it is lost."""
    over = (JobState.FINISHED, JobState.CANCELED)
    has_ended = any(state in over for state in world.jobs)
    is_lost = world.end in (Step.LOST, Step.FORGOTTEN) and not world.is_stored
    is_untouched = world.requested is Copy.NONE
    assert has_ended or is_lost or is_untouched or world.end is Step.REFUSED, words


def check_ends_are_reached(following):
    """From every world, some end is reached."""
    before: dict[World, list[World]] = {}
    for world, worlds in following.items():
        for new in worlds:
            before.setdefault(new, []).append(world)
    ending = {world for world in following if world.end is not None}
    front = [*ending]
    while front:
        for world in before.get(front.pop(), []):
            if world not in ending:
                ending.add(world)
                front.append(world)
    assert ending == following.keys()


def course(reached, world):
    """How a world was reached."""
    worlds: list[World] = []
    at: World | None = world
    while at is not None:
        worlds.append(at)
        at = reached[at]
    return "".join(f"\n{each} → {decide(each.observed()).name}" for each in reversed(worlds))
