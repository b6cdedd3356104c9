"""How a pass is simulated: the order in which devices take what is ready, and the network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast

from streamplace.errors import SettingError
from streamplace.model.messages import quoted, shown

if TYPE_CHECKING:
    from streamsim.passes import Rules

Option = Literal["preset", "queue", "network"]


@dataclass(frozen=True, slots=True)
class Way:
    """Rules of a pass, by name; what is left out is as usual.

    Attributes
    ----------
    preset
        Whose simulator: ``giph``, ``placeto`` or ``doppler``.
    queue, network
        As `streamsim.passes.Rules` has them.

    Examples
    --------
    >>> Way(preset="doppler").rules(ordered=False).network
    'link'
    """

    preset: str = ""
    queue: str = ""
    network: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Way":
        """Way from the options of an objective, which are refused where nobody knows them."""
        from streamsim.passes import PRESETS

        for key in options:
            if key not in cls.__slots__:
                known = ", ".join(cls.__slots__)
                raise SettingError(
                    f"objective makespan has no option {quoted(key)}; it has {known}"
                )
        way = cls(**{cast(Option, key): value for key, value in options.items()})
        if way.preset and way.preset not in PRESETS:
            raise SettingError(
                f"objective makespan has no preset {quoted(way.preset)}; "
                f"it has {', '.join(PRESETS)}"
            )
        try:
            way.rules(ordered=False)
        except ValueError as error:
            raise SettingError(f"objective makespan: {shown(str(error), 200)}") from None
        return way

    @property
    def heeds_priorities(self) -> bool:
        """Whether a placement's own priorities count; a preset has an order of its own."""
        return self.queue in ("", "priority") and not self.preset

    def rules(self, *, ordered: bool) -> "Rules":
        """Rules for a placement with priorities, or for one without."""
        return _rules(self, ordered)


@lru_cache
def _rules(way: Way, ordered: bool) -> "Rules":
    from streamsim.passes import PRESETS, Rules

    usual = PRESETS[way.preset] if way.preset else Rules()
    given = {key: value for key in ("queue", "network") if (value := getattr(way, key))}
    if ordered and way.heeds_priorities:
        given["queue"] = "priority"
    return replace(usual, **given)
