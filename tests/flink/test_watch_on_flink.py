"""Arithmetic and page of `benchmarks/watch_on_flink.py`."""

import pytest
import watched_day

DAY = watched_day.Phases(watched_day.DAY, 60.0, 100.0)


def moments(seconds, waits=0.0, machines=2):
    """The job every two seconds, always alike."""
    return [watched_day.Moment(2.0 * i, 0.0, waits, machines) for i in range(int(seconds / 2))]


def test_tuples_that_wait_too_long_are_not_in_time():
    """At 70 tuples/s, 500 wait for 7 s, and at 10 for 50 s."""
    results = DAY.results(moments(480, 500.0), [])
    in_time = {phase.name: phase.in_time for phase in results}
    assert (in_time["doubled"], in_time["night"]) == (1.0, 0.0)


def test_a_job_that_does_not_run_or_moves_twice_is_not_settled():
    gone = DAY.results(moments(480, machines=0), [])
    assert not any(phase.is_settled for phase in gone)
    outages = {61.0: 1.0, 90.0: 3.0, 130.0: None}
    moves = [watched_day.Move(at, "move", outage) for at, outage in outages.items()]
    results = DAY.results(moments(480), moves)
    settled = [(phase.moves, phase.is_settled) for phase in results[:3]]
    assert settled == [(0, True), (2, False), (1, True)]
    assert watched_day.outage_quantile(moves, 0.5) == 2.0
    assert watched_day.outage_quantile(moves[2:]) is None


def test_a_rate_that_swings_brings_as_much_as_its_mean():
    day = watched_day.Phases([watched_day.Phase("a sine", 0.5, swing=0.5)], 60.0, 100.0)
    assert day.arrived(60.0) == pytest.approx(3000)
    assert day.rate(15.0) == pytest.approx(75, abs=1)
    assert day.rate(45.0) == pytest.approx(25, abs=1)


@pytest.fixture
def row():
    """A day of one phase, with one move."""
    return {
        "arm": "watch",
        "seconds": 60.0,
        "capacity": 100.0,
        "phases": [{"name": "noon", "rate": 0.5}],
        "moments": [[*one] for one in moments(60)],
        "moves": [[1.0, "move", 1.5]],
        "arrived": 3000,
        "read": 3000.0,
        "counted": 2990.0,
    }


def test_what_some_subtasks_have_read_is_not_what_the_job_has_read(row):
    """After a start Flink tells some of them alone, and what was read before was read."""
    row["moments"] = [[0.0, 900.0, 100.0, 2], [2.0, 300.0, 800.0, 2], [4.0, 1150.0, 50.0, 2]]
    read = [(moment.read, moment.waits) for moment in watched_day.moments_of(row)]
    assert read == [(900, 100), (900, 200), (1150, 50)]
