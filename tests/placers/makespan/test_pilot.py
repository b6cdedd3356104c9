"""Pilot for one pass, with the weights that come along."""

import numpy as np
import pytest
from hypothesis import given
from makespan_cases import MAKESPAN, giph, problems

from streamplace.errors import FormatError
from streamplace.io.weights import read_weights, write_tensors
from streamplace.learn.model_weights import shipped
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Budget

AT_ONCE = "pilot:samples=0:refine=none"


@given(problem=problems())
def test_it_is_never_above_heft_and_keeps_all_rules(problem):
    result = named_placer(AT_ONCE).place(problem, MAKESPAN)
    assert problem.legal(result.placement.index[None]).all()
    assert result.value <= PLACERS["heft"].place(problem, MAKESPAN).value
    assert result.value == MAKESPAN.value(problem, result.placement)


@pytest.mark.parametrize("evaluations", [1, 3, 7, 40])
def test_evaluations_are_an_exact_limit(evaluations):
    result = PLACERS["pilot"].place(giph(4)[0], MAKESPAN, budget=Budget(None, evaluations))
    assert result.trace[-1].evaluations <= evaluations


def test_where_evaluations_are_few_it_is_ahead_of_search():
    budget = Budget(None, 100)
    ratios = [
        PLACERS["pilot"].place(problem, MAKESPAN, budget=budget).value
        / PLACERS["anneal"].place(problem, MAKESPAN, budget=budget).value
        for problem in giph(20, "grid")
    ]
    assert np.mean(ratios) < 1


@pytest.mark.parametrize("width", ["wide", [32], {}, -1, 33, 1e300, True], ids=repr)
def test_weights_with_a_spoiled_width_are_refused(width, tmp_path):
    weights = read_weights(shipped("pilot-makespan"))
    document = {**weights.document, "config": {**weights.document["config"], "width": width}}
    path = tmp_path / "spoiled.safetensors"
    write_tensors(path, document, weights.tensors)
    with pytest.raises(FormatError, match=r"spoiled\.safetensors: "):
        named_placer(f"{AT_ONCE}:weights={path}").place(giph(1)[0], MAKESPAN)
