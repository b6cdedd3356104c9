"""Which sources are held back, by what Flink tells of their tasks."""

import pytest
from lazy_flink import MIPS, Clock, LazyFlink, Vertex, rates
from shop_flink import shop_vertices

from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.source_rates import source_rates
from streamplace.engines.flink.move import settling
from streamplace.engines.flink.move.settling import source_flow


@pytest.mark.parametrize(("most", "is_held_back"), [(0.9, True), (0.05, False)])
def test_one_back_pressured_subtask_of_many_is_noticed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, most: float, *, is_held_back: bool
) -> None:
    """All 64 of them together are back-pressured 1.4 % of the time, whoever it is."""
    monkeypatch.setattr(settling, "processes_of", lambda rest: {})
    flink = LazyFlink(clock, shop_vertices(0.9))
    source = flink.vertices["v0"]
    source.parallelism, source.most = 64, {"accumulateBackPressuredTimeMs": 1000 * most}
    seen = profile(flink.rest, "job", 10)
    assert seen.held_back == ({"src"} if is_held_back else set())
    told = "rate of src: one of its subtasks is back-pressured 90 % of the time, so its actual rate"
    seen.graph(MIPS)
    assert any(told in doubt for doubt in seen.doubts) is is_held_back
    assert source_rates(seen)[0].is_held_back is is_held_back
    flow = source_flow(LazyFlink(clock, {"v0": source}).rest, "job")
    assert flow is not None
    assert flow.is_limited is is_held_back


@pytest.mark.parametrize(
    ("rate", "busy", "backlog", "is_limited"),
    [
        (5000.0, 1.96, None, True),
        (5000.0, 1.5, None, False),
        (5000.0, "NaN", None, False),  # a SourceFunction: nobody knows
        (500.0, 1.96, None, False),  # it may poll for input that does not arrive
        (500.0, 1.96, 5e8, True),
        (5000.0, 1.96, 10.0, False),  # it emits all that arrives
    ],
)
def test_one_busy_task_that_is_the_whole_job_is_held_back(
    clock: Clock, rate: float, busy: float | str, backlog: float | None, *, is_limited: bool
) -> None:
    """On a TaskManager of another machine, whose CPU nobody sees, nothing else tells."""
    counts: dict[str, float | str] = {**rates(), "Source__src.numRecordsOut": rate}
    counts["accumulateBusyTimeMs"] = busy if isinstance(busy, str) else 1000 * busy
    flink = LazyFlink(clock, {"v0": Vertex("Source: src -> out: Writer", counts)})
    if backlog is not None:
        counts["Source__src.pendingRecords"] = 0.0
        flink.counted["v0"] = {"Source__src.pendingRecords": backlog}
    seen = profile(flink.rest, "job", 10)
    assert seen.is_limited is is_limited
    is_known = backlog is not None or not is_limited
    assert source_rates(seen)[0].offered == (rate if is_known else None)
    told = "it is busy 98 % of the time, so its actual rate may be higher"
    assert (told in str(seen.graph(MIPS).attributes.get("unmeasured", ""))) is is_limited
