"""Placement of all problems of a data set: one line for each, in order, on all cores or on Ray.

A line is a placement document, or the reason why the graph could not be placed. It has a digest of
the problem and of all options, so that an interrupted run continues after its last line, and a
file with other options is refused.
"""

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict

from streamplace.errors import FormatError, OptionError, StreamplaceError
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.runner import code_of, error_line, terms_of
from streamplace.io.clusters import cluster_to_tables
from streamplace.io.constraints import constraints_to_tables
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.fields import Finite
from streamplace.io.files import appending, json_line, read_lines, spot
from streamplace.io.lines import Line
from streamplace.io.parsing import parse_as
from streamplace.io.placements import order_facts
from streamplace.io.problems import usual_cluster
from streamplace.model.constraints import Constraints
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import composed_objective
from streamplace.objectives.registry import DEFAULT
from streamplace.placers.request import PlacementRequest

LOG = logging.getLogger(__name__)
START = b'{"graph":'
"""Beginning of every line."""


@dataclass(frozen=True, slots=True)
class _SavedLine:
    """Fields of a line that are needed to continue after it."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True)

    answers: str
    graph: str
    value: Finite | None = None
    error: str | None = None


class PlacedGraph(NamedTuple):
    """Value of a placement or the reason for its failure, and the line of the graph."""

    graph: str
    value: float | None
    error: str | None
    line: bytes
    is_saved: bool = False


@dataclass(frozen=True, slots=True)
class Placing:
    """Places the problems of a data set by a request, after a reader has parsed them."""

    # Its placer and objective are names, by which results in a file are recognised.
    request: PlacementRequest
    reader: Reader = field(default_factory=Reader)
    key: bytes = field(init=False, repr=False)  # of all options and of the code

    def __post_init__(self) -> None:
        request, weights = self.request, self.request.weights
        if weights is not None:  # workers may run in another folder
            object.__setattr__(self, "request", replace(request, weights=weights.absolute()))
        object.__setattr__(self, "key", self._key())

    def __call__(self, line: Line) -> PlacedGraph:
        """Place the problem of a line; an error becomes its result."""
        problem = self.reader(line)
        name = problem.graph.name
        try:
            return self._placed(problem, line)
        except OptionError:
            raise
        except StreamplaceError as error:
            return self._failed(line, name, str(error))
        except Exception as error:
            LOG.info("%s on %s: %s", self.request.placer, name, traceback.format_exc())
            return self._failed(line, name, error_line(error))

    def lost(self, line: Line, reason: str) -> PlacedGraph:
        """Result for a problem whose worker process was killed."""
        return self._failed(line, self.reader(line).graph.name, reason)

    def digest(self, line: Line) -> str:
        """Digest of a line and of all settings that its result depends on."""
        return blake2b(line.content.strip(), key=self.key, digest_size=12).hexdigest()

    def _placed(self, problem: Problem, line: Line) -> PlacedGraph:
        parallel = problem.graph.operators.parallel
        result = self.request.place(self.request.prepared(problem))
        document = {
            "graph": problem.graph.name,
            "placer": self.request.placer,
            "objective": result.objective,
            "value": result.value,
            **({} if result.bound is None else {"bound": result.bound}),
            **({"parallelism": parallel} if parallel else {}),
            "assignment": result.placement.as_dict(),
            **order_facts(result.placement),
        }
        text = self._encoded(document, line)
        return PlacedGraph(problem.graph.name, result.value, None, text)

    def _failed(self, line: Line, graph: str, reason: str) -> PlacedGraph:
        document = {"graph": graph, "placer": self.request.placer, "error": reason}
        return PlacedGraph(graph, None, reason, self._encoded(document, line))

    def _encoded(self, document: dict[str, Any], line: Line) -> bytes:
        return json_line({**document, "answers": self.digest(line)}).encode()

    def _key(self) -> bytes:
        """Digest of all options, of the code, and of the content of a file of weights."""
        reader, request = self.reader, self.request
        placer = request.algorithm
        judge = composed_objective(request.objective or DEFAULT, request.require)
        options = {**placer.texts(), **placer.options}
        options.pop("weights", None)
        terms = (
            (placer.name, options, asdict(placer.budget) if placer.budget else None),
            terms_of(placer, request.budget, request.seed, code_of(judge)),
            (request.objective, request.require, request.rate, request.subtasks),
            cluster_to_tables(reader.cluster or usual_cluster()),
            constraints_to_tables(reader.constraints or Constraints()),
        )
        return blake2b(json.dumps(terms).encode(), digest_size=32).digest()


def place_all(
    placing: Placing, data: DataSet, path: Path, *, jobs: int | None = None, on: str | None = None
) -> Iterator[PlacedGraph]:
    """Place all problems of a data set into a file; problems with lines in it are skipped.

    A file with results of other settings, or that another process writes, is refused.
    """
    with appending(path, START) as append:
        lines = data.lines()
        yield from _saved(placing, lines, path)
        for placed in parallel_map(placing, lines, jobs, on, lost=placing.lost):
            append(placed.line)
            yield placed


def _saved(placing: Placing, lines: Iterator[Line], path: Path) -> Iterator[PlacedGraph]:
    """Results in the file; skips their lines of the data set."""
    for number, content in read_lines(path):
        line, saved = next(lines, None), None
        with suppress(FormatError):
            saved = parse_as(_SavedLine, content, "", extra="ignore")
        if line is None or saved is None or saved.answers != placing.digest(line):
            raise FormatError(
                f"{spot(path)}:{number}: was written for other graphs, options or another cluster, "
                "or by other code; name another file, or remove it"
            )
        yield PlacedGraph(saved.graph, saved.value, saved.error, content, is_saved=True)
