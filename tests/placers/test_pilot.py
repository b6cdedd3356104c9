import numpy as np
import pytest
from hypothesis import given, settings
from pilots import answer, tangle, torn, uneven, weights_file
from placer_cases import counted
from placer_cases import placed as placed_by
from problems import PROBLEMS
from registered import forgetting
from strategies import problems

from streamplace.errors import FormatError, SettingError
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.registry import PLACERS, Budget, Found, Placer

THROUGHPUT = OBJECTIVES["throughput"]
ALL = {
    **PROBLEMS,
    "uneven": Problem(tangle(12), uneven()),
    "torn": torn(),
    "ten devices": Problem(tangle(20), Cluster.uniform(10)),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Return a file of weights that nobody trained."""
    return str(weights_file(tmp_path_factory.mktemp("weights") / "pilot.safetensors"))


def placed(weights, *question, **options):
    """Place with these weights."""
    return placed_by("pilot", *question, weights=weights, **options)


def counting(seen, sense="max"):
    """Throughput under another name, that notes how many placements it is asked about."""
    return Objective("counted", sense, "", counted(seen).evaluate)


@pytest.fixture
def stub():
    """Return the calls of a refiner that goes on from a start, and leaves it as it is."""
    calls = []

    def stay(problem, objective, *, seed, budget, start=()):
        """Stay."""
        calls.append((start, seed, budget))
        return Found(start[0])

    with forgetting(PLACERS):
        PLACERS.add("stay", Placer("stay", "Stays.", stay))
        yield calls


@pytest.mark.parametrize("name", ALL)
def test_at_its_plainest_it_is_the_policy(weights, name):
    """One rollout, one sweep, no samples and no refinement: the likeliest devices."""
    result = placed(weights, ALL[name], rollouts=1, sweeps=1, samples=0, refine="none")
    assert np.array_equal(result.placement.index, answer(ALL[name], sweeps=1))
    assert result.value == THROUGHPUT.value(ALL[name], result.placement)
    assert result.bound is None


@pytest.mark.parametrize("name", ALL)
def test_walks_looks_samples_and_refinement_never_make_it_worse(weights, name):
    more = (
        {"rollouts": 1, "sweeps": 1, "samples": 0},
        {"rollouts": 1, "sweeps": 4, "samples": 0},
        {"rollouts": 3, "sweeps": 4, "samples": 0},
        {"rollouts": 3, "sweeps": 4, "samples": 20},
    )
    values = [placed(weights, ALL[name], refine="none", **options).value for options in more]
    values.append(placed(weights, ALL[name], evaluations=300, **more[-1]).value)
    assert values == sorted(values)


@settings(max_examples=30)
@given(problem=problems(windowed=True))
def test_any_problem_is_placed_legally(weights, problem):
    """Whatever its graph, cluster and rules; and refined without loss."""
    plain = placed(weights, problem, 20, refine="none")
    refined = placed(weights, problem, 40)
    for result in (plain, refined):
        problem.check(result.placement)
    assert refined.value >= plain.value - 1e-12


@pytest.mark.parametrize("evaluations", [1, 2, 5, 12, 50])
def test_no_more_placements_are_judged_than_is_allowed(weights, evaluations):
    """Walks come first, then samples; one more judges the answer."""
    seen = []
    objective = counting(seen)
    placed(weights, ALL["uneven"], evaluations, objective=objective, samples=8, refine="none")
    assert sum(seen) - 1 <= evaluations
    assert sum(seen) - 1 == min(evaluations, 2 * 3 + 8)


def test_the_refiner_gets_the_best_and_what_is_left(weights, stub):
    problem = ALL["uneven"]
    pilot = PLACERS["pilot"].with_options(weights=weights, sweeps=3, samples=5, refine="stay")
    result = pilot.place(problem, THROUGHPUT, seed=11, budget=Budget(60.0, 100))
    ((start, seed, budget),) = stub
    assert start == (result.placement,)
    assert seed == 11
    assert budget.evaluations == 89
    assert 0 < budget.seconds < 60
    assert (
        result.value == placed(weights, problem, seed=11, sweeps=3, samples=5, refine="none").value
    )


@pytest.mark.parametrize("evaluations", [11, 3])
def test_without_evaluations_nobody_refines(weights, stub, evaluations):
    pilot = PLACERS["pilot"].with_options(weights=weights, sweeps=3, samples=5, refine="stay")
    pilot.place(ALL["uneven"], THROUGHPUT, budget=Budget(None, evaluations))
    assert not stub


def test_when_only_time_is_over_the_refiner_still_gets_a_moment(weights, stub):
    """Enough for the least work; not where evaluations may be dear."""
    pilot = PLACERS["pilot"].with_options(weights=weights, sweeps=3, samples=5, refine="stay")
    pilot.place(ALL["uneven"], THROUGHPUT, budget=Budget(1e-9))
    ((_, _, budget),) = stub
    assert 0 < budget.seconds < 1e-3
    pilot.place(ALL["uneven"], counting([]), budget=Budget(1e-9))
    assert len(stub) == 1


def test_any_objective_is_met_in_its_own_sense(weights):
    problem, least = ALL["fork-join"], counting([], "min")
    most = placed(weights, problem, sweeps=2, samples=30, refine="none")
    few = placed(weights, problem, sweeps=2, samples=30, refine="none", objective=least)
    fewer = placed(weights, problem, 200, sweeps=2, samples=30, objective=least)
    assert fewer.value <= few.value < most.value


def test_the_seed_draws_the_samples(weights):
    problem = ALL["ten devices"]
    one, same, *others = (
        placed(weights, problem, seed=seed, sweeps=1, samples=5, refine="none").placement
        for seed in (1, 1, 2, 3, 4)
    )
    assert one == same
    assert any(one != other for other in others)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"refine": "aneal"}, "'aneal'.*'anneal'"),
        ({"refine": "metis"}, "'metis'"),
        ({"sweeps": 0}, "sweeps=0"),
        ({"rollouts": 0}, "rollouts=0"),
        ({"samples": -20}, "samples=-20"),
    ],
)
def test_senseless_options_are_refused(weights, options, refusal):
    for evaluations in (100, 1):
        with pytest.raises(SettingError, match=refusal):
            placed(weights, ALL["chain"], evaluations, **options)


def test_weights_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(FormatError, match=r"^[^\n]*nowhere\.safetensors[^\n]*$"):
        placed(str(tmp_path / "nowhere.safetensors"), ALL["chain"])
