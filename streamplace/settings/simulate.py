"""Settings of ``simulate``, with and without queues."""

from math import inf
from typing import TYPE_CHECKING, cast

from streamplace.errors import SettingError
from streamplace.settings.convert import (
    Moved,
    PlacementFile,
    Positive,
    Relocation,
    Seconds,
)
from streamplace.settings.option import HOW_LONG, file_key, names_in, option
from streamplace.settings.shared import (
    LosingDevice,
    ObjectiveSettings,
    OnDevices,
    UnderRules,
    WhatIfs,
)

if TYPE_CHECKING:
    from streamsim.engine import GivenSettings
    from streamsim.engine.settings import Policy, Randomness


class SimulateSettings(ObjectiveSettings, WhatIfs, LosingDevice, OnDevices, UnderRules):
    """How a placement is simulated and judged."""

    relocation: Moved = None
    present: PlacementFile | None = option(
        "--from FILE",
        "The current placement: lists the moves, their time, and when they pay off.",
        key="from",
    )
    passes: Positive | None = file_key("N", "Passes until the next change, as for place.")
    startup: Seconds | None = option(
        "--startup TIME",
        "Time that a moved operator needs to start, such as '2 s'. Only for problems that do not "
        "specify it.",
        HOW_LONG,
    )
    engine: bool = option(
        "--engine", "Also simulate with queues, which gives latencies and transients."
    )
    duration: Seconds | None = option(
        "--duration TIME",
        "Simulated time with queues.  [default: as long as it takes to settle and to measure]",
        HOW_LONG,
    )
    dt: Seconds | None = file_key(
        "TIME", "Time step with queues, by default from latencies and windows."
    )
    capacity: Positive | None = file_key(
        "N", "Largest queue in tuples, by default from what each stream carries."
    )
    policy: str = option(
        "NAME",
        "How a device shares its CPU among its operators, with queues.",
        default="dynamic",
        choices=names_in("streamsim.engine.settings:POLICIES"),
    )
    random: str = option(
        "--random NAME",
        "What is random with queues, for latencies: nothing, arrivals, or the times of service too "
        "(all).",
        default="nothing",
        choices=names_in("streamsim.engine.settings:RANDOMNESS"),
    )

    def check(self) -> None:
        """Refuse settings of queues without them, and of a pass where none is simulated."""
        super().check()
        self.need("present", "startup", "passes")
        self.need("engine", "duration", "dt", "capacity", "policy", "random")

    def move(self) -> Relocation | None:
        """Relocation from the current placement, if there is one."""
        if self.present is None:
            return self.relocation
        from streamplace.model.relocation import Relocation

        return Relocation(self.present, self.passes or inf, self.startup)

    def queues(self) -> "GivenSettings":
        """Settings of the engine; raise SettingError for invalid ones."""
        from streamsim.engine import GivenSettings

        policy, random = cast("Policy", self.policy), cast("Randomness", self.random)
        try:
            return GivenSettings(self.duration, self.dt, self.capacity, policy, random)
        except ValueError as error:
            raise SettingError(str(error)) from None
