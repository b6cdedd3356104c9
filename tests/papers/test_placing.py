"""Placers that go from placement to placement with trained weights."""

from dataclasses import replace

import numpy as np
import pytest
from placer_cases import SLOW, case
from problems import PROBLEMS, chain

from streamplace.errors import FormatError, SettingError
from streamplace.io.weights import read_weights, write_weights
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.families.giph import Giph, giph
from streamplace.placers import stopwatch
from streamplace.placers.learned import placer_that_improves
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Budget

MAKESPAN = OBJECTIVES["makespan"]
TEST = [p for p in giph(Giph(problems=6), seed=1) if p.graph.attributes["split"] == "test"]
IMPROVING = [case(name) for name in MODELS if MODELS[name].improver is not None]


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        case("pilot-makespan:refine=none", 430.7),
        case("giph", 457.5),
        case("giph-task-eft", 474.7),
        case("placeto", 585.7),
        case("hdp", 643.9),
        case("hsdag", 607.4),
        case("doppler", 530.9),
    ],
)
def test_shipped_weights_place_as_they_did_when_they_were_trained(name, mean):
    """Without search: whoever changes a feature or a network has to train its model again."""
    placer = named_placer(name)
    values = [placer.place(p, MAKESPAN, budget=Budget(1e6)).value for p in TEST]
    assert np.mean(values) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("name", IMPROVING)
def test_a_walk_from_heft_is_never_worse_and_keeps_its_order_if_none_is_better(name):
    for problem in TEST:
        heft = PLACERS["heft"].place(problem, MAKESPAN)
        placer = named_placer(f"{name}:start=heft")
        one = placer.place(problem, MAKESPAN, budget=Budget(None, 1))
        assert one.placement == heft.placement
        assert placer.place(problem, MAKESPAN).value <= heft.value


@pytest.mark.parametrize("name", IMPROVING)
def test_evaluations_are_counted_exactly(name):
    """The trace tells after how many each improvement came."""
    problem = TEST[0]
    for evaluations in (1, 2, 17, 3 * problem.n_operators):
        found = PLACERS[name].place(problem, MAKESPAN, budget=Budget(None, evaluations))
        assert found.trace[0].evaluations == 1
        assert found.trace[-1].evaluations <= evaluations


@pytest.mark.parametrize("name", IMPROVING)
def test_without_a_count_it_walks_once(name):
    """Two steps per task (Placeto: one), after the placement that it begins with."""
    problem = TEST[0]
    once = PLACERS[name].place(problem, MAKESPAN, budget=Budget(1e6))
    counted = Budget(None, 1 + 2 * problem.n_operators)
    assert PLACERS[name].place(problem, MAKESPAN, budget=counted).value <= once.value


@pytest.mark.parametrize("name", IMPROVING)
def test_the_clock_ends_no_small_walk(name):
    """So one seed gives one answer, however busy the machine is."""
    hurried, patient = (
        PLACERS[name].place(TEST[0], MAKESPAN, budget=Budget(seconds)) for seconds in (1e-9, 1e6)
    )
    assert hurried.placement == patient.placement


@SLOW
def test_the_clock_ends_a_large_walk_after_its_beginning():
    problem = Problem(chain(2000), Cluster.uniform(200))
    found = PLACERS["giph"].place(problem, OBJECTIVES["latency"], budget=Budget(1e-9))
    problem.check(found.placement)
    assert [step.evaluations for step in found.trace] == [1]


@SLOW
def test_it_goes_on_from_the_best_of_given_placements():
    problem = TEST[0]
    given = tuple(
        PLACERS[name].place(problem, MAKESPAN).placement for name in ("heft", "foresight")
    )
    placer = PLACERS["giph"].with_options(start=given)
    values = [MAKESPAN.value(problem, placement) for placement in given]
    assert placer.place(problem, MAKESPAN, budget=Budget(None, 2)).value == min(values)
    assert placer.place(problem, MAKESPAN, budget=Budget(None, 40)).value <= min(values)


@SLOW
def test_giph_is_better_than_chance_at_equal_evaluations():
    values = {
        name: [
            PLACERS[name].place(p, MAKESPAN, budget=Budget(None, 1 + 2 * p.n_operators)).value
            for p in TEST
        ]
        for name in ("giph", "random")
    }
    assert np.mean(np.divide(values["giph"], values["random"])) < 0.95


@pytest.mark.parametrize("name", IMPROVING)
def test_weights_of_another_shape_are_refused_in_one_line(name, tmp_path):
    weights = read_weights(shipped(name))
    tensors = dict(weights.tensors)
    first = next(iter(tensors))
    for changed in (
        {**tensors, first: np.zeros((2, 3, 4), np.float32)},
        {key: array for key, array in tensors.items() if key != first},
        {**tensors, "more": np.zeros(1, np.float32)},
    ):
        path = tmp_path / "changed.safetensors"
        write_weights(path, weights.document, changed)
        placer = PLACERS[name].with_options(weights=str(path))
        with pytest.raises(FormatError, match=r"\A[^\n]*changed\.safetensors[^\n]*\Z"):
            placer.place(PROBLEMS["diamond"], MAKESPAN)


def test_a_placer_to_begin_with_that_nobody_knows_is_refused():
    with pytest.raises(SettingError, match="nonsense"):
        named_placer("giph:start=nonsense").place(TEST[0], MAKESPAN)


@SLOW
def test_the_clock_stands_still_while_weights_are_read(monkeypatch):
    model, clock = MODELS["giph"], [0.0]
    monkeypatch.setattr(stopwatch, "clock", lambda: clock[0])

    def read(path):
        clock[0] += 100.0
        return model.improver(path)

    result = placer_that_improves(model, read).place(TEST[0], MAKESPAN, budget=Budget(None, 5))
    assert result.seconds < 100


def test_a_model_that_comes_without_weights_says_so():
    model = replace(MODELS["giph"], name="unshipped")
    with pytest.raises(SettingError, match="no weights"):
        placer_that_improves(model, model.improver).place(TEST[0], MAKESPAN)
