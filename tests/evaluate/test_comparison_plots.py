import pytest

from streamplace.evaluate import comparison_plots as plots
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import ObjectiveResults, trade_offs_of
from streamplace.objectives.registry import OBJECTIVES

THROUGHPUT, LATENCY = OBJECTIVES["throughput"], OBJECTIVES["latency"]
TITLE = "mine.jsonl: 5 graphs"


def results(values, bound=1.0):
    """A result for every placer and graph, 12 ms each."""
    records = (
        Record(str(g), str(g), 1e4, name, "", value, bound, 12.0, (0,), steps=((1, value),))
        for name, column in values.items()
        for g, value in enumerate(column)
    )
    return ObjectiveResults(THROUGHPUT, records)


def drawn(name, values):
    """A plot of some results."""
    return plots.PLOTS[name](results(values), TITLE)


ALIKE = {"best": [1.0] * 5, "good": [1.0, 1.0, 0.999, 1.0, 1.0], "a" * 120: [1.0] * 5}


@pytest.mark.parametrize("name", ["distribution", "steps", "devices"])
def test_every_plot_names_its_data_and_shows_all_of_its_names(name):
    """The title stands above, the legend below, both inside the figure."""
    figure = drawn(name, ALIKE)
    figure.draw_without_rendering()
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    assert any(TITLE in text.get_text() for text in texts)
    names = {text.get_text().replace("\n", "") for text in figure.legends[0].get_texts()}
    assert names == set(ALIKE)
    for artist in (*texts, *(axis.title for axis in figure.axes)):
        box = artist.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


def test_values_that_differ_by_a_thousandth_look_equal():
    """An axis of shares of the best is never shorter than five hundredths."""
    figure = drawn("steps", ALIKE)
    low, high = figure.axes[0].get_ylim()
    assert high - low >= 0.05
    assert low < 0.999 < 1.0 < high


def test_a_placer_that_placed_nothing_has_no_line():
    table = results({"a": [0.5] * 5})
    table.add([Record(str(g), str(g), 1e4, "b", "", None, None, 0.0, (), "no") for g in range(5)])
    figure = plots.draw_distributions([table], TITLE)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a"]


def test_boxes_are_the_quartiles_of_the_values_above():
    """Of every placer in its order, with the mean; a placer without results leaves a gap."""
    values = {"a": [0.1, 0.2, 0.3, 0.4, 0.9], "none": [None] * 5, "b": [0.5] * 5}
    above, below = drawn("distribution", values).axes
    steps = {line.get_label(): line.get_xdata() for line in above.lines}
    assert list(steps["a"][1:-1]) == values["a"]
    boxes = [path.get_path().vertices for path in below.patches]
    assert [(box[:, 1].min(), box[:, 1].max()) for box in boxes] == [(0.2, 0.4), (0.5, 0.5)]
    assert [round(box[:, 0].mean()) for box in boxes] == [0, 2]
    crosses = [line.get_ydata()[0] for line in below.lines if line.get_marker() == "x"]
    assert crosses == pytest.approx([0.38, 0.5])


def test_a_column_of_several_names_its_objective_and_rate():
    table = results(ALIKE)
    figure = plots.draw_distributions([table, table], TITLE)
    assert [axis.get_title() for axis in figure.axes[:2]] == ["throughput, 10000 tuples/s"] * 2


def test_the_front_names_every_point():
    judges = [THROUGHPUT, LATENCY]
    tables = [
        ObjectiveResults(
            judge,
            (
                Record("0", "0", 1e4, name, "", 1.0, None, 1.0, (0,), None, judge.name,
                       measures={"throughput": 0.5, "latency": 0.1})
                for name in ("a", "b")
            ),
        )
        for judge in judges
    ]  # fmt: skip
    figure = plots.draw_front(trade_offs_of(tables), judges, TITLE)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [f"{p}, optimised for {j}" for j in ("throughput", "latency") for p in "ab"]
