"""Machines of plans: offers with prices, machines that exist, and the share that stays free."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval
from pydantic import BeforeValidator

from streamplace.settings.convert import ClusterFile, Share
from streamplace.settings.option import WHERE, option

if TYPE_CHECKING:
    from streamplace.planning.offers import Catalogue
else:  # not imported for the help; what converts a value checks its type
    Catalogue = Any


def _offers(value: Any) -> "Catalogue":
    from streamplace.planning.offers import Catalogue, Offer, offers_from_tables, read_offers

    if isinstance(value, Catalogue):
        return value
    if isinstance(value, str | PathLike):
        return read_offers(Path(value))
    if isinstance(value, Mapping):
        return offers_from_tables(value)
    listed = list(value) if isinstance(value, Iterable) else [value]
    if all(isinstance(offer, Offer) for offer in listed):
        return Catalogue.of(listed)
    raise ValueError("it must be a list of Offer, the tables of an offers file, or its path")


Headroom = Annotated[Share, Interval(ge=0, lt=1)]


def headroom_option(default: float) -> Any:
    """Option for the part of the machines that a plan does not use."""
    return option(
        "--headroom SHARE",
        "Share h of CPU and network cards that stays free: the plan is for 1 / (1 − h) times the "
        "rate.",
        default=default,
    )


OffersFile = Annotated[Catalogue, BeforeValidator(_offers)]
OFFERS: OffersFile | None = option(
    "--offers FILE", "TOML file with the types of machines and their prices.", WHERE
)
OWN_MACHINES: ClusterFile = option(
    "--cluster FILE",
    "Cluster file (TOML) of the machines that you have. The plan uses as few of them as possible.",
    WHERE,
)
