"""Placement files."""

import json

import pytest
from problems import chain
from refusals import refusal_of

from streamplace.io.placements import parse_placement, read_placement, write_placement
from streamplace.model import Cluster, Problem

PROBLEM = Problem(chain(3), Cluster.uniform(2))


def test_a_placement_survives_its_file(tmp_path):
    placement = PROBLEM.placement([0, 1, 0])
    write_placement(placement, tmp_path / "p.json", placer="single", relative_throughput=0.5)
    assert read_placement(tmp_path / "p.json", PROBLEM) == placement
    assert json.loads((tmp_path / "p.json").read_text())["placer"] == "single"


def test_a_file_says_what_priorities_mean(tmp_path):
    """One without it, of an older version, means who is first of what is ready."""
    held = PROBLEM.placement([0, 1, 0], [3, 2, 1], "order")
    write_placement(held, tmp_path / "p.json")
    assert read_placement(tmp_path / "p.json", PROBLEM) == held
    written = json.loads((tmp_path / "p.json").read_text())
    assert written.pop("queue") == "order"
    older = parse_placement(json.dumps(written).encode(), "p.json", PROBLEM)
    assert older == PROBLEM.placement([0, 1, 0], [3, 2, 1], "priority")


def test_what_place_prints_is_read():
    assignment = {"v0": "d0", "v1": "d1", "v2": "d0"}
    printed = {"graph": "g", "assignment": assignment, "placer": "single", "verdict": "fine"}
    read = parse_placement(json.dumps(printed).encode(), "p.json", PROBLEM)
    assert read.as_dict() == assignment


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{}", "assignment"),
        ('{"assignment": {}}', "operator 'v0'"),
        ('{"assignment": []}', "assignment"),
        ('{"assignment": {"v0": 1}}', "assignment.v0"),
        ('{"assignment": {"str": 1}}', "assignment.str"),
        ('{"assignment": {}, "relative_throughput": -1}', "relative_throughput"),
        ('{"assignment": {}, "comment": ""}', "comment"),
        ('{"assignment": {}, "queue": "fifo"}', "queue"),
        ('{"assignment": {"v0"', ""),
    ],
)
def test_a_bad_placement_is_refused(text, place):
    told = refusal_of("p.json", parse_placement, text.encode(), "p.json", PROBLEM)
    assert told.startswith(place)
