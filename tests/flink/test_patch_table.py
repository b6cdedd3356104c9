"""The table of a patch, in all states, and courses of an abstract operator that disturbs it."""

from dataclasses import replace
from itertools import product

import pytest

from streamplace.flink.operator.patch_table import (
    PATCH_ENDS,
    PATCH_ROWS,
    UNFINISHED_PATCH_ENDS,
    OtherFields,
    PatchedFields,
    PatchObservation,
    PatchOutcome,
    PatchRequest,
    PatchStep,
    Reconciliation,
    decide_patch,
)

STATES = [
    PatchObservation(*state)
    for state in product(
        PatchRequest,
        (False, True),
        PatchedFields,
        OtherFields,
        Reconciliation,
        PatchOutcome,
        (0, 1, 2),
    )
]
CHANGES = {PatchStep.PATCH, PatchStep.RETURN}


def test_every_state_has_a_step_that_is_safe():
    """What others set is never patched, no state is lost, nothing rests on an unknown answer."""
    named = {
        PatchStep.PATCH: {PatchedFields.OLD},  # only a job that runs as it was read
        PatchStep.RETURN: {PatchedFields.NEW},
        PatchStep.KEPT: {PatchedFields.NEW},
        PatchStep.AT_RISK: {PatchedFields.NEW},
        PatchStep.RETURNED: {PatchedFields.OLD},
        PatchStep.NOT_STABLE: {PatchedFields.OLD},
        PatchStep.ENDED_AS_BEFORE: {PatchedFields.OLD},
        PatchStep.ENDED_AS_CHANGED: {PatchedFields.NEW},
        PatchStep.GONE: {PatchedFields.GONE},
    }
    for observation in STATES:
        step, _ = decide_patch(observation)
        is_new = observation.requested is PatchRequest.NOTHING
        is_stable = observation.reconciliation is Reconciliation.STABLE
        assert observation.fields in named.get(step, set(PatchedFields)), observation
        if observation.outcome is PatchOutcome.SILENT or observation.interrupts == 2:
            assert step in PATCH_ENDS, observation
        if observation.others is OtherFields.RISKY:
            assert step not in CHANGES, observation
        if step is PatchStep.PATCH:
            assert observation.others is OtherFields.SAME, observation
            assert not observation.interrupts, observation
            assert observation.requested is not PatchRequest.RETURN, observation
            assert is_stable or not is_new, observation
        if step is PatchStep.RETURN:
            assert not is_new, observation
        if step is PatchStep.KEPT:  # all of what runs is what was decided
            assert is_stable, observation
            assert observation.others is OtherFields.SAME, observation
        if observation.reconciliation is Reconciliation.ENDED:  # it would be started again
            assert step not in CHANGES, observation
        may_be_ours = observation.fields is PatchedFields.NEW and not is_new
        if may_be_ours and step in PATCH_ENDS - UNFINISHED_PATCH_ENDS:  # then it is left on purpose
            purpose = {PatchStep.KEPT, PatchStep.ENDED_AS_CHANGED, PatchStep.CONFLICT}
            assert step in purpose, observation
    assert len(STATES) == 8640


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
    "set by others",
    "put back",
    "other change",
    "risk",
    "safe again",
    "late",
    "fails",
    "rolls back",
    "ends",
    "suspended",
    "deleted",
)
"""What happens to a step, or what another hand does beside it."""
BY_OTHERS = {
    "set by others": {"fields": PatchedFields.OTHER},
    "put back": {"fields": PatchedFields.OLD},
    "other change": {"others": OtherFields.CHANGED},
    "risk": {"others": OtherFields.RISKY},
    "safe again": {"others": OtherFields.SAME},
    "suspended": {"others": OtherFields.CHANGED, "reconciliation": Reconciliation.SUSPENDED},
    "deleted": {"fields": PatchedFields.GONE},
}
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
    Reconciliation.SUSPENDED: Reconciliation.SUSPENDED,
}


def course(faults, resumes=3):
    """Follow the table, with a fault at some turns, until an end; one that leaves is resumed.

    A patch is made of what was observed: another hand in between changes its version, which is the
    fault "conflict".
    """
    now = PatchObservation(
        PatchRequest.NOTHING, False, PatchedFields.OLD, OtherFields.SAME, Reconciliation.STABLE
    )
    patched = []
    for turn in range(60):
        step, _ = decide_patch(now)
        fault = faults.get(turn, "")
        if step in PATCH_ENDS - UNFINISHED_PATCH_ENDS or (
            step in UNFINISHED_PATCH_ENDS and not resumes
        ):
            return step, now, turn, patched
        now = replace(now, outcome=PatchOutcome.DONE)
        if step in PATCH_ENDS:  # resumed by another process
            resumes -= 1
            now = replace(now, interrupts=0, **BY_OTHERS.get(fault, {}))
        elif fault in BY_OTHERS:
            now = replace(now, **BY_OTHERS[fault])
        elif fault.startswith("interrupt"):
            now = replace(now, interrupts=2 if "twice" in fault else min(now.interrupts + 1, 2))
        elif step in CHANGES:
            patched.append((step, now))
            now = sent(now, step, fault)
        else:
            now = awaited(now, step, fault)
    raise AssertionError(f"no end after {faults}")


def sent(now, step, fault):
    """State after a patch was sent; the journal is written before it, and after its answer."""
    is_try = step is PatchStep.PATCH
    request = PatchRequest.TRY if is_try else PatchRequest.RETURN
    now = replace(now, requested=request, is_patched=False)
    if fault in NO_EFFECT:
        return replace(now, outcome=NO_EFFECT[fault])
    fields = PatchedFields.NEW if is_try else PatchedFields.OLD
    now = replace(now, fields=fields, reconciliation=Reconciliation.WAITING)
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


def test_an_undisturbed_change_is_kept():
    step, _, turns, patched = course({})
    assert (step, turns, len(patched)) == (PatchStep.KEPT, 3, 1)


@pytest.mark.parametrize("first", range(8))
def test_every_course_with_two_faults_loses_no_state_and_leaves_nothing_by_mistake(first):
    """No patch is sent where one would lose the state, and what is ours is gone, kept or told."""
    for second in range(first, 8):
        for pair in product(FAULTS, repeat=2):
            step, end, _, patched = course({first: pair[0], second: pair[1]})
            assert all(now.others is not OtherFields.RISKY for _, now in patched), pair
            assert sum(change is PatchStep.PATCH for change, _ in patched) <= 3, pair
            is_ours = end.fields is PatchedFields.NEW and end.requested is not PatchRequest.NOTHING
            if is_ours and step not in UNFINISHED_PATCH_ENDS:
                assert step in (PatchStep.KEPT, PatchStep.ENDED_AS_CHANGED), pair
            if step is PatchStep.KEPT:
                assert end.others is OtherFields.SAME, pair


def test_fields_go_back_where_others_change_what_they_rest_on():
    for turn in (1, 2):
        step, end, _, _ = course({turn: "other change"})
        assert (step, end.fields) == (PatchStep.RETURNED, PatchedFields.OLD)


def test_a_risk_that_ends_lets_the_change_be_finished():
    assert course({2: "risk"})[0] is PatchStep.AT_RISK
    assert course({2: "risk", 3: "safe again"})[0] is PatchStep.KEPT
