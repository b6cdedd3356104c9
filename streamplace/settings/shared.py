"""Settings that several verbs share: devices, what-ifs, limits of a search, data sets."""

from typing import Annotated, Any

from streamplace.errors import SettingError
from streamplace.model.defaults import PLACE_SECONDS
from streamplace.model.message_text import quoted
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import (
    BUDGET,
    CLUSTER,
    CONSTRAINTS,
    COUNT,
    FLAG,
    OBJECTIVE,
    QUANTITY,
    RATE,
    RATES,
    TEXT,
    Budget,
    Cluster,
    Constraints,
    Objective,
    share,
    texts,
    whole,
)
from streamplace.settings.option import HOW_LONG, WHERE


class ObjectiveSettings(VerbSettings):
    """What a placement is judged by."""

    objective: Annotated[
        str | Objective,
        OBJECTIVE.option(
            "--objective",
            "What to optimise (see: streamplace objectives), with options after colons, as in "
            "makespan:network=link.  [default: makespan for task graphs, else throughput]",
        ),
    ] = ""
    rate: Annotated[
        float | None,
        RATE.option("--rate", "Total rate of the sources. Replaces the rate of the graph."),
    ] = None


Conditions = Annotated[
    tuple[str, ...],
    texts("CONDITION").option(
        "--require",
        "Condition that the placement must meet, such as 'throughput>=0.99' or 'latency<=20ms'. "
        "May be repeated.",
    ),
]


class AtRates(VerbSettings):
    """Rates at which every graph is placed or learned."""

    rate: Annotated[
        tuple[float, ...],
        RATES.option(
            "--rate",
            "Total rate of the sources; repeat it for several rates.  [default: the rate of each "
            "graph]",
        ),
    ] = ()


class OnDevices(VerbSettings):
    """Devices: a cluster, or three numbers of equal devices instead, without Python."""

    cluster: Annotated[
        Cluster | None,
        CLUSTER.option(
            "--cluster", "TOML file of the devices (see: streamplace schema cluster).", WHERE
        ),
    ] = None
    devices: Annotated[
        int | None,
        COUNT.option("--devices", "Number of equal devices d0…  [default: 5]", WHERE),
    ] = None
    mips: Annotated[
        str | None,
        QUANTITY.option("--mips", "Speed of every device.  [default: 2500 MIPS]", WHERE),
    ] = None
    bandwidth: Annotated[
        str | None,
        QUANTITY.option("--bandwidth", "Bandwidth of every link.  [default: 1000 Mbps]", WHERE),
    ] = None

    def check(self) -> None:
        """Refuse numbers beside a cluster."""
        super().check()
        for name in ("devices", "mips", "bandwidth"):
            self.exclude(name, "cluster")

    def machines(self) -> Cluster | None:
        """Cluster that is described; None for the default one."""
        if (self.devices, self.mips, self.bandwidth) == (None, None, None):
            return self.cluster
        from streamplace.model.cluster import Cluster

        return Cluster.uniform(self.devices, mips=self.mips, bandwidth=self.bandwidth)


class UnderRules(VerbSettings):
    """Constraints of a placement."""

    constraints: Annotated[
        Constraints | None,
        CONSTRAINTS.option(
            "--constraints",
            "TOML file of constraints, such as pins (see: streamplace schema constraints).",
            WHERE,
        ),
    ] = None


class WhatIfs(VerbSettings):
    """Changes of a graph without an edited file; in Python, `streamplace.what_if` makes them."""

    set: Annotated[
        tuple[str, ...],
        texts("OPERATOR.FIELD=VALUE").option(
            "--set",
            "What if: set a number of the graph, as in kafka.rate=100k or "
            "'parse->sink.selectivity=0.5'. May be repeated.",
        ),
    ] = ()
    scale: Annotated[
        tuple[str, ...],
        texts("OPERATOR=FACTOR").option(
            "--scale",
            "What if: multiply the CPU per tuple of an operator, as in enrich=2. May be repeated.",
        ),
    ] = ()

    def changes(self) -> dict[str, Any]:
        """Arguments of `streamplace.what_if`."""
        factors = {}
        for name, text in self._pairs("scale", self.scale, "enrich=2").items():
            try:
                factors[name] = float(text)
            except ValueError:
                raise SettingError(
                    f"{self.name('scale')} {name}={text}: {quoted(text)} is not a number; write "
                    f"{name}=2"
                ) from None
        return {"scale": factors, "change": self._pairs("set", self.set, "kafka.rate=100k")}

    def _pairs(self, field: str, texts: tuple[str, ...], example: str) -> dict[str, str]:
        """Values by name; a name may contain an equals sign."""
        pairs: dict[str, str] = {}
        option = self.name(field)
        for text in texts:
            name, equals, value = text.rpartition("=")
            if not (name and equals and value):
                raise SettingError(f"{option} is {quoted(text)}; write it as in {option} {example}")
            if name in pairs:
                raise SettingError(f"{option} is given twice for {quoted(name)}; drop one")
            pairs[name] = value
        return pairs


class SearchLimits(VerbSettings):
    """Limits of a search, and its seed."""

    budget: Annotated[
        Budget | None,
        BUDGET.option(
            "--budget",
            "Search time per graph, in seconds or with a unit, as in '50 ms'.  "
            f"[default: {PLACE_SECONDS:g}; no limit where --evaluations is given]",
            HOW_LONG,
        ),
    ] = None
    evaluations: Annotated[
        int | None,
        COUNT.option(
            "--evaluations",
            "Maximum number of steps of the search. Results then do not depend on the machine.",
            HOW_LONG,
        ),
    ] = None
    seed: Annotated[
        int, whole().option("--seed", "The same seed gives the same result.", HOW_LONG)
    ] = 0

    def limits(self) -> Budget | None:
        """Budget of both limits; None without any."""
        if self.evaluations is None:
            return self.budget
        from streamplace.placers.registry import Budget

        return Budget(None if self.budget is None else self.budget.seconds, self.evaluations)


class OfDataSet(VerbSettings):
    """Graphs of a data set, and what computes."""

    split: Annotated[
        str | None, TEXT.option("--split", "Use only the graphs of this split, such as test.")
    ] = None
    limit: Annotated[int | None, COUNT.key()] = None  # number of graphs to read, from the first
    # Compute on Ray: 'ray' starts one here, 'auto' or an address names a running one.
    on: Annotated[str | None, TEXT.key()] = None


class OfMeasuredGraph(VerbSettings):
    """What is predicted for a graph that was measured on a running job."""

    # Confidence of the interval of what is predicted; 0 uses the prediction alone.
    confidence: Annotated[float | None, share(zero=True, one=False).key()] = None
    # Use a measured graph whose model is off by more than 30 % for the placement that was profiled.
    trust_profile: Annotated[bool, FLAG.key()] = False
