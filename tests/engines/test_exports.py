"""What every registered export must satisfy."""

import os
import warnings
from difflib import ndiff
from pathlib import Path

import pytest
from engine_deployments import DEPLOYMENTS, GENERAL

import streamplace
from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.errors import ProblemError
from streamplace.model import Cluster, Device, Operator, Problem, StreamGraph

GOLDEN = Path(__file__).parent / "golden"
FLINK = Path(streamplace.__file__).parent / "flink"
HOOK, JAVA = FLINK / "pin" / "hook.py", FLINK / "program" / "java" / "Placed.java"
"""Sources of the package that the export for Flink contains, beside PlacedIds.java."""


@pytest.mark.parametrize("export", GENERAL)
def test_an_export_says_how_it_is_used_and_checked_and_carries_groups_and_tags(export):
    """Both words stand near the beginning of a file; a plain table has no place for them.

    Colocated and exlocated operators are named together, and what an operator requires, too.
    """
    files = EXPORTS[export].files(DEPLOYMENTS["shop"])
    if export != "csv":
        about = [text for text in files.values() if "Use: " in text and "Check: " in text]
        assert "6 operators in 3 PEs on 3 devices" in about[0]
    text = "\n".join(files.values())
    assert "gpu" in text
    if export not in ("csv", "graphml"):  # which number the groups in a column
        quotes = str.maketrans("", "", "\"'\n ")
        plain = text.translate(quotes)
        assert "clicks,parse" in plain
        assert "join,score" in plain


@pytest.mark.parametrize("export", GENERAL)
def test_exports_are_what_they_were(export):
    """Compare with the golden files; GOLDEN=write renews them."""
    files = dict(EXPORTS[export].files(DEPLOYMENTS["shop"]))
    files.pop("PlacedIds.java", None)
    if text := files.pop("Placed.java", ""):
        lines = ndiff(JAVA.read_text("utf-8").splitlines(True), text.splitlines(True))
        files["Placed.java.diff"] = "".join(line for line in lines if line[0] in "+-")
    if "placed.py" in files:
        hook = HOOK.read_text("utf-8").partition('"""\n\n')[2]
        files["placed.py"] = files["placed.py"].replace(hook, "")
    folder = GOLDEN / export
    if os.environ.get("GOLDEN") == "write":
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    stored = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert stored == files


def test_the_native_form_keeps_the_order_of_a_schedule():
    schedule = DEPLOYMENTS["schedule"]
    (text,) = EXPORTS["json"].files(schedule).values()
    read = EXPORTS["json"].read
    again = Deployment.of(schedule.problem, read(text.encode(), "file"))
    assert again.placement == schedule.placement
    assert again.placement.queue == "order"


def test_python_is_warned_of_an_order_that_is_lost():
    """In the words of the command line; forms that keep it say nothing."""
    schedule = DEPLOYMENTS["schedule"]
    with pytest.warns(UserWarning, match=r"csv .*json, kubernetes, ray"):
        streamplace.export(schedule.problem, schedule.placement, "csv")
    with warnings.catch_warnings(action="error"):
        files = streamplace.export(schedule.problem, schedule.placement, "json")
    assert '"queue": "order"' in files["placement.json"]


@pytest.mark.parametrize("export", GENERAL)
def test_devices_of_one_resource_are_refused_where_resources_are_written(export):
    """Both would offer dev-0; drawings and files that can be read back name devices themselves."""
    graph = StreamGraph.of("two", [Operator("a", rate=1), Operator("b", rate=1)])
    problem = Problem(graph, Cluster.of([Device("0"), Device("dev-0")]))
    deployment = Deployment(problem, problem.placement([0, 1]))
    if export == "dot" or EXPORTS[export].read is not None:
        assert EXPORTS[export].files(deployment)
        return
    with pytest.raises(ProblemError, match="'0' and 'dev-0'"):
        EXPORTS[export].files(deployment)
