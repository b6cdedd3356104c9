import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamsim import CycleError, build_instance, throughput
from streamsim_strategies import Description, descriptions, placements


@given(descriptions())
def test_the_streams_out_of_an_operator_are_adjacent(problem: Description) -> None:
    instance = problem.instance
    for v in range(problem.n_operators):
        out = slice(instance.out_start[v], instance.out_end[v])
        assert sorted(instance.stream_index[out]) == [
            e for e, u in enumerate(problem.source) if u == v
        ]


@given(descriptions())
def test_the_streams_into_an_operator_are_listed(problem: Description) -> None:
    instance = problem.instance
    for v in range(problem.n_operators):
        streams = instance.in_streams[instance.in_start[v] : instance.in_start[v + 1]]
        assert sorted(instance.stream_index[streams]) == [
            e for e, target in enumerate(problem.target) if target == v
        ]


@given(descriptions())
def test_columns_of_streams_lead_back_to_the_callers_order(problem: Description) -> None:
    instance = problem.instance
    index = instance.stream_index
    assert instance.source.tolist() == [problem.source[e] for e in index]
    assert instance.target.tolist() == [problem.target[e] for e in index]
    assert instance.selectivity.tolist() == [problem.selectivity[e] for e in index]
    assert instance.payload.tolist() == [problem.payload[e] for e in index]


@given(descriptions(), st.data())
def test_the_order_of_the_streams_means_nothing(problem: Description, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem.source))))
    shuffled = problem.but(
        source=[problem.source[e] for e in order],
        target=[problem.target[e] for e in order],
        selectivity=[problem.selectivity[e] for e in order],
        payload=[problem.payload[e] for e in order],
    )
    batch = data.draw(placements(problem, 2))
    expected = throughput(problem.instance, batch)
    assert throughput(shuffled.instance, batch) == pytest.approx(expected, rel=1e-9)


def test_a_cycle_is_refused() -> None:
    with pytest.raises(CycleError, match="cycle"):
        build_instance(
            rate=[1, 0, 0],
            seconds=[[1]] * 3,
            source=[0, 1, 2],
            target=[1, 2, 1],
            device_type=[0],
            seconds_per_byte=[[0]],
        )


def test_loads_count_the_cores_of_a_device_and_the_subtasks_of_an_operator() -> None:
    instance = build_instance(
        rate=[100],
        seconds=[[0.01, 0.02]],
        source=[],
        target=[],
        parallelism=[2],
        device_type=[1, 0],
        cores=[4, 1],
        seconds_per_byte=np.zeros((2, 2)),
    )
    assert instance.load.tolist() == [[1.0, 0.5]]
    assert instance.core_load.tolist() == [[0.5, 1.0]]


def test_what_stays_on_a_device_is_free_whatever_the_diagonal_says() -> None:
    instance = build_instance(
        rate=[1, 0],
        seconds=[[0.1], [0.1]],
        source=[0],
        target=[1],
        payload=[1e9],
        device_type=[0, 0],
        seconds_per_byte=np.full((2, 2), 1.0),
        latency=np.full((2, 2), 5.0),
    )
    assert throughput(instance, [[0, 0]])[0] == 1.0
    assert np.diag(instance.latency).tolist() == [0, 0]


def test_the_callers_arrays_are_not_changed() -> None:
    wire = np.full((2, 2), 1.0)
    build_instance(
        rate=[1], seconds=[[1]], source=[], target=[], device_type=[0, 0], seconds_per_byte=wire
    )
    assert (wire == 1.0).all()
