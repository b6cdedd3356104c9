"""`benchmarks/recorded_elsewhere.py`: limits of parts from rates alone, and refused tables."""

import json
import math

import numpy as np
import pytest
import rate_limits
import recorded_elsewhere

from streamplace.errors import FormatError

HEAD = (
    "query,kind,memory_mb,task_managers,slots_per_manager,source_parallelism,slots,offered,"
    "milliseconds,rate,theirs,parallelism"
)
CALC, JOIN = 1e6, 6e4


def limit(calc, join):
    """Tuples/s of a query whose joins have 128 key groups."""
    return min(calc * CALC, 128 / math.ceil(128 / join) * JOIN)


def line(calc, join, offered=None, noise=1.0):
    rate = noise * min(limit(calc, join), offered or math.inf)
    kind, offer = ("variable", "") if offered is None else ("verification", f"{offered}")
    return f"q,{kind},16384,8,16,64,{calc + join},{offer},30000,{rate},0,Calc={calc} Join={join}"


def written(folder, name, *lines):
    path = folder / name
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Runs of few subtasks, in two of which the calculation is the limit; and others of many."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    few = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (1, 12), (1, 40), (1, 64), (2, 64), (2, 12)]
    fit = [line(*pair, noise=noise) for pair in few for noise in np.exp(0.03 * rng.normal(size=3))]
    many = [(3, 42), (3, 43), (3, 64), (4, 64), (4, 43)]
    judge = [line(*pair) for pair in many]
    judge += [line(*pair, offered=share * limit(*pair)) for pair in many for share in (0.7, 1.4)]
    return written(folder, "fit.csv", *fit), written(folder, "judge.csv", *judge)


def test_rates_of_larger_layouts_follow_from_smaller_ones(tables, capsys):
    """42 subtasks have up to four of 128 key groups, 43 up to three: a third more."""
    recorded_elsewhere.main([*map(str, tables), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["median"] < 0.1
    assert found["p90"] < 0.25
    assert found["called"] == 1
    assert found["coverage"] >= 0.9
    assert found["queries"]["q"]["median"] == found["median"]


def test_an_interval_far_beyond_what_was_fitted_is_open_to_parts_that_never_were_the_limit(
    tmp_path, capsys
):
    """Eight times the calculation that always was the limit: what a join carries is not known."""
    few = [line(*pair) for pair in [(1, 64), (2, 64)] for _ in range(8)]
    tables = written(tmp_path, "few", *few), written(tmp_path, "far", line(16, 64), line(3, 64))
    recorded_elsewhere.main([*map(str, tables)])
    printed = capsys.readouterr().out
    assert "1 of 2 rows are beyond 2 times what was fitted" in printed
    assert "their intervals hold 100%" in printed


def test_equal_tables_predict_alike(tables, capsys):
    printed = []
    for _ in range(2):
        recorded_elsewhere.main([*map(str, tables)])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_a_carried_offer_is_no_limit():
    """Runs that carried 10,000/s say as much of 9 as of 90 subtasks: nothing is too slow."""
    parts = np.log([[64.0, 2.0, 8.0], [64.0, 4.0, 8.0], [64.0, 9.0, 8.0]])
    measured = np.log([2e5, 4e5, 1e4])
    carried = np.array([False, False, True])
    runs = rate_limits.Runs(parts, np.zeros(3), measured, carried, carried)
    samples = rate_limits.sampled(runs, np.array([False, True, True]), 0)
    rate = np.exp(np.median(samples.rates(runs), axis=0))
    assert rate[2] > 3e5
    np.testing.assert_allclose(rate[:2], [2e5, 4e5], rtol=0.15)


ROW = line(1, 1)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([], id="no runs"),
        pytest.param([ROW.replace("Calc=1 Join=1", "")], id="operators unknown"),
        pytest.param([ROW, ROW.replace("Join", "Rank")], id="different operators"),
        pytest.param([ROW.replace("Calc=1", "Calc=x")], id="parallelism"),
        pytest.param([ROW.replace("16384", "much")], id="memory"),
        pytest.param([ROW], id="one run"),
        pytest.param([line(1, 1, offered=10.0)] * 3, id="no run at its limit"),
    ],
)
def test_tables_that_cannot_be_fitted_are_refused(tmp_path, lines):
    table = str(written(tmp_path, "fit.csv", *lines))
    with pytest.raises(FormatError):
        recorded_elsewhere.main([table, table])


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "fit.csv"
    path.write_text("query,kind\nq,variable\n")
    with pytest.raises(FormatError, match="parallelism"):
        recorded_elsewhere.main([str(path), str(path)])
