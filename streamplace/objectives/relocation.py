"""Relocation: the cost of moving a running graph to a placement.

An operator that moves sends its state over the link from its old device and starts on the new
one; operators move one after the other. This time is divided by the passes until the next move,
and added to the duration of a pass.
"""

from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.report import (
    MAX_ROWS,
    Part,
    Report,
    Sheet,
    brief_and_detail,
    quantity,
    some,
)
from streamplace.display.sheets import with_rest
from streamplace.errors import SettingError
from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.message_text import counted
from streamplace.model.mixins import Displayed, data_frame, verdict_of
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.model.units import exact_digits
from streamplace.objectives.explanation import MAX_NAMED, Explanation
from streamplace.objectives.registry import Condition, Objective

if TYPE_CHECKING:
    from pandas import DataFrame


def relocating(objective: Objective, relocation: Relocation) -> Objective:
    """Return the objective plus the seconds per pass of moving to a placement.

    Examples
    --------
    >>> from streamplace.objectives.registry import named_objective
    >>> relocating(named_objective("makespan"), Relocation({"a": "d0"}, 100)).name
    'makespan after a move every 100 passes'
    """
    is_timed = objective.unit == "s"
    if not is_timed and isfinite(relocation.passes):
        raise SettingError(
            f"{objective.name} is not measured in seconds, so the time of moves cannot be added to "
            "it; use makespan, latency or cost, or drop the passes and limit the moves"
        )
    if is_timed and relocation.most_moves is not None:
        raise SettingError(
            f"{objective.name} is measured in seconds, so moves cost time and need no other limit; "
            "give passes instead of moves"
        )
    related = replace(
        objective,
        explain=partial(_explain, objective, relocation),
        refuses=partial(_refuses, objective, relocation),
        base=objective,
        relocation=relocation,
    )
    if not is_timed:
        return replace(related, usual=False)
    return replace(
        related,
        name=f"{objective.name} after a move every {exact_digits(relocation.passes)} passes",
        evaluate=partial(_evaluate, objective, relocation),
    )


def limited(relocation: Relocation) -> Condition:
    """Condition that no more operators move than the relocation allows."""
    n_moves = Objective("moves", "min", "Operators that move.", relocation.counts)
    return Condition(n_moves, "min", float(relocation.most_moves or 0))


def _evaluate(
    objective: Objective,
    relocation: Relocation,
    problem: Problem,
    placements: Ints,
    priorities: Floats | None = None,
    queue: str = "priority",
) -> Floats:
    batch = np.atleast_2d(placements)
    seconds = relocation.seconds(problem)[np.arange(problem.n_operators), batch].sum(axis=1)
    values = objective.values(problem, batch, priorities, queue)
    return np.asarray(values + seconds / relocation.passes)


def _explain(
    objective: Objective, relocation: Relocation, problem: Problem, placement: Placement
) -> Explanation:
    before, devices = relocation.before, problem.cluster.devices
    names = problem.graph.operators.name
    lost = tuple(name for name in names if name in before and before[name] not in devices)
    return Relocated(
        objective.explained(problem, placement),
        objective,
        moves(problem, placement, relocation),
        relocation.passes,
        _value_before(problem, objective, relocation),
        problem.n_operators,
        lost,
    )


def _refuses(objective: Objective, relocation: Relocation, problem: Problem) -> str | None:
    return relocation.fault(problem) or objective.refuses(problem)


@dataclass(frozen=True, slots=True)
class Move:
    """An operator that moves, with the seconds of its state transfer and of its start."""

    operator: str
    source: str
    target: str
    migration: float
    startup: float


@dataclass(frozen=True, slots=True)
class Relocated(Displayed):
    """Value of a placement, and the moves to it from the present one."""

    reached: Explanation  # of the placement after all moves
    judge: Objective  # of the values
    moves: tuple[Move, ...]
    passes: float
    before: float | None  # value of the present placement; None if the problem does not allow it
    n_operators: int
    lost: tuple[str, ...] = ()  # operators that must move because their device is gone

    @property
    def seconds(self) -> float:
        """Seconds of all moves."""
        return sum(move.migration + move.startup for move in self.moves)

    @property
    def per_pass(self) -> float:
        """Seconds of all moves per pass until the next move."""
        return self.seconds / self.passes

    @property
    def value(self) -> float:
        """Value after the moves, plus their seconds per pass."""
        return self.reached.value + self.per_pass

    @property
    def pays_off_after(self) -> float | None:
        """Passes until the moves pay off; infinite if never.

        None if an operator has to move, or for a value that is not measured in seconds.
        """
        if self.before is None or self.judge.unit != "s":
            return None
        gain = self.before - self.reached.value
        if gain > ROUNDING * self.before:
            return self.seconds / gain
        return 0.0 if self.seconds == 0 and gain >= -ROUNDING * self.before else inf

    @property
    def sentence(self) -> str:
        """Moves, their time and the passes until they pay off, in words."""
        if not self.moves:
            return "nothing moves"
        who = some([move.operator for move in self.moves], separator=", ", most=MAX_NAMED)
        text = f"moving {who} takes {quantity(self.seconds, 's')}"
        if self.lost:
            moved = f"{len(self.moves)} of {counted(self.n_operators, 'operator')}"
            names = some(self.lost, separator=", ", most=MAX_NAMED)
            text += f"; {moved} move, {len(self.lost)} because their device is gone: {names}"
        after = self.pays_off_after
        if self.before is not None and self.judge.unit != "s":
            text += f"; staying reaches {self.judge.format(self.before)}"
        elif after is None and not self.lost:
            text += "; the present placement is not allowed"
        elif after is None:
            pass
        elif after == inf:
            text += f" and never pays off: staying takes {quantity(self.before or 0, 's')}"
        else:
            passes = ceil(after)
            text += f" and pays off after {passes} pass{'' if passes == 1 else 'es'}"
        if isfinite(self.passes):
            text += f"; over {self.passes:g} passes, {quantity(self.per_pass, 's')} per pass"
        return text

    @property
    def words(self) -> str:
        """Value in words."""
        return self.reached.words

    @property
    def verdict(self) -> str:
        """Verdict on the placement, and the moves."""
        return f"{self.reached.verdict}; {self.sentence}"

    __repr__ = verdict_of

    def headline(self) -> dict[str, Any]:
        """Facts for the output of ``place``."""
        after = self.pays_off_after
        facts = {
            "moved": [asdict(move) for move in self.moves],
            "lost": [*self.lost],
            "seconds": self.seconds,
            "passes": self.passes if isfinite(self.passes) else None,
            "per_pass": self.per_pass,
            "value": self.value,
            "before": self.before,
            "pays_off_after": None if after == inf else after,
        }
        return {
            self.judge.quantity: self.reached.value,
            **self.reached.headline(),
            "relocation": facts,
        }

    def document(self) -> dict[str, Any]:
        """All facts."""
        document = {**self.reached.document(), "relocation": self.headline()["relocation"]}
        return {**document, "verdict": self.verdict}

    def to_pandas(self) -> "DataFrame":
        """Table of the moves, one row each."""
        columns = [field.name for field in fields(Move)]
        return data_frame({name: [getattr(move, name) for move in self.moves] for name in columns})

    def brief(self) -> Report:
        """Short report of the placement, and the moves, which the verdict sums up."""
        report = self.reached.brief()
        return Report((*report.parts, *self._sheets()), report.title)

    def report(self) -> Report:
        """Full report of the placement, and the moves."""
        report = self.reached.report()
        sentence = f"{self.sentence[0].upper()}{self.sentence[1:]}"
        return Report((*report.parts, *self._sheets(), sentence), report.title)

    def _sheets(self) -> tuple[Part, ...]:
        """Moves, the longest first."""
        longest = sorted(self.moves, key=lambda move: -(move.migration + move.startup))
        rows = tuple(
            (
                move.operator,
                f"{move.source} → {move.target}",
                quantity(move.migration, "s"),
                quantity(move.startup, "s"),
            )
            for move in longest
        )
        sheet = Sheet(("moves", "", "state transfer", "start"), rows)
        if not rows:
            return ()
        return brief_and_detail(lambda brief: with_rest(sheet, MAX_NAMED if brief else MAX_ROWS))


def moves(problem: Problem, placement: Placement, relocation: Relocation) -> tuple[Move, ...]:
    """Operators that run on another device at present."""
    migration, startup = relocation.migration(problem), relocation.moving(problem).startup
    operators = []
    for v, (name, d) in enumerate(zip(placement.operators, placement.index.tolist(), strict=True)):
        source = relocation.before.get(name, placement[name])
        if source != placement[name]:
            cost = float(migration[v, d]), float(startup[v, d])
            operators.append(Move(name, source, placement[name], *cost))
    return tuple(operators)


def _value_before(problem: Problem, objective: Objective, relocation: Relocation) -> float | None:
    """Value of the present placement; None if it is not a legal placement of the problem.

    New operators are on the device on which starting and running takes the least time.
    """
    stay = relocation.stay(problem)
    placed = [name in relocation.before for name in problem.graph.operators.name]
    if (stay.index != relocation.rows(problem))[placed].any():
        return None
    return objective.value(problem, stay)
