"""Options of a simulated pass: the queues of devices, and the network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats
from streamplace.model.messages import quoted, shown
from streamplace.model.placement import Placement

if TYPE_CHECKING:
    from streamsim.passes import Rules

Option = Literal["preset", "queue", "network"]


@dataclass(frozen=True, slots=True)
class PassOptions:
    """Rules of a pass, by name; empty ones have their defaults.

    Examples
    --------
    >>> PassOptions(preset="doppler").rules().network
    'link'
    >>> PassOptions().rules("order").queue, PassOptions(queue="fifo").rules("order").queue
    ('order', 'fifo')
    """

    preset: str = ""  # simulator whose rules apply: ``giph``, ``placeto`` or ``doppler``
    # As in `streamsim.passes.Rules`; without a queue, the placement's own discipline applies to its
    # priorities.
    queue: str = ""
    network: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "PassOptions":
        """Parse the options of an objective; raise SettingError for unknown ones."""
        from streamsim.passes import PRESETS

        for key in options:
            if key not in cls.__slots__:
                names = ", ".join(cls.__slots__)
                raise SettingError(
                    f"objective makespan has no option {quoted(key)}; it has {names}"
                )
        chosen = cls(**{cast(Option, key): value for key, value in options.items()})
        if chosen.preset and chosen.preset not in PRESETS:
            raise SettingError(
                f"objective makespan has no preset {quoted(chosen.preset)}; "
                f"it has {', '.join(PRESETS)}"
            )
        try:
            chosen.rules()
        except ValueError as error:
            raise SettingError(f"objective makespan: {shown(str(error), 200)}") from None
        return chosen

    @property
    def heeds_priorities(self) -> bool:
        """Whether a placement's own priorities apply; presets have their own order."""
        return self.queue in ("", "priority", "order") and not self.preset

    def rules(self, queue: str = "") -> "Rules":
        """Rules for placements with this discipline of priorities, or "" without priorities."""
        return _rules(self, queue)

    def rules_of(self, placement: Placement) -> "tuple[Rules, Floats | None]":
        """Rules for a placement, and its priorities if they apply."""
        order = placement.priority if self.heeds_priorities else None
        return self.rules("" if order is None else placement.queue), order


USUAL = PassOptions()


@lru_cache
def _rules(options: PassOptions, queue: str) -> "Rules":
    from streamsim.passes import PRESETS, Rules

    usual = PRESETS[options.preset] if options.preset else Rules()
    given = {key: value for key in ("queue", "network") if (value := getattr(options, key))}
    if queue and not options.queue and not options.preset:
        given["queue"] = queue
    return replace(usual, **given)
