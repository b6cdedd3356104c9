"""Machines of plans: offers with prices, machines that exist, and the share that stays free."""

from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval

from streamplace.settings.convert import ClusterFile, Share, converted_by
from streamplace.settings.option import WHERE, option

if TYPE_CHECKING:
    from streamplace.planning.offers import Catalogue
else:  # not imported for the help; the conversion checks the type
    Catalogue = Any


Headroom = Annotated[Share, Interval(ge=0, lt=1)]


def headroom_option(default: float) -> Any:
    """Option for the part of the machines that a plan does not use."""
    return option(
        "--headroom SHARE",
        "Share h of CPU and network cards that stays free: the plan is for 1 / (1 − h) times the "
        "rate.",
        default=default,
    )


OffersFile = Annotated[Catalogue, converted_by("streamplace.planning.offers:catalogue_of")]
OFFERS: OffersFile | None = option(
    "--offers FILE", "TOML file with the types of machines and their prices.", WHERE
)
OWN_MACHINES: ClusterFile = option(
    "--cluster FILE",
    "Cluster file (TOML) of the machines that you have. The plan uses as few of them as possible.",
    WHERE,
)
