"""Schedules: the cheapest sequence of plans for a known day, and a lower bound of all.

`cheapest_levels` is a dynamic program over slots and plans. `lower_bound` is one over segments of
slots in which a controller does not move; it uses no plans, only proven bounds of their cost, so it
holds for every controller that decides between slots and carries all tuples. `PlanSchedule` is the
answer of ``plan --schedule``: both, and the results of policies.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamplace.control.problem import ControlDay
from streamplace.control.replay import PolicyReplay
from streamplace.display.report import Report, Sheet, brief_and_detail, duration, percent
from streamplace.display.sheets import with_rest
from streamplace.io.fields import plain
from streamplace.io.files import json_text, make_folder, write_texts
from streamplace.model.arrays import Floats, Ints
from streamplace.model.message_text import counted
from streamplace.model.mixins import Pictured
from streamplace.model.units import floor_digits
from streamplace.planning.result import HOUR, PlanResult, ends_in_words, machines_in_words, moment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILES = ("schedule.json", "schedule.svg")
"""Files of a schedule, beside a folder for each of its plans."""


def cheapest_levels(day: ControlDay) -> Ints:
    """Plan of each slot [T] with the least cost of machines and moves.

    A plan must carry every slot in which it runs; after a move, it must also drain the backlog of
    the interruption before the slot ends.
    """
    stay, come = _slot_costs(day)
    best = stay[0].copy()
    before = np.zeros((len(day.slots), len(day.plans)), np.int32)
    for slot in range(1, len(day.slots)):
        costs = best[:, None] + day.price
        costs += np.where(np.eye(len(best), dtype=bool), stay[slot], come[slot])
        before[slot] = costs.argmin(axis=0)
        best = costs[before[slot], np.arange(len(best))]
    levels = np.empty(len(day.slots), np.int32)
    levels[-1] = best.argmin()
    for slot in range(len(levels) - 1, 0, -1):
        levels[slot - 1] = before[slot, levels[slot]]
    return levels


def _slot_costs(day: ControlDay) -> tuple[Floats, Floats]:
    """[T, K] cost of each slot on each plan, if it ran before, and if the job moves to it now."""
    cost = np.broadcast_to(day.cost * day.hours, day.carried.shape)
    stay = np.where(day.carries, cost, np.inf)
    running = max(0.0, 1 - day.terms.interruption / day.slots.seconds)
    return stay, np.where(day.carries_in(running), cost, np.inf)


def lower_bound(day: ControlDay) -> float:
    """Lower bound of the cost of controllers that decide between slots and meet the lag objective.

    In a segment without moves, a controller pays at least the bound of its dearest window of slots,
    for the whole segment. Tuples of the last seconds of a window may wait for the next slot, as
    long as the lag allows. At the beginning of a segment, the plan before may process tuples until
    the new machines are ready.
    """
    half, slots = day.terms.price / HOUR / 2, len(day.slots)
    until = np.full(slots + 1, np.inf)
    until[0] = 0.0
    dearest = np.zeros(slots)  # of the segments that begin with each slot and end with the present
    for end in range(1, slots + 1):
        first = [end - length for length in day.windows]
        _raise_to(dearest, day.least[end - 1], day.least_moved[end - 1], first)
        lengths = np.arange(end, 0, -1)
        ends = (np.arange(end) > 0).astype(np.float64) + (end < slots)
        until[end] = (until[:end] + dearest[:end] * (day.hours * lengths + half * ends)).min()
    return float(until[-1])


def _raise_to(dearest: Floats, least: Floats, moved: Floats, first: Sequence[int]) -> None:
    """Set the value of every segment to the largest bound of the windows that lie in it."""
    largest, before = 0.0, len(dearest)
    for inside, begins, start in zip(least.tolist(), moved.tolist(), first, strict=True):
        if start < 0:
            break
        np.maximum(dearest[start + 1 : before], largest, out=dearest[start + 1 : before])
        bound = max(largest, begins if start else inside)
        dearest[start] = max(dearest[start], bound)
        largest, before = max(largest, inside), start
    np.maximum(dearest[:before], largest, out=dearest[:before])


class ScheduleStep(NamedTuple):
    """A plan that runs for some time."""

    start: float  # seconds in the time of the trace
    end: float
    level: int  # number of the plan
    highest: float  # maximum tuples/s of all sources


@dataclass(frozen=True, slots=True, eq=False)
class PlanSchedule(Pictured):
    """A trace, the cheapest sequence of plans for it, and the results of policies.

    It is proven that no controller that decides between slots and keeps the lag costs less than
    ``bound``, even without headroom.
    """

    day: ControlDay  # the trace and the plans
    level: Ints  # [T] plan of each slot in the cheapest schedule
    bound: float
    replays: tuple[PolicyReplay, ...] = ()  # of policies

    def __repr__(self) -> str:
        bound = floor_digits(self.bound)
        return f"<PlanSchedule of {len(self.steps)} steps: cost {self.cost:g} (bound {bound})>"

    @property
    def plans(self) -> tuple[PlanResult, ...]:
        """Plans of rising cost."""
        return self.day.plans

    @property
    def cost(self) -> float:
        """Cost of the cheapest schedule, with the price of its moves."""
        return self.day.total(self.level)

    @property
    def static_cost(self) -> float:
        """Cost of running the cheapest plan for the peaks all the time."""
        return self.day.total(np.full(len(self.level), self.day.static, np.int32))

    @property
    def steps(self) -> tuple[ScheduleStep, ...]:
        """Plans one after the other."""
        edges = [0, *(np.flatnonzero(np.diff(self.level)) + 1).tolist(), len(self.level)]
        start, length = self.day.slots.start, self.day.slots.seconds
        return tuple(
            ScheduleStep(
                start + length * a,
                start + length * b,
                int(self.level[a]),
                float(self.day.peak_rate[a:b].max()),
            )
            for a, b in itertools.pairwise(edges)
        )

    def report(self) -> Report:
        """Steps, costs beside the bound, and policies."""
        policies = [self._policies()] if self.replays else []
        return Report((*brief_and_detail(self._sheet), self._words(), *policies))

    def _sheet(self, is_brief: bool) -> Sheet:
        """Machines of each step."""
        is_measured = self.plans[0].interval is not None
        rows = tuple(
            (
                moment(step.start),
                duration(step.end - step.start),
                f"{step.highest:.6g}",
                f"{self.day.cost[step.level]:g}",
                machines_in_words(self.plans[step.level].machines),
                *((ends_in_words(self.plans[step.level].interval),) if is_measured else ()),
            )
            for step in self.steps
        )
        unit = self.plans[0].cost_unit
        carries = ("carries, tuples/s",) if is_measured else ()
        sheet = Sheet(("from", "for", "tuples/s", unit, "machines", *carries), rows)
        return with_rest(sheet) if is_brief else sheet

    def _words(self) -> str:
        hours, moves = len(self.level) * self.day.hours, len(self.steps) - 1
        saved = percent(1 - self.cost / self.static_cost)
        return (
            f"For {duration(hours * HOUR)}, the schedule costs {self.cost:.4g} with "
            f"{counted(moves, 'move')}. The plan for the peaks costs {self.static_cost:.4g} "
            f"all the time, so the schedule saves {saved}. No controller that decides "
            f"between slots of {duration(self.day.slots.seconds)} and keeps the lag costs less "
            f"than {floor_digits(self.bound, 4)}, even without headroom."
        )

    def _policies(self) -> Sheet:
        days = len(self.level) * self.day.slots.seconds / (24 * HOUR)
        rows = tuple(
            (
                replay.name,
                f"{replay.cost:.4g}",
                f"{replay.cost / self.cost:.3f}",
                f"{replay.cost / self.bound:.3f}" if self.bound > 0 else "–",
                f"{replay.moves / days:.3g}",
                percent(replay.punctual),
                duration(replay.latest),
            )
            for replay in sorted(self.replays, key=lambda replay: replay.cost)
        )
        head = ("policy", "cost", "of schedule", "of bound", "moves a day", "in time", "latest")
        return Sheet(head, rows)

    def figure(self) -> "Figure":
        """Return a picture of rate, capacity and cost over time."""
        from streamplace.drawing.figures import PALETTE, finish, legend_text, panels

        figure, (rates, costs) = panels(["rate and capacity", "cost per hour"])
        hours = self.day.hours * np.arange(len(self.level) + 1)
        capacity = self.day.rated_capacity[np.arange(len(self.level)), self.level]
        rates.fill_between(hours, _stairs(self.day.peak_rate), step="post", alpha=0.3, label="rate")
        rates.step(hours, _stairs(capacity), where="post", color=PALETTE[0], label="capacity")
        rates.set(xlabel="hours", ylabel="tuples/s", ylim=(0, None))
        lines = [
            ("schedule", self.day.cost[self.level], PALETTE[0]),
            ("proven bound of the slot", self.day.least[:, 0], PALETTE[1]),
            *(
                (replay.name, self.day.cost[replay.level], PALETTE[i % len(PALETTE)])
                for i, replay in enumerate(self.replays, 2)
                if replay.name != "static"
            ),
        ]
        for label, values, color in lines:
            costs.step(hours, _stairs(values), where="post", color=color, label=label)
        costs.set(xlabel="hours", ylabel="cost per hour", ylim=(0, None))
        return finish(figure, f"{legend_text(self.plans[0].graph.name)}: schedule")

    def to_json(self) -> dict[str, Any]:
        """Return the schedule as a JSON document."""
        return {
            "graph": self.plans[0].graph.name,
            "slot": self.day.slots.seconds,
            "cost": plain(self.cost),
            "static_cost": plain(self.static_cost),
            "bound": plain(self.bound),
            "moves": len(self.steps) - 1,
            "plans": [
                {
                    "machines": dict(plan.machines),
                    "cost": plain(plan.cost),
                    "carries": plain(plan.carries) if isfinite(plan.carries) else None,
                    **({} if plan.interval is None else {"interval": plan.interval._asdict()}),
                }
                for plan in self.plans
            ],
            "steps": [
                {"start": plain(s.start), "end": plain(s.end), "plan": s.level, "rate": s.highest}
                for s in self.steps
            ],
            "policies": [
                {
                    "name": replay.name,
                    "cost": plain(replay.cost),
                    "machine_cost": plain(replay.machine_cost),
                    "move_cost": plain(replay.move_cost),
                    "moves": replay.moves,
                    "punctual": replay.punctual,
                    "latest": replay.latest,
                }
                for replay in self.replays
            ],
        }

    def write(self, folder: str | PathLike[str]) -> str:
        """Write schedule, picture and plans into a folder; return what was written, in words."""
        from streamplace.drawing.figures import svg_text

        home = Path(folder)
        contents = (json_text(self.to_json()), svg_text(self.figure()))
        texts = {home / name: part for name, part in zip(FILES, contents, strict=True)}
        for number, plan in enumerate(self.plans):
            plan_folder = home / f"plan-{number}"
            make_folder(plan_folder)
            texts |= {plan_folder / name: part for name, part in plan.files().items()}
        make_folder(home)
        write_texts(texts)
        return ", ".join((*FILES, "plans"))


def _stairs(values: Floats) -> Floats:
    """Values of slots with the last one repeated, to draw its end."""
    return np.append(values, values[-1])
