"""Options of ``streamplace plan``: machines, headroom and limits; ranges of rates."""

import re
from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

import click

from streamplace.cli._options import (
    CONFIDENCE,
    FILE,
    LEDGER,
    OFFERS,
    TIME,
    TRUST,
    Share,
    with_options,
)
from streamplace.cli._what_ifs import what_ifs
from streamplace.errors import SettingError
from streamplace.model.defaults import PLAN_SECONDS
from streamplace.model.messages import quoted

F = TypeVar("F", bound=Callable[..., Any])
POINTS = 9
"""Number of rates of a frontier."""

OPTIONS = (
    OFFERS,
    click.option(
        "--cluster",
        "cluster_file",
        type=FILE,
        help="Cluster file (TOML) of the machines that you have. The plan uses as few of them as "
        "possible.",
    ),
    click.option(
        "--headroom",
        type=Share(click.FloatRange(0, 1, max_open=True)),
        default=0.0,
        show_default=True,
        help="Share h of CPU and network cards that stays free: the plan is for 1 / (1 − h) times "
        "the rate.",
    ),
    TRUST,
    CONFIDENCE,
    LEDGER,
    click.option(
        "--keep-parallelism",
        is_flag=True,
        help="Keep the parallelism of every operator of GRAPH; plan only machines and placement.",
    ),
    click.option(
        "--keep",
        metavar="OPERATOR",
        multiple=True,
        help="Keep the parallelism of this operator, as of one whose program sets it. May be "
        "repeated.",
    ),
    what_ifs,
    click.option(
        "--evaluations",
        type=click.IntRange(1),
        help="Maximum number of moves to try. Results then do not depend on the machine.",
    ),
    click.option(
        "--budget",
        "seconds",
        type=TIME,
        help="Time for each plan in seconds, or with a unit, as in '1 min'.  [default: "
        f"{PLAN_SECONDS:g}; no limit where --evaluations is given]",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        help="Processes that plan.  [default: one for every core where there are many plans]",
    ),
)
"""Options of all plans, in the order of the help."""


def plan_options(function: F) -> F:
    """Options of all plans, passed on with ``--seed`` as one `PlanOptions`; what-ifs as one too."""

    def wrapper(*args: Any, **given: Any) -> Any:
        from streamplace.api.plan_request import PlanOptions
        from streamplace.placers.registry import Budget

        kept, every = given.pop("keep"), given.pop("keep_parallelism")
        limits = given.pop("seconds"), given.pop("evaluations")
        options = PlanOptions(
            offers=given.pop("offers_file"),
            cluster=given.pop("cluster_file"),
            headroom=given.pop("headroom"),
            keep_parallelism=every or kept,
            confidence=given.pop("confidence"),
            ledger=given.pop("ledger"),
            trust_profile=given.pop("trust_profile"),
            seed=given.pop("seed"),
            budget=None if limits == (None, None) else Budget(*limits),
            jobs=given.pop("jobs"),
        )
        return function(*args, options=options, **given)

    return with_options(wrapper, function, *reversed(OPTIONS))


def _ends(text: str) -> tuple[str, str, str]:
    """Ends of a range, and what is between them; a rate alone has one end.

    >>> _ends("20000..80000"), _ends("20k-80k"), _ends("1e-5")
    (('20000', '..', '80000'), ('20k', '-', '80k'), ('1e-5', '', ''))
    """
    if ".." in text:
        return text.partition("..")
    parts = re.fullmatch(r"(\s*\d\S*?(?:\s*[A-Za-z/]+)?)\s*(?<![eE])([-–])\s*(\d.*)", text)
    return (parts[1], parts[2], parts[3]) if parts else (text, "", "")


def rates_of(text: str) -> list[float]:
    """Parse rates: one, nine of a range, or an infinite one for "max".

    >>> rates_of("50 k/s"), len(rates_of("20000..80000")), rates_of("max")
    ([50000.0], 9, [inf])
    >>> rates_of("20000-80000") == rates_of("20 k/s - 80 k/s") == rates_of("20k..80k")
    True
    """
    from streamplace.model.units import tuple_rate

    if text == "max":
        return [inf]
    first, dots, last = _ends(text)
    if dots and not (first and last):
        raise SettingError(f"--rate is {quoted(text)}; a range has two ends: 20000..80000")
    low = tuple_rate(first)
    high = tuple_rate(last) if dots else low
    if not 0 < low <= high or (dots and low == high):
        raise SettingError(
            f"--rate is {text}; it must be above 0, and a range must lead from a lower rate to a "
            "higher one"
        )
    if not dots:
        return [low]
    return [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]
