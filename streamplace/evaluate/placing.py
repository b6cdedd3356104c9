"""Placing all problems of a data set: a line each, in their order, on all cores or on Ray.

A line is a placement document, equal whoever computed it; that of a graph that failed says why.
Each bears a digest of what it answers, so that a stopped run goes on after the last line that it
wrote, and a file of other answers is not taken for its beginning.
"""

import json
import logging
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from streamplace.errors import FormatError, StreamplaceError
from streamplace.evaluate.comparison import judge_of, terms_of
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.runner import said
from streamplace.io.appending import appended, claimed, mended
from streamplace.io.clusters import cluster_to_tables, constraints_to_tables
from streamplace.io.datasets import DataSet, Reader
from streamplace.io.files import read_lines, spot
from streamplace.io.lines import Line
from streamplace.io.placements import order_facts
from streamplace.io.problems import usual_cluster
from streamplace.model.constraints import Constraints
from streamplace.model.expansion import expand
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import demanded
from streamplace.objectives.registry import Objective, suggested_by
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget, Placer

LOG = logging.getLogger(__name__)


@with_config(ConfigDict(extra="ignore", strict=True, allow_inf_nan=False))
class _AnswerJson(TypedDict):
    """What of a line is needed to go on after it."""

    answers: str
    graph: str
    value: NotRequired[float | None]
    error: NotRequired[str | None]


_ANSWER = TypeAdapter(_AnswerJson)


class Placed(NamedTuple):
    """What became of a graph: a value, or why there is none; and the line that says so."""

    graph: str
    value: float | None
    error: str | None
    line: bytes


@dataclass(frozen=True, slots=True)
class Placing:
    """How the problems of a data set are placed.

    Attributes
    ----------
    placer
        Name, with options after colons.
    weights
        Weights file of a learned placer.
    objective
        What is best; empty for what each graph suggests.
    rate
        Total rate of the sources; None for every graph's own.
    by_subtask
        Whether the subtasks of parallel operators are placed one by one.
    """

    placer: str
    weights: Path | None = None
    objective: str = ""
    require: tuple[str, ...] = ()
    rate: float | None = None
    by_subtask: bool = False
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    reader: Reader = field(default_factory=Reader)

    def __call__(self, line: Line) -> Placed:
        """Place the problem of a line; what goes wrong is part of the answer."""
        problem = self.reader(line)
        name = problem.graph.name
        try:
            return self._placed(problem, line)
        except StreamplaceError as error:
            return self.failed(line, name, str(error))
        except Exception as error:
            LOG.info("%s on %s: %s", self.placer, name, traceback.format_exc())
            return self.failed(line, name, said(error))

    def failed(self, line: Line, graph: str, why: str) -> Placed:
        """Answer where there is none, and why."""
        document = {"graph": graph, "placer": self.placer, "error": why}
        return self._told(line, graph, None, why, document)

    def digest(self, line: Line) -> str:
        """Number of a line and of all that its answer depends on."""
        return blake2b(line.content.strip(), key=self._key(), digest_size=12).hexdigest()

    def _placed(self, problem: Problem, line: Line) -> Placed:
        if self.rate is not None:
            problem = problem.at_rate(self.rate)
        parallel = problem.graph.operators.parallel
        if self.by_subtask:
            problem = expand(problem.graph).problem(problem)
        judge = judge_of(self.objective or suggested_by(problem.graph), self.require)
        result = self._who().place(problem, judge, seed=self.seed, budget=self.budget)
        demanded(problem, judge, result.placement)
        document = self._document(problem, judge, result.value)
        if result.bound is not None:
            document["bound"] = result.bound
        if parallel:
            document["parallelism"] = parallel
        document["assignment"] = result.placement.as_dict()
        document.update(order_facts(result.placement))
        return self._told(line, problem.graph.name, result.value, None, document)

    def _document(self, problem: Problem, judge: Objective, value: float) -> dict[str, Any]:
        facts = {"graph": problem.graph.name, "placer": self.placer}
        return {**facts, "objective": judge.name, "value": value}

    def _told(
        self, line: Line, graph: str, value: float | None, why: str | None, document: dict[str, Any]
    ) -> Placed:
        whole = {**document, "answers": self.digest(line)}
        text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
        return Placed(graph, value, why, f"{text}\n".encode())

    def _who(self) -> Placer:
        placer = named_placer(self.placer)
        return placer if self.weights is None else placer.with_options(weights=str(self.weights))

    def _key(self) -> bytes:
        """Number of all terms; a file of weights counts by its content."""
        reader, who = self.reader, self._who()
        options = {name: text for name, text in who.texts().items() if name != "weights"}
        terms = (
            (who.name, options, asdict(who.budget) if who.budget else None),
            terms_of(who, self.budget, self.seed),
            (self.objective, self.require, self.rate, self.by_subtask),
            cluster_to_tables(reader.cluster or usual_cluster()),
            constraints_to_tables(reader.constraints or Constraints()),
        )
        return blake2b(json.dumps(terms).encode(), digest_size=32).digest()


def place_all(
    placing: Placing,
    data: DataSet,
    path: Path,
    *,
    jobs: int | None = None,
    on: str | None = None,
) -> Iterator[Placed]:
    """Place all problems of a data set into a file; lines that are there already count as done.

    Raises
    ------
    FormatError
        If the file holds answers to other questions, or another process writes it.
    """
    with claimed(path) as file:
        mended(file, path)
        lines = data.lines()
        yield from _known(placing, lines, path)

        def lost(line: Line, why: str) -> Placed:
            return placing.failed(line, placing.reader(line).graph.name, why)

        for placed in parallel_map(placing, lines, jobs, on, lost=lost):
            appended(file, placed.line, path)
            yield placed


def _known(placing: Placing, lines: Iterator[Line], path: Path) -> Iterator[Placed]:
    """Answers that are in a file already; takes as many lines."""
    for number, content in read_lines(path):
        line = next(lines, None)
        answer = _parsed(content)
        if line is None or answer is None or answer["answers"] != placing.digest(line):
            raise FormatError(
                f"{spot(path)}:{number}: answers another question (other graphs, options or "
                "cluster); name another file, or remove it"
            )
        yield Placed(answer["graph"], answer.get("value"), answer.get("error"), content)


def _parsed(content: bytes) -> _AnswerJson | None:
    """Answer on a line; None where the line holds none."""
    try:
        return _ANSWER.validate_json(content)
    except ValidationError:
        return None
