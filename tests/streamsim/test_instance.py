import numpy as np
from hypothesis import given
from streamsim import build_instance, throughput
from streamsim_strategies import Description, descriptions


@given(descriptions())
def test_streams_are_sorted_by_source_listed_by_target_and_keep_the_callers_number(
    problem: Description,
) -> None:
    instance = problem.instance
    index = instance.stream_index
    for v in range(problem.n_operators):
        out = index[instance.out_start[v] : instance.out_end[v]]
        into = index[instance.in_streams[instance.in_start[v] : instance.in_start[v + 1]]]
        assert sorted(out) == [e for e, u in enumerate(problem.source) if u == v]
        assert sorted(into) == [e for e, u in enumerate(problem.target) if u == v]
    for name in ("source", "target", "selectivity", "payload"):
        given_, kept = getattr(problem, name), getattr(instance, name)
        assert kept.tolist() == [given_[e] for e in index]


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
