"""The engine in the core: signals, threads, memory and wrong arguments."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from engine_cases import chain
from running import Late, ended_after
from streamsim import _core
from streamsim.engine import Settings, observe, simulate, simulate_every_tick, tuple_times
from streamsim.engine.wiring import wire
from streamsim.instance import WindowedOperator


def pair(**more):
    """A source and a sink on two devices."""
    return chain(1e-3, 2e-3, devices=2, seconds_per_byte=np.full((2, 2), 1e-6), **more)


LONG = Settings(duration=3e6, dt=1.0)


@pytest.mark.parametrize(
    "run",
    [
        lambda instance: simulate_every_tick(instance, [[0, 1]] * 50, LONG),
        lambda instance: observe(instance, [[0, 1]] * 50, Settings(duration=3e5, dt=1.0)),
        lambda instance: simulate(instance, [[0, 0]], Settings(capacity=1e-300)),
        lambda instance: tuple_times(instance, np.zeros(2, np.int32), Settings(), "all"),
    ],
    ids=["ticks", "log", "rounds", "tuples"],
)
def test_a_signal_ends_a_run(run):
    """Ctrl-C does not wait for the end of a long run."""
    began = time.monotonic()
    with pytest.raises(Late), ended_after(0.2):
        run(pair())
    assert time.monotonic() - began < 5


def test_threads_get_the_same_results():
    """Runs in several threads at once have equal results."""
    instance, settings = pair(overhead=1e-4), Settings(duration=100)
    expected = simulate_every_tick(instance, [[0, 1]], settings)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(simulate_every_tick, instance, [[0, 1]], settings) for _ in range(8)]
    for run in runs:
        assert all(map(np.array_equal, run.result()[:5], expected[:5]))


def test_a_window_of_too_many_panes_is_an_error():
    """A run that needs more memory than there is raises MemoryError."""
    instance = pair(windows=(WindowedOperator(1, 1e17, 0.1, 0.0, 1.0, np.inf),))
    with pytest.raises(MemoryError):
        simulate(instance, [[0, 1]])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("generated", np.zeros((1, 3))),
        ("generated", np.full((1, 300), np.nan)),
        ("weights", np.ones(3)),
        ("policy", 3),
        ("ticks", -1),
        ("iterations", -1),
        ("dt", 0.0),
        ("capacity", np.nan),
    ],
)
def test_a_wiring_that_does_not_fit_is_refused(field, value):
    """The core checks what it is given."""
    instance = pair()
    wiring = wire(instance, Settings())._replace(**{field: value})
    with pytest.raises(ValueError, match=field):
        _core.simulate(instance.core, wiring, np.zeros((1, 2), np.int32), False)


def test_placements_on_unknown_devices_are_refused():
    """Placements are checked, and so is their type."""
    instance = pair()
    wiring = wire(instance, Settings())
    with pytest.raises(ValueError, match="no device 2"):
        _core.simulate(instance.core, wiring, np.array([[0, 2]], np.int32), True)
    with pytest.raises(TypeError, match="int32"):
        _core.simulate_logged(instance.core, wiring, np.zeros(2))


def test_drift_is_what_an_operator_lacks_of_the_admitted_tuples():
    """The source admits 100 tuples/s, of which 60 arrive; the other 40 stay in the queue."""
    drift = _core.drifts(
        pair().core, np.array([[100.0]]), np.array([[100.0, 60.0]]), np.zeros((1, 0))
    )
    assert drift.tolist() == [[0.0, 0.4]]
