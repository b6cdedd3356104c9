"""What moving costs those who already run a placement."""

from itertools import product
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace import Relocation
from streamplace.api import place, simulate
from streamplace.errors import SettingError
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.problem import Moving
from streamplace.objectives.registry import named_objective
from streamplace.objectives.relocation import relocating
from streamplace.placers.registry import PLACERS, Budget

SHORT = Budget(None, 3000)


def fork(*, memory=1e6):
    """Two tasks of 2 s and 1 s after one of 1 s, whose outputs are nothing."""
    operators = [Operator(name, ipt=ipt, memory=memory) for name, ipt in
                 (("first", 1e9), ("long", 2e9), ("short", 1e9))]  # fmt: skip
    return StreamGraph.of(
        "fork", operators, [Stream("first", "long"), Stream("first", "short")], fires="all"
    )


def on_two(graph, **rules):
    """Two devices that do a task of 1e9 instructions in a second, 1 MB/s between them."""
    cluster = Cluster.uniform(2, mips=1000, bandwidth="8 Mbps")
    return Problem(graph, cluster, Constraints(**rules))


FORK = on_two(fork())
TOGETHER = dict.fromkeys(FORK.graph.operators.name, "d0")


def makespan_from(before, passes, startup=1.0):
    return relocating(named_objective("makespan"), Relocation(before, passes, startup))


def test_a_move_costs_its_state_over_the_link_and_its_start_over_the_passes():
    """1 MB at 1 MB/s and 1 s to start; 4 s together become 3 s on two devices."""
    judge = makespan_from(TOGETHER, 10)
    values = judge.values(FORK, np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]], np.int32))
    assert values == pytest.approx([4.0, 3.0 + 2 / 10, 4.0 + 6 / 10])


def test_the_link_is_the_one_from_the_old_device_to_the_new_with_its_latency():
    cluster = Cluster.of(
        [Device("a"), Device("b")], bandwidth=[[8e6, 8e6], [1.6e7, 8e6]], latency="0.25 s"
    )
    problem = Problem(fork(), cluster)
    here = Relocation({"first": "a", "long": "b"}).seconds(problem)
    assert here.tolist() == [[0, 1.25], [0.75, 0], [0, 0]]


def test_without_state_or_the_old_device_only_starting_takes_time():
    problem = on_two(fork(memory=0.0))
    assert Relocation(TOGETHER, startup=0.5).seconds(problem)[:, 1].tolist() == [0.5] * 3
    gone = {**TOGETHER, "short": "d7"}
    assert Relocation(gone, startup=2.0).seconds(FORK)[2].tolist() == [2.0, 2.0]


def test_a_problem_says_itself_what_moving_takes():
    moving = Moving([8e6, 0, 0], [[1, 2], [3, 4], [5, 6]])
    problem = Problem(FORK.graph, FORK.cluster, moving=moving)
    assert Relocation(TOGETHER).seconds(problem).tolist() == [[0, 2 + 8], [0, 4], [0, 6]]
    with pytest.raises(SettingError, match="start"):
        place(problem, relocation=Relocation(TOGETHER, 5, startup=1.0))


@given(
    st.lists(st.integers(0, 1), min_size=3, max_size=3),
    st.floats(0.1, 1e6),
    st.sampled_from(["makespan", "latency", "cost", "makespan:network=link"]),
)
def test_free_moves_leave_the_value_as_it_is(devices, passes, name):
    batch, own = np.array([devices], np.int32), named_objective(name)
    free = on_two(fork(memory=0.0))
    assert relocating(own, Relocation(TOGETHER, passes)).values(free, batch) == own.values(
        free, batch
    )
    for_ever = relocating(own, Relocation(TOGETHER, inf, 5.0))
    assert for_ever.values(FORK, batch) == own.values(FORK, batch)


EVERY = np.array(list(product(range(2), repeat=3)), np.int32)


@given(
    st.lists(st.sampled_from(["d0", "d1", "gone"]), min_size=3, max_size=3),
    st.floats(0, 10),
    st.lists(st.floats(0.1, 1e4), min_size=2, max_size=2, unique=True),
)
def test_the_more_often_a_graph_runs_the_more_the_best_placement_moves(homes, startup, passes):
    """Over more passes the value is no higher, moves cost no less, and a pass takes no longer."""
    before = dict(zip(FORK.graph.operators.name, homes, strict=True))
    seconds = Relocation(before, startup=startup).seconds(FORK)
    seldom, often = sorted(passes)
    found = []
    for number in (seldom, often):
        values = makespan_from(before, number, startup).values(FORK, EVERY)
        best = int(values.argmin())
        moved = seconds[np.arange(3), EVERY[best]].sum()
        found.append((values, values[best], moved, values[best] - moved / number))
    (less, low, few, long), (more, high, many, short) = found
    assert (more <= less + 1e-9).all()
    assert high <= low + 1e-9
    assert many >= few - 1e-6
    assert short <= long + 1e-9


@given(
    st.integers(0, 1000), st.floats(0.5, 100), st.floats(0, 4),
    st.sampled_from(["makespan", "latency", "cost"]),
)  # fmt: skip
def test_a_search_finds_the_best_of_all_placements_of_a_small_graph(seed, passes, startup, name):
    """No order matters here, so that all placements can be told."""
    rng = np.random.default_rng(seed)
    before = {v: f"d{rng.integers(2)}" for v in FORK.graph.operators.name}
    judge = relocating(named_objective(name), Relocation(before, passes, startup))
    least = judge.values(FORK, EVERY, -np.arange(3.0) * np.ones((len(EVERY), 1))).min()
    for placer in ("anneal", "auto"):
        result = PLACERS[placer].place(FORK, judge, seed=seed, budget=SHORT)
        assert result.value == pytest.approx(least)
        assert result.bound is not None
        assert result.bound <= result.value * (1 + 1e-9)


@pytest.mark.parametrize("objective", ["makespan", "makespan:network=link"])
@pytest.mark.parametrize("placer", ["anneal", "auto"])
def test_no_search_is_worse_than_staying_however_short(placer, objective):
    """In the order of the present placement, which a pass would take longer without."""
    rng = np.random.default_rng(5)
    operators = [Operator(f"v{i}", ipt=rng.uniform(1, 5) * 1e9, payload=2e6) for i in range(40)]
    streams = [Stream(f"v{rng.integers(max(0, i - 9), i)}", f"v{i}") for i in range(4, 40)]
    problem = on_two(StreamGraph.of("many", operators, streams, fires="all"))
    present = place(problem, placer="anneal", budget=Budget(None, 5000)).placement
    judge = named_objective(objective)
    own = judge.value(problem, present)
    assert own < judge.value(problem, problem.placement(present.index))
    words = {"placer": placer, "objective": objective, "budget": Budget(None, 1)}
    result = place(problem, relocation=Relocation(present, 1, startup=1e3), **words)
    assert result.value <= own


def test_colocated_operators_move_together_and_what_must_move_does():
    """The pin sends the long task away from where it runs, and its companion with it."""
    problem = on_two(fork(), pin={"long": "d1"}, colocate=[{"long", "short"}])
    result = place(problem, relocation=Relocation(TOGETHER, 1, startup=1.0), budget=SHORT)
    assert dict(result.placement) == {"first": "d0", "long": "d1", "short": "d1"}
    answer = simulate(problem, result.placement, relocation=Relocation(TOGETHER, 1, startup=1.0))
    assert answer.headline()["relocation"]["before"] is None
    assert "the present placement is not allowed" in answer.verdict


def test_new_operators_are_no_reason_to_move():
    """The present placement is compared with them where they start and run in the least time."""
    present = {name: "d0" for name in TOGETHER if name != "short"}
    relocation = Relocation(present, 10, startup=1.0)
    answer = simulate(FORK, {"first": "d0", "long": "d1", "short": "d0"}, relocation=relocation)
    facts = answer.headline()["relocation"]
    stay = FORK.placement(relocation.stay(FORK).index)
    assert facts["before"] == named_objective("makespan").value(FORK, stay)
    assert "has to move" not in answer.verdict


def test_it_is_said_what_moves_what_that_takes_and_when_it_pays_off():
    """2 s for one second less per pass."""
    relocation = Relocation(TOGETHER, 10, startup=1.0)
    answer = simulate(FORK, {**TOGETHER, "short": "d1"}, relocation=relocation)
    facts = answer.document()["relocation"]
    (move,) = facts["moved"]
    assert move == {
        "operator": "short", "source": "d0", "target": "d1", "migration": 1.0, "startup": 1.0,
    }  # fmt: skip
    assert facts["before"] == pytest.approx(4.0)
    assert ceil(facts["pays_off_after"]) == 2
    assert answer.value == facts["value"] == pytest.approx(3.2)
    assert "moving short takes 2 s" in answer.verdict


def test_a_move_that_gains_nothing_never_pays_off_and_who_stays_is_told_so():
    answer = simulate(FORK, dict.fromkeys(TOGETHER, "d1"), relocation=Relocation(TOGETHER))
    assert answer.headline()["relocation"]["pays_off_after"] is None
    stays = simulate(FORK, TOGETHER, relocation=Relocation(TOGETHER, 10))
    assert stays.headline()["relocation"]["pays_off_after"] == 0


def test_conditions_hold_besides():
    relocation = Relocation(TOGETHER, 1e6, startup=1.0)
    result = place(FORK, require=["devices<=1"], relocation=relocation, budget=SHORT)
    assert dict(result.placement) == TOGETHER
    assert result.objective == "makespan after a move every 1e+06 passes with devices<=1"


def test_the_page_of_a_move_under_a_condition_simulates_its_pass_by_the_options():
    result = place(
        FORK,
        objective="makespan:network=link",
        require=["devices<=2"],
        relocation=Relocation(TOGETHER, 1e6),
        budget=SHORT,
    )
    assert '"network":"link"' in result.report().html().replace(": ", ":")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "throughput"}, "throughput"),
        ({"placer": "heft"}, "'heft' .*'makespan after a move"),
        ({"relocation": Relocation({"else": "d0"}, 1)}, "current placement"),
    ],
)
def test_what_moving_does_not_fit_is_refused(options, message):
    with pytest.raises(SettingError, match=message):
        place(FORK, **{"relocation": Relocation(TOGETHER, 1), "budget": SHORT, **options})


@pytest.mark.parametrize(
    ("passes", "startup", "message"),
    [
        (0, None, "passes is 0"),
        (float("nan"), None, "passes is nan"),
        (1, -1.0, "startup is -1.0 s"),
        (1, inf, "startup is inf s"),
    ],
)
def test_senseless_numbers_are_refused(passes, startup, message):
    with pytest.raises(SettingError, match=message):
        Relocation(TOGETHER, passes, startup)


def test_subtasks_share_the_state_of_their_operator():
    operators = [Operator("a", memory=8e6, parallelism=2), Operator("b")]
    graph = StreamGraph.of("pair", operators, [Stream("a", "b")], fires="all")
    moving = Moving([8e6, 0], [[1, 2], [3, 4]])
    problem = Problem(graph, Cluster.uniform(2), moving=moving)
    subtasks = expand(graph).problem(problem).moving
    assert subtasks == Moving([4e6, 4e6, 0], [[1, 2], [1, 2], [3, 4]])
