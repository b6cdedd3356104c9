"""What every registered family must satisfy."""

import re
from dataclasses import fields
from functools import cache
from itertools import islice

import numpy as np
import pytest

from streamplace.errors import SettingError
from streamplace.families.parameters import options
from streamplace.families.registry import FAMILIES, graph_of
from streamplace.io.graphs import Document, graph_line
from streamplace.io.lines import Line
from streamplace.io.problems import problem_from, problem_line
from streamplace.model import Cluster, Problem

SHOWN = 20
DRAWN_BY_NOBODY = {"chainmm", "ffnn", "llama-block", "llama-layer"}
"""Families in which nothing is left to chance."""


@cache
def made(name):
    """All that a family makes by default, from seed 3."""
    return list(FAMILIES[name].generate(seed=3))


def some(name):
    """A few of them, from first to last."""
    return made(name)[:: max(1, len(made(name)) // SHOWN)]


def line(item):
    """Line of a data set."""
    return problem_line(item) if isinstance(item, Problem) else graph_line(item)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_family_makes_as_many_as_it_says_under_names_of_their_own(name):
    assert len(made(name)) == FAMILIES[name].parameters().n_graphs
    assert len({graph_of(item).name for item in made(name)}) == len(made(name))


@pytest.mark.parametrize("name", list(FAMILIES))
def test_bytes_are_those_of_the_seed(name):
    again, other = (
        [line(item) for item in islice(FAMILIES[name].generate(seed=seed), 3)] for seed in (3, 4)
    )
    assert again == [line(item) for item in made(name)[:3]]
    assert (other == again) == (name in DRAWN_BY_NOBODY)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_everything_of_a_family_can_be_placed(name):
    """On its own cluster there is a placement that honours all constraints and memory."""
    for item in some(name):
        problem = item if isinstance(item, Problem) else Problem(item, Cluster.uniform(5))
        devices = problem.repaired(np.zeros(problem.n_operators, int))
        problem.check(problem.placement(devices))


LIMITED = [
    pytest.param(name, field, id=f"{name}-{field.name}")
    for name in FAMILIES
    for field in fields(FAMILIES[name].parameters)
    if field.metadata["least"] is not None or field.metadata["most"] is not None
]


@pytest.mark.parametrize(("name", "field"), LIMITED)
def test_parameters_beyond_their_limits_are_refused_by_name(name, field):
    kind = FAMILIES[name].parameters
    (number,) = (option.type for option in options(kind) if option.name == field.name)
    least, most = field.metadata["least"], field.metadata["most"]
    wording = f"^{field.name} is .*; it must be between " + re.escape(f"{least:g} and {most:g}")
    for beyond in (least - 1, 2 * most + 1):
        with pytest.raises(SettingError, match=wording):
            kind(**{field.name: number(beyond)})


@pytest.mark.parametrize("name", list(FAMILIES))
def test_lines_of_a_family_read_back_as_they_were_made(name):
    for item in some(name):
        document = Document.of(Line(line(item), name, "graph"))
        if isinstance(item, Problem):
            back = problem_from(document, None, None)
            parts = (back.graph, back.cluster, back.constraints)
            assert parts == (item.graph, item.cluster, item.constraints)
        else:
            assert document.graph() == item
