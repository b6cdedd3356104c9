import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilots import weights_file
from problems import chain, diamond, fork_join

import streamplace
from streamplace.display.report import Detail, Sheet
from streamplace.errors import SettingError
from streamplace.evaluate import runner
from streamplace.evaluate.comparison import Comparison, GraphResults
from streamplace.evaluate.parallel import MAX_SERIAL_ITEMS
from streamplace.evaluate.records import Record, problem_hash, read_records
from streamplace.evaluate.results import ObjectiveResults
from streamplace.evaluate.runner import ComparisonRun, Runner, records_of, same_problem
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import AliasedPlacer, aliased_placers
from streamplace.placers.registry import Budget

DEVICES = Cluster.uniform(5)
PROBLEMS = [Problem(graph, DEVICES) for graph in (chain(), diamond(), fork_join(), chain(6))]


@pytest.fixture
def file(tmp_path):
    """A results file that is missing yet."""
    return tmp_path / "results.jsonl"


def comparison(*placers):
    """Two rates on five devices with a budget in evaluations."""
    budget = Budget(seconds=None, evaluations=200)
    return ComparisonRun(placers, rates=(1e4, 2e4), budget=budget)


def played(who, file, problems, jobs=1):
    """All records of a comparison."""
    return [record for found in records_of(who, problems, file, jobs=jobs) for record in found]


def timeless(records):
    """Records without how long they took."""
    return [(r.key, r.graph, r.rate, r.value, r.devices) for r in records]


def test_every_placer_meets_every_graph_at_every_rate(file):
    """Two placers, four graphs, two rates, in lines of plain JSON that any tool can read."""
    records = played(comparison("round-robin", "random"), file, PROBLEMS)
    assert len(records) == 2 * 4 * 2
    assert timeless(records) == timeless(list(read_records(file)))
    line = json.loads(file.read_text().splitlines()[0])
    assert {"problem", "graph", "rate", "placer", "value", "milliseconds"} <= set(line)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    many = [Problem(chain(n), DEVICES) for n in range(2, 22)]
    one, two = (
        timeless(played(comparison("random"), tmp_path / f"{j}.jsonl", many, jobs=j))
        for j in (1, 2)
    )
    assert one == two


def test_saved_results_of_a_graph_are_not_lost_with_its_worker(file):
    played(comparison("random"), file, PROBLEMS[:1])
    both = Runner(comparison("random", "round-robin"), same_problem)
    both.saved = {record.key: record for record in read_records(file)}
    failed = [outcome.has_failed for outcome in both.failed(PROBLEMS[0], "killed")]
    assert failed == 2 * [False, True]


def test_a_stopped_comparison_goes_on_where_it_was(file):
    """Nothing is computed twice, even when the last line was cut off."""
    run: Iterator[list[Record]] = records_of(comparison("random"), PROBLEMS, file, jobs=1)
    next(run), next(run)
    run.close()  # type: ignore[attr-defined]
    file.write_bytes(file.read_bytes()[:-20])
    played(comparison("random"), file, PROBLEMS)
    assert len(list(read_records(file))) == 8
    before = file.read_bytes()
    played(comparison("random"), file, PROBLEMS)
    assert file.read_bytes() == before


def test_a_result_is_reused_for_the_terms_that_it_was_computed_on(file):
    """Adding a placer computes only that one; another budget or seed is another result."""
    played(comparison("random"), file, PROBLEMS)
    before = file.read_bytes()
    played(comparison("random", "round-robin"), file, PROBLEMS)
    after = file.read_bytes()
    assert after.startswith(before)
    assert after[len(before) :].count(b"round-robin") == 8
    assert b"random" not in after[len(before) :]
    played(ComparisonRun(("random",), (1e4, 2e4), 0, Budget(None, 300)), file, PROBLEMS)
    assert len(list(read_records(file))) == 16 + 8


def test_other_weights_are_another_result(file, tmp_path):
    """Though the file is called the same; equal ones are not asked again."""
    path = tmp_path / "w.safetensors"
    pilot = comparison(f"pilot:weights={path}:refine=none")
    for seed, results in ((1, 8), (1, 8), (2, 16)):
        weights_file(path, seed)
        played(pilot, file, PROBLEMS)
        assert len(list(read_records(file))) == results


@given(st.from_regex(r"[a-z][a-z0-9 _.-]*[0-9]", fullmatch=True))
def test_what_stands_before_the_first_equals_sign_is_the_alias(alias):
    """Unless a colon comes before it: then it belongs to an option."""
    assert AliasedPlacer.read(f"{alias}=metis:k=3") == (alias, "metis:k=3")
    assert AliasedPlacer.read("metis:k=3") == (None, "metis:k=3")


@pytest.mark.parametrize(
    ("placers", "alias"),
    [
        (("metis=random",), "'metis'"),
        (("fuser-oracle=random",), "'fuser-oracle'"),
        (("a=random", "a=metis"), "'a'"),
        (("=random",), "empty"),
    ],
)
def test_an_alias_that_could_be_mistaken_is_refused(placers, alias):
    with pytest.raises(SettingError, match=alias):
        aliased_placers(placers)


def test_results_are_shown_under_aliases_and_reused_whatever_these_are(file):
    """The alias is for people, the placer for whoever repeats the comparison."""
    plain = played(comparison("random"), file, PROBLEMS)
    before = file.read_bytes()
    named = played(comparison("mine=random"), file, PROBLEMS)
    table = ObjectiveResults(OBJECTIVES["throughput"], named).columns
    assert [list(row) for row in table.values()] == [["mine"], ["mine"]]
    assert [r.milliseconds for r in named] == [r.milliseconds for r in plain]
    assert file.read_bytes() == before
    played(comparison("mine=metis:k=2"), file, PROBLEMS)
    saved = [(record.alias, record.placer) for record in read_records(file)]
    assert saved == 8 * [(None, "random")] + 8 * [("mine", "metis:k=2")]


def test_a_failed_graph_has_the_reasons_of_all_placers(monkeypatch):
    def broken(placer, *_, **__):
        raise KeyError(placer.name)

    monkeypatch.setattr("streamplace.placers.registry.Placer.place", broken)
    failures = streamplace.compare(chain(), "random,round-robin", budget=Budget(None, 50)).failures
    told = "random: KeyError: 'random'; round-robin: KeyError: 'round-robin'"
    assert failures == {chain().name: told}


def test_an_objective_that_is_given_twice_counts_once():
    names = ["makespan:network=link:queue=fifo", "makespan:queue=fifo:network=link"]
    found = streamplace.compare(chain(), "random,round-robin", objective=names)
    rows = [(placer, row.graphs) for _, _, placer, row in found.rows()]
    assert rows == [("random", 1), ("round-robin", 1)]


def test_an_unknown_placer_is_refused_before_anything_runs(file):
    with pytest.raises(SettingError, match="'magic'"):
        played(comparison("magic"), file, PROBLEMS)
    assert not file.exists()


def record(placer, graph, value, bound=None):
    """A made-up record."""
    return Record(graph, graph, 1e4, placer, "b", value, bound, 2.0, (0, 1, 1))


def test_standings_follow_the_definitions():
    """Mean, quartiles, comparison with the reference and distance to the optimum by hand.

    A placer that fails is counted, and nothing else.
    """
    rows = [record("metis", g, v) for g, v in zip("abcd", (0.5, 0.6, 0.7, 0.8), strict=True)]
    rows += [record("exact", g, v, b) for g, v, b in
             (("a", 1.0, 1.0), ("b", 0.6, 0.6), ("c", 0.6, 0.9), ("d", 0.8, 0.8))]  # fmt: skip
    results = ObjectiveResults(OBJECTIVES["throughput"], rows)
    table, pairs = results.table[1e4], results.paired[1e4]
    metis, exact = table["metis"], table["exact"]
    assert (metis.mean, metis.q1, metis.median, metis.min) == pytest.approx(
        (0.65, 0.575, 0.65, 0.5)
    )
    pair, back = pairs["exact"]["metis"], pairs["metis"]["exact"]
    assert (pair.better, pair.equal, pair.worse) == (back.worse, back.equal, back.better)
    assert (pair.better, pair.equal, pair.worse) == (1, 2, 1)
    assert metis.proven == exact.proven == 3
    assert metis.share_of_optimum == pytest.approx((0.5 + 1 + 1) / 3)
    assert exact.share_of_optimum == pytest.approx(1)
    assert metis.devices_used == {2: 4}
    assert metis.ms_per_graph == 2.0
    failing = [record("x", "a", 0.5), record("x", "b", None)]
    row = ObjectiveResults(OBJECTIVES["throughput"], failing).table[1e4]["x"]
    assert (row.mean, row.failed, row.graphs) == (0.5, 1, 2)


def told(*records):
    """Lines of the report on these records."""
    results = ObjectiveResults(OBJECTIVES["throughput"], records)
    return str(Comparison((results,), "metis").report()).splitlines()


def test_shares_of_the_optimum_say_over_how_many_graphs():
    some = [record("exact", g, 0.6, 0.6 if g in "ab" else 0.9) for g in "abc"]
    assert "of optimum: over the 2 with a proven optimum" in told(*some)[0]
    assert "all with a proven optimum" in told(*(record("exact", g, 0.6, 0.6) for g in "abc"))[0]


def test_without_a_placer_that_bounds_the_optimum_the_best_is_the_reference():
    """The full rate is reached on easy graphs alone, on which every placer would seem optimal."""
    lines = told(*(record("metis", g, v) for g, v in (("a", 1.0), ("b", 0.5))),
                 record("random", "a", 0.8), record("random", "b", 0.4))  # fmt: skip
    assert not any("of optimum" in line for line in lines)
    metis, random = (next(x for x in lines if x.split()[0] == name) for name in ("metis", "random"))
    assert metis.split()[3] == "100.00"
    assert random.split()[3] == "80.00"


def test_details_have_the_mean_by_each_attribute_that_few_values_share():
    """The number of graphs with that value is told; names and constants are no attributes."""
    graphs = [("a", 2, 0.5), ("b", 2, 0.7), ("c", 3, 0.9)]
    records = [
        replace(record("metis", g, v), attributes={"branches": n, "family": "x"})
        for g, n, v in graphs
    ]
    results, of_graphs = ObjectiveResults(OBJECTIVES["throughput"], records), GraphResults()
    for one in records:
        of_graphs.add([one])
    comparison = Comparison((results,), "metis", graphs=of_graphs)
    tables = [p.part for p in comparison.report().parts if isinstance(p, Detail)]
    rows = [t.rows for t in tables if isinstance(t, Sheet) and t.head[1] == "graphs"]
    assert rows == [(("branches 2", "2", "0.600"), ("branches 3", "1", "0.900"))]
    assert "branches 2 & 2 & 0.600" in comparison.latex()


def test_graphs_are_read_as_they_are_needed(file):
    """A data set need not fit into memory."""
    read = []
    problems = (read.append(n) or Problem(chain(n), DEVICES) for n in range(2, 1000))
    run = records_of(comparison("round-robin"), problems, file, jobs=1)
    next(run)
    assert len(read) <= MAX_SERIAL_ITEMS + 1
    run.close()  # type: ignore[attr-defined]
    assert len(list(read_records(file))) == 2


def hash_of(*, watts=5.0, joules_per_byte=0.0, payload=None, room=2.0, max_rate=0.0):
    """Hash of a problem with one source, and two devices that are too small for everything."""
    source = Operator("a", ipt=1e4, payload=1e4, rate=1e4, memory=1, max_rate=max_rate)
    streams = [Stream("a", name, payload=payload) for name in ("b", "c")]
    graph = StreamGraph.of("g", [source, Operator("b", memory=2), Operator("c")], streams)
    devices = [Device("d", watts=watts, memory=2), Device("e", memory=room)]
    return problem_hash(Problem(graph, Cluster.of(devices, joules_per_byte=joules_per_byte)))


def test_problems_that_differ_in_one_value_have_other_hashes():
    """Limits of nothing that limits are limits as well, and outputs may not be sent as one."""
    changes: list[dict[str, float]] = [
        *({}, {"watts": 20.0}, {"joules_per_byte": 1e-6}, {"payload": 1e4}, {"room": 3.0}),
        *({"max_rate": 2500.0}, {"max_rate": 1e9}),
    ]
    assert len({hash_of(**change) for change in changes}) == len(changes)


def test_what_a_placer_refuses_untimed_is_no_result(file, monkeypatch):
    """By one evaluation, auto knows only that no device may run all operators."""
    monkeypatch.setattr(runner, "_warm", set())
    problem = Problem(chain(), DEVICES, Constraints(exlocate=[{"v0", "v3"}]))
    budget = Budget(seconds=None, evaluations=200)
    asked = ComparisonRun(("auto",), objectives=("latency",), budget=budget)
    (record,) = played(asked, file, [problem])
    assert record.error is None
    assert record.value is not None


def test_what_was_reached_after_how_many_evaluations_is_kept(file):
    """Of every search; the last step of the record is its value, and more of them are no worse."""
    names = ("random", "anneal", "metis-oracle", "pilot", "auto")
    budget = Budget(seconds=None, evaluations=300)
    rows = played(ComparisonRun(names, (2e4,), budget=budget), file, PROBLEMS[2:3])
    results = ObjectiveResults(OBJECTIVES["throughput"], rows)
    for row in rows:
        assert row.steps[-1][1] == row.value
        counts, values = zip(*row.steps, strict=True)
        assert list(counts) == sorted(set(counts))
        assert max(counts) <= 2 * 300
        assert list(values) == sorted(values)
        (steps,) = results.columns[2e4][row.placer].steps
        told = steps[~np.isnan(steps)]
        assert told[-1] == row.value
        assert (np.diff(told) >= 0).all()
    assert next(read_records(file)).steps == rows[0].steps


@pytest.mark.parametrize("name", ["x" * 300, "missing"])
def test_weights_without_a_name_are_told_as_any_missing(name, file):
    asked = ComparisonRun(placers=(f"dream:weights={name}",))
    ((record,),) = records_of(asked, [Problem(chain(), Cluster.uniform(2))], file)
    assert record.value is None
    assert "cannot be read" in str(record.error)
