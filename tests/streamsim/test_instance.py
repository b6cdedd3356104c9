import numpy as np
from hypothesis import given
from streamsim import build_instance
from streamsim_strategies import descriptions


@given(descriptions())
def test_streams_are_sorted_and_keep_the_callers_number(problem):
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


def test_the_callers_arrays_are_not_changed():
    wire = np.full((2, 2), 1.0)
    build_instance(
        rate=[1], seconds=[[1]], source=[], target=[], device_type=[0, 0], seconds_per_byte=wire
    )
    assert (wire == 1.0).all()
