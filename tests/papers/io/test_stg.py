"""Files of the Standard Task Graph set."""

from functools import partial

import pytest
from formats import read_as
from fuzz.targets import SEEDS

import streamplace
from streamplace.errors import StreamplaceError
from streamplace.model import Cluster

PLAIN = """          4
          0          0          0
          1          3          1          0
          2          2          1          0
          3          5          2          1          2
          4          1          1          2
          5          0          2          3          4
# Standard Task Graph Set Project
#   Tasks             : 4 (+dummy tasks : 2)
"""
read = partial(read_as, "stg", "sample.stg")


def test_tasks_take_their_time_and_wait_for_their_predecessors(tmp_path):
    """A unit is a second on the usual device: the critical path is 3 + 5, one device takes 11."""
    graph = read(tmp_path, PLAIN)
    assert (graph.name, graph.n_operators, graph.n_streams) == ("sample", 6, 7)
    assert streamplace.place(graph).value == pytest.approx(8)
    assert streamplace.place(graph, Cluster.uniform(1)).value == pytest.approx(11)


def test_transfers_take_their_costs(tmp_path):
    """Over the usual link; predecessors stand on lines of their own."""
    graph = read(tmp_path, (SEEDS / "stg.stg").read_text())
    costs = {(s.source, s.target): s.payload / 125e6 for s in graph.streams}
    assert costs["1", "3"] == 4
    assert costs["2", "4"] == 6
    apart = dict.fromkeys(graph.operators.name, "d0") | {"1": "d1"}
    assert streamplace.simulate(graph, apart).value == pytest.approx(3 + 4 + 5)


def test_costs_may_stand_in_the_line_of_their_task(tmp_path):
    text = (SEEDS / "stg.stg").read_text()
    lines = text.replace("\n" + " " * 21, " ")
    assert read(tmp_path, lines) == read(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand\n" + PLAIN,
        PLAIN.replace("          4\n", "          4   # tasks\n", 1),
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        PLAIN.replace("\n          3", "\n# second layer\n          3"),
        PLAIN + "in all 4 of them\n",
        PLAIN.replace("5          2", "5e+00      2"),
        PLAIN.replace("5          2", "5.0000000000000000000  2"),
    ],
)
def test_other_forms_of_numbers_lines_and_comments_are_read(tmp_path, text):
    assert read(tmp_path, text) == read(tmp_path, PLAIN)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""),
        ("4", "0 tasks"),
        (PLAIN[: PLAIN.index("          5          0")], "5 tasks"),
        (PLAIN.replace("5", "five"), ":5: five"),
        (PLAIN.replace("3          5", "7          5"), "line 5"),
        (PLAIN.replace("5          0", "9          0"), "line 7"),
        (PLAIN.replace("3          4", "3          9"), "'9'"),
    ],
)
def test_a_bad_task_graph_is_told_with_its_place(tmp_path, text, place):
    with pytest.raises(StreamplaceError, match=f"sample.stg.*{place}"):
        read(tmp_path, text)


def test_a_data_set_is_written_to_json(run, refusal, tmp_path):
    (tmp_path / "rnd.stg").write_text("1\n0 0 0\n1 3 1 0\n2 0 1 1\n")
    message = refusal("import", "stg", "rnd.stg", "-o", "x.csv")
    assert "x.csv" in message
    assert ".json" in message
    assert run("import", "stg", "rnd.stg", "-o", "x.json").status == 0
