"""Options that several verbs share: objectives, conditions, devices, changes of a graph."""

from typing import Any

from streamplace.errors import SettingError
from streamplace.model.defaults import BANDWIDTH, DEVICES, SPEED
from streamplace.model.message_text import quoted
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import (
    Cluster,
    ClusterFile,
    ConstraintsFile,
    Count,
    ObjectiveName,
    QuantityText,
    Rate,
    Texts,
)
from streamplace.settings.option import HOW_LONG, WHERE, names_in, option

SEED: int = option("--seed N", "The same seed gives the same result.", HOW_LONG, default=0)
SPLIT: str | None = option("--split TEXT", "Use only the graphs of this split, such as test.")
JOBS: int | None = option("--jobs N", "Number of processes.  [default: all cores]", HOW_LONG)


class ObjectiveOptions(VerbSettings):
    """The objective, and the rate at which it evaluates a placement."""

    objective: ObjectiveName = option(
        "--objective NAME",
        "What to optimise (see: streamplace objectives), with options after colons, as in "
        "makespan:network=link.  [default: makespan for task graphs, else throughput]",
        default="",
        choices=names_in("streamplace.objectives.registry:OBJECTIVES"),
    )
    rate: Rate | None = option(
        "--rate RATE", "Total rate of the sources. Replaces the rate of the graph."
    )


class ConditionOptions(VerbSettings):
    """Conditions of a placement."""

    require: Texts = option(
        "--require CONDITION…",
        "Condition that the placement must meet, such as 'throughput>=0.99', 'latency<=20ms' or "
        "'latency(camera->alarm)<=50ms'. May be repeated.",
    )


class DeviceOptions(VerbSettings):
    """Devices: a cluster, or three numbers of equal devices instead, without Python."""

    cluster: ClusterFile = option(
        "--cluster FILE", "TOML file of the devices (see: streamplace schema cluster).", WHERE
    )
    devices: Count | None = option(
        "--devices N", f"Number of equal devices d0…  [default: {DEVICES}]", WHERE
    )
    mips: QuantityText | None = option(
        "--mips QUANTITY", f"Speed of every device.  [default: {SPEED}]", WHERE
    )
    bandwidth: QuantityText | None = option(
        "--bandwidth QUANTITY", f"Bandwidth of every link.  [default: {BANDWIDTH}]", WHERE
    )

    def check(self) -> None:
        """Refuse numbers beside a cluster."""
        super().check()
        for name in ("devices", "mips", "bandwidth"):
            self.exclude(name, "cluster")

    def machines(self) -> Cluster | None:
        """The cluster; None for the default one."""
        if (self.devices, self.mips, self.bandwidth) == (None, None, None):
            return self.cluster
        from streamplace.model.cluster import Cluster

        return Cluster.uniform(self.devices, mips=self.mips, bandwidth=self.bandwidth)


class LossOptions(VerbSettings):
    """A device that is no longer there."""

    without: str | None = option(
        "--without DEVICE",
        "What if: lose a device. Pins to it are dropped. 'simulate' moves its operators to the "
        "best places among the other devices; 'place' places all operators again.",
    )


class ConstraintOptions(VerbSettings):
    """Constraints of a placement."""

    constraints: ConstraintsFile = option(
        "--constraints FILE",
        "TOML file of constraints, such as pins (see: streamplace schema constraints).",
        WHERE,
    )


class ChangeOptions(VerbSettings):
    """Changes of a graph without an edited file; in Python, `streamplace.what_if` makes them."""

    set: Texts = option(
        "--set NAME.FIELD=VALUE…",
        "What if: set a number of an operator, stream, device or link, as in kafka.rate=100k, "
        "'parse->sink.selectivity=0.5', d0.mips=5000 or 'd0->d1.bandwidth=10Gbps', or multiply "
        "the CPU per tuple of an operator, as in enrich.ipt=2x. May be repeated.",
    )

    def check(self) -> None:
        """Refuse a total rate beside the rate of an operator, which it would replace."""
        super().check()
        rates = [text for text in self.set if text.rpartition("=")[0].endswith(".rate")]
        if rates and getattr(self, "rate", None):
            raise SettingError(
                f"{self.name('set')} {rates[0]} is replaced, as {self.name('rate')} scales all "
                "sources to its total; drop one"
            )

    def changes(self) -> dict[str, Any]:
        """Arguments of `streamplace.what_if`."""
        change, factors, called = dict[str, str](), dict[str, float](), self.name("set")
        for text in self.set:
            name, equals, value = text.rpartition("=")  # a name may contain an equals sign
            operator = name.removesuffix(".ipt")
            if not (name and equals and value):
                raise SettingError(
                    f"{called} is {quoted(text)}; write it as in {called} kafka.rate=100k"
                )
            if name in change or (name != operator and operator in factors):
                raise SettingError(f"{called} is given twice for {quoted(name)}; drop one")
            if name == operator or not value.endswith("x"):
                change[name] = value
                continue
            try:
                factors[operator] = float(value.removesuffix("x"))
            except ValueError:
                raise SettingError(
                    f"{called} {text}: {quoted(value)} is not a factor; write {name}=2x"
                ) from None
        return {"scale": factors, "change": change}
