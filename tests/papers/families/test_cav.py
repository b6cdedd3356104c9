"""GiPH's case study of cars at crossings."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.model.relocation import Relocation
from streamplace.objectives.relocation import moves
from streamplace.papers.families.cav import (
    BLOCK_M,
    CROSSINGS,
    MEASURED,
    SPEEDS,
    Cav,
    cav,
    crossings,
    draw_sites,
    drive,
)


@pytest.fixture(scope="module")
def problems():
    """Twenty cars, five snapshots each."""
    return list(cav(Cav(vehicles=20, snapshots=5), 0))


def test_there_are_36_roadside_units_and_40_edge_devices():
    """Ten of types a and b, twenty of c; the units are of type c, at the crossings."""
    sites = draw_sites(np.random.default_rng(0))
    nouns = [name.rstrip("0123456789") for name in sites.names]
    kinds = Counter(zip(nouns, sites.types, strict=True))
    assert kinds == {("rsu", "c"): 36, ("edge", "a"): 10, ("edge", "b"): 10, ("edge", "c"): 20}
    assert (sites.position[:36] == crossings()).all()
    assert 0 <= sites.position.min() <= sites.position.max() <= (CROSSINGS - 1) * BLOCK_M


def test_a_car_and_every_unit_near_it_have_a_pipeline_each(problems):
    """Three tasks and two sensors of the car; four cameras, four tasks and a fusion of a unit."""
    units = []
    for problem in problems:
        kinds = Counter(problem.graph.operators.kind)
        units.append(kinds["rsu-fusion"])
        assert kinds == {
            "sensor": 2 + 4 * units[-1],
            "camera": 1 + 4 * units[-1],
            "lidar": 1,
            "cav-fusion": 1,
            "rsu-fusion": units[-1],
            "plan": 1,
        }
        assert len(problem.graph.sinks) == 1
    assert np.mean(units) == pytest.approx(3, abs=0.5)


def test_sensors_are_where_they_are_and_detection_needs_a_gpu(problems):
    for problem in problems:
        pin = problem.constraints.pin
        for task in problem.graph.operators:
            fixed = task.kind in ("sensor", "plan")
            assert pin.get(task.name) == (task.name.split("/")[0] if fixed else None)
            assert task.requires == ({"gpu"} if task.kind in ("camera", "lidar") else set())


def test_tasks_take_and_start_in_the_times_of_tables_1_and_2(problems):
    """To start on type b was not measured and is as on an a; sensors and plans take no time."""
    problem = problems[0]
    for row, kind in enumerate(problem.graph.operators.kind):
        for column, device in enumerate(problem.cluster.devices):
            (tag,) = device.tags - {"gpu"}
            ms = MEASURED[kind].ms["abc".index(tag[-1])] if kind in MEASURED else 0
            assert problem.seconds[row, column] * 1000 == pytest.approx(ms)
            ms = MEASURED[kind].startup_ms["type-c" in device.tags] if kind in MEASURED else 0
            assert problem.moving.startup[row, column] * 1000 == pytest.approx(ms)
    assert MEASURED["camera"].ms == (53, 36, 9)
    assert MEASURED["rsu-fusion"].ms == (250, 250, 28)
    assert MEASURED["camera"].startup_ms == (4273.73, 794.66)


def test_bandwidth_decays_with_distance(problems):
    """60 Mbps · exp(-d / 100 m), between units a block apart."""
    for problem in problems:
        devices = problem.cluster.devices
        pairs = [(u, w) for u in range(30) for w in (u + 1, u + 6) if f"rsu{u:02d}" in devices]
        for u, w in pairs:
            if f"rsu{w:02d}" in devices and (w - u == 6 or w % CROSSINGS):
                link = devices.index(f"rsu{u:02d}"), devices.index(f"rsu{w:02d}")
                mbps = problem.cluster.bandwidth_bps[link] / 1e6
                assert mbps == pytest.approx(60 * np.exp(-BLOCK_M / 100), rel=1e-5)


def test_half_of_the_cars_test_and_the_paper_s_cases_are_900(problems):
    splits = Counter(problem.graph.attributes["split"] for problem in problems)
    assert splits == {"train": 50, "test": 50}
    assert Cav().n_graphs == 900


def test_links_of_a_car_change_while_it_drives(problems):
    first, second = problems[:2]
    assert first.graph.attributes["vehicle"] == second.graph.attributes["vehicle"]
    assert first.cluster != second.cluster


@given(st.floats(1, 1000), st.integers(0, 2**32))
def test_cars_stay_on_the_streets_and_keep_their_speed(seconds, seed):
    """Inside the area, with one coordinate on a street, along streets that join."""
    car = drive(seconds, np.random.default_rng(seed))
    assert SPEEDS[0] <= car.speed <= SPEEDS[1]
    for a, b in pairwise(car.route):
        assert abs(a - b).sum() == 1
    for moment in np.linspace(0, seconds, 7):
        blocks = car.at(moment) / BLOCK_M
        assert ((blocks >= 0) & (blocks <= CROSSINGS - 1)).all()
        assert np.isclose(blocks, np.rint(blocks)).any()


def test_moving_a_task_costs_its_start_and_its_data_as_in_table_2(problems):
    problem, devices = problems[0], problems[0].cluster.devices
    unit = next(name for name in devices.name if name.startswith("rsu"))
    rows = problem.repaired(np.zeros(problem.n_operators, int))
    before = problem.placement(rows)
    rows[before.operators.index("cav/scan")] = devices.index(unit)
    stayed, moved = (
        sum(move.migration + move.startup for move in moves(problem, after, Relocation(before)))
        for after in (before, problem.placement(rows))
    )
    mbps = problem.cluster.bandwidth_bps[devices.index("cav"), devices.index(unit)]
    assert stayed == 0
    assert moved == pytest.approx(9.26e-3 + 8 * 560 / mbps)
