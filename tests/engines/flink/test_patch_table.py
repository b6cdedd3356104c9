"""The table of a patch, in all states, and courses of an abstract operator that disturbs it."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import pytest

from streamplace.engines.flink.operator.patch_table import (
    PATCH_ENDS,
    PATCH_ROWS,
    PATCHES_LEFT,
    PatchObservation,
    PatchOutcome,
    PatchRequest,
    PatchStep,
    Reconciliation,
    SpecificationState,
    Verdict,
    decide_patch,
)

STATES = [
    PatchObservation(*state)
    for state in product(
        PatchRequest,
        (False, True),
        Verdict,
        SpecificationState,
        Reconciliation,
        PatchOutcome,
        (0, 1, 2),
    )
]
CHANGES = {PatchStep.PATCH, PatchStep.RETURN}


def test_every_state_has_a_step_that_is_safe():
    """What others changed is never patched, and nothing is on an unknown answer."""
    named = {
        PatchStep.PATCH: {SpecificationState.OLD},  # only a job that runs as it was
        PatchStep.RETURN: {SpecificationState.NEW},
        PatchStep.MEASURE: {SpecificationState.NEW},  # only a job that runs as changed
        PatchStep.KEPT: {SpecificationState.NEW},
        PatchStep.RETURNED: {SpecificationState.OLD},
        PatchStep.NOT_STABLE: {SpecificationState.OLD},
        PatchStep.ENDED_AS_BEFORE: {SpecificationState.OLD},
        PatchStep.ENDED_AS_CHANGED: {SpecificationState.NEW},
        PatchStep.GONE: {SpecificationState.GONE},
    }
    for observation in STATES:
        step, _ = decide_patch(observation)
        is_new = observation.requested is PatchRequest.NOTHING
        is_stable = observation.reconciliation is Reconciliation.STABLE
        assert observation.specification in named.get(step, set(SpecificationState)), observation
        if observation.outcome is PatchOutcome.SILENT or observation.interrupts == 2:
            assert step in PATCH_ENDS, observation
        if step is PatchStep.PATCH:
            assert not observation.interrupts, observation
            assert observation.requested is not PatchRequest.RETURN, observation
            assert is_stable or not is_new, observation
        if step is PatchStep.RETURN:
            assert not is_new, observation
        if step in (PatchStep.MEASURE, PatchStep.KEPT):
            assert is_stable, observation
        if observation.reconciliation is Reconciliation.ENDED:  # it would be started again
            assert step not in CHANGES, observation
    assert len(STATES) == 11520


def test_every_row_decides_some_state():
    """A row that never decides is a defect."""
    found = {decide_patch(state) for state in STATES}
    assert {(row.step, row.reason) for row in PATCH_ROWS} == found


FAULTS = (
    "kill before",
    "kill after",
    "silent before",
    "silent after",
    "conflict",
    "refused",
    "interrupt",
    "interrupt twice",
    "other change",
    "late",
    "fails",
    "rolls back",
    "ends",
    "deleted",
)
BY_OTHERS = {"other change": SpecificationState.OTHER, "deleted": SpecificationState.GONE}
BY_OPERATOR = {
    "fails": Reconciliation.FAILED,
    "rolls back": Reconciliation.ROLLING_BACK,
    "ends": Reconciliation.ENDED,
}
NO_EFFECT = {
    "kill before": PatchOutcome.DONE,
    "silent before": PatchOutcome.SILENT,
    "conflict": PatchOutcome.UNSURE,
    "refused": PatchOutcome.REFUSED,
}
NEXT = {state: Reconciliation.STABLE for state in Reconciliation} | {
    Reconciliation.WAITING: Reconciliation.CHANGING,
    Reconciliation.ROLLING_BACK: Reconciliation.ROLLED_BACK,
    Reconciliation.ENDED: Reconciliation.ENDED,
}


def course(better, faults):
    """Follow the table, with a fault at some turns, until an end that leaves no journal."""
    now = PatchObservation(
        PatchRequest.NOTHING, False, Verdict.NONE, SpecificationState.OLD, Reconciliation.STABLE
    )
    for turn in range(60):
        step, _ = decide_patch(now)
        if step in PATCH_ENDS - PATCHES_LEFT:
            return step, now, turn
        fault = faults.get(turn, "")
        now = replace(now, outcome=PatchOutcome.DONE)
        if step in PATCH_ENDS:  # resumed by another process
            now = replace(now, interrupts=0)
        elif fault in BY_OTHERS:
            now = replace(now, specification=BY_OTHERS[fault])
        elif fault.startswith("interrupt"):
            now = replace(now, interrupts=2 if "twice" in fault else min(now.interrupts + 1, 2))
        elif step in CHANGES:
            now = patched(now, step, fault)
        elif step is not PatchStep.MEASURE:
            now = awaited(now, step, fault)
        elif fault == "ends":
            now = replace(now, verdict=Verdict.ENDED)
        elif not fault.startswith("kill"):
            now = replace(now, verdict=Verdict.KEEP if better else Verdict.UNDO)
    raise AssertionError(f"no end after {faults}")


def patched(now, step, fault):
    """State after a patch was sent; the journal is written before it, and after its answer."""
    is_try = step is PatchStep.PATCH
    request = PatchRequest.TRY if is_try else PatchRequest.RETURN
    now = replace(now, requested=request, is_patched=False)
    if fault in NO_EFFECT:
        return replace(now, outcome=NO_EFFECT[fault])
    specification = SpecificationState.NEW if is_try else SpecificationState.OLD
    now = replace(now, specification=specification, reconciliation=Reconciliation.WAITING)
    if fault == "silent after":
        return replace(now, outcome=PatchOutcome.SILENT)
    return now if fault == "kill after" else replace(now, is_patched=True)


def awaited(now, step, fault):
    """State after a while of the operator."""
    if fault in ("late", "silent before"):
        return replace(now, outcome=PatchOutcome.LATE if fault == "late" else PatchOutcome.SILENT)
    if fault == "ends" or (step is PatchStep.AWAIT and fault in BY_OPERATOR):
        return replace(now, reconciliation=BY_OPERATOR[fault])
    return replace(now, reconciliation=NEXT[now.reconciliation])


@pytest.mark.parametrize("better", [True, False])
def test_a_change_is_kept_where_it_is_better(better):
    assert course(better, {})[0] is (PatchStep.KEPT if better else PatchStep.RETURNED)


@pytest.mark.parametrize("better", [True, False])
def test_every_course_with_two_faults_ends_in_one_of_two_specifications(better):
    turns = course(False, {})[2] + 2
    for first, second in combinations_with_replacement(range(turns), 2):
        for faults in product(FAULTS, repeat=2):
            step, end, _ = course(better, {first: faults[0], second: faults[1]})
            if step not in (PatchStep.CONFLICT, PatchStep.GONE):
                assert end.specification in (SpecificationState.OLD, SpecificationState.NEW)
            if step is PatchStep.KEPT:
                assert better
