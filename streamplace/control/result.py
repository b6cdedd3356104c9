"""The answer of ``plan --schedule``: the best schedule of a known day, its bound, and policies."""

import itertools
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamplace.control.day import HOUR, ControlDay
from streamplace.control.replay import PolicyReplay
from streamplace.io.fields import plain
from streamplace.io.files import json_text, make_folder, write_texts
from streamplace.model.arrays import Floats, Ints
from streamplace.model.display import Pictured
from streamplace.model.messages import counted
from streamplace.model.report import Part, Report, Sheet, duration, percent
from streamplace.model.units import floor_digits
from streamplace.planning.hours import ends_in_words, machines_in_words, moment
from streamplace.planning.result import PlanResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILES = ("schedule.json", "schedule.svg", "report.html")
"""Files of a schedule, beside a folder for each of its plans."""
MOST_STEPS = 40
"""Steps that the terminal shows."""
DAY = 86_400.0


class ScheduleStep(NamedTuple):
    """A plan that runs for some time."""

    start: float  # seconds in the time of the trace
    end: float
    level: int  # number of the plan
    highest: float  # tuples/s of all sources, at most


@dataclass(frozen=True, slots=True, eq=False)
class PlanSchedule(Pictured):
    """A trace, the cheapest sequence of plans for it, and what policies make of it.

    No controller that decides between slots and meets the lag costs less than ``bound``, which is
    proven, even if it keeps no headroom.
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
        steps = self.steps
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
            for step in steps[:MOST_STEPS]
        )
        unit = "cost per hour" if self.plans[0].priced else "machines"
        carries = ("carries, tuples/s",) if is_measured else ()
        head = ("from", "for", "tuples/s", unit, "machines", *carries)
        parts: list[Part] = [Sheet(head, rows)]
        if len(steps) > MOST_STEPS:
            parts.append(f"{counted(len(steps) - MOST_STEPS, 'more step')} in JSON and the report.")
        parts.append(self._words(len(steps) - 1))
        if self.replays:
            parts.append(self._policies())
        return Report(tuple(parts), subject=self)

    def _words(self, moves: int) -> str:
        hours = len(self.level) * self.day.hours
        saved = percent(1 - self.cost / self.static_cost)
        return (
            f"For {duration(hours * HOUR)}, the schedule costs {self.cost:.4g} with "
            f"{counted(moves, 'move')}. The plan for the peaks costs {self.static_cost:.4g} "
            f"all the time, so the schedule saves {saved}. No controller that decides "
            f"between slots of {duration(self.day.slots.seconds)} and keeps the lag costs less "
            f"than {floor_digits(self.bound, 4)}, even without headroom."
        )

    def _policies(self) -> Sheet:
        days = len(self.level) * self.day.slots.seconds / DAY
        rows = tuple(
            (
                one.name,
                f"{one.cost:.4g}",
                f"{one.cost / self.cost:.3f}",
                f"{one.cost / self.bound:.3f}" if self.bound > 0 else "–",
                f"{one.moves / days:.3g}",
                percent(one.punctual),
                duration(one.latest),
            )
            for one in sorted(self.replays, key=lambda one: one.cost)
        )
        head = ("policy", "cost", "of schedule", "of bound", "moves a day", "in time", "latest")
        return Sheet(head, rows)

    def figure(self) -> "Figure":
        """Return a picture of rate, capacity and cost over time."""
        from streamplace.drawing.charts import PALETTE, finish, legend_text, panels

        figure, (rates, costs) = panels(["rate and capacity", "cost per hour"])
        hours = self.day.hours * np.arange(len(self.level) + 1)
        capacity = self.day.rated[np.arange(len(self.level)), self.level] * self.day.peak_rate
        rates.fill_between(hours, _stairs(self.day.peak_rate), step="post", alpha=0.3, label="rate")
        rates.step(hours, _stairs(capacity), where="post", color=PALETTE[0], label="capacity")
        rates.set(xlabel="hours", ylabel="tuples/s", ylim=(0, None))
        costs.step(hours, _stairs(self.day.cost[self.level]), where="post", label="schedule")
        costs.step(
            hours,
            _stairs(self.day.least[:, 0]),
            where="post",
            color=PALETTE[1],
            label="proven bound of the slot",
        )
        for i, one in enumerate(self.replays, 2):
            if one.name != "static":
                own = _stairs(self.day.cost[one.level])
                costs.step(
                    hours, own, where="post", color=PALETTE[i % len(PALETTE)], label=one.name
                )
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
                    "name": one.name,
                    "cost": plain(one.cost),
                    "machine_cost": plain(one.machine_cost),
                    "move_cost": plain(one.move_cost),
                    "moves": one.moves,
                    "punctual": one.punctual,
                    "latest": one.latest,
                }
                for one in self.replays
            ],
        }

    def write(self, folder: str | PathLike[str]) -> None:
        """Write schedule, picture, report and plans into a folder, or the report alone (.html)."""
        from streamplace.drawing.figures import svg_text

        if Path(folder).suffix == ".html":
            self.report().save(folder)
            return
        home = Path(folder)
        contents = (json_text(self.to_json()), svg_text(self.figure()), self.report().html())
        texts = {home / name: part for name, part in zip(FILES, contents, strict=True)}
        for number, plan in enumerate(self.plans):
            own = home / f"plan-{number}"
            make_folder(own)
            texts |= {own / name: part for name, part in plan.files().items()}
        make_folder(home)
        write_texts(texts)


def _stairs(values: Floats) -> Floats:
    """Values of slots with the last one repeated, to draw its end."""
    return np.append(values, values[-1])
