"""A measured job with its cluster, as the input of placers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamplace.engines.flink.measure.fit import Observation
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph

NEGLIGIBLE = 1e-6
"""Share of the rate of all sources below which some count as silent."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured job and its cluster, as input of placers.

    It is limited if a source was held back, so that the job may read more with another placement.
    ``shares`` has, for operators whose subtasks are uneven, the part of the tuples that each
    of them takes in.
    """

    graph: StreamGraph  # with measured rates, CPU and payloads
    cluster: Cluster  # the devices, with the resources that are available to this job
    is_limited: bool
    notes: tuple[str, ...] = ()  # sentences on missing measurements
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    held_back: frozenset[str] = frozenset()  # sources that were held back, if it is known which
    varies: bool = False  # whether the rate of a source varied during the measurement
    # Operator → rates and CPU of its subtasks, in this and in earlier layouts.
    observed: Mapping[str, Sequence[Observation]] = field(default_factory=dict)
    flow: SourceFlow | None = None  # what its sources did; None if that is unknown

    @property
    def kept_rate(self) -> float:
        """Tuples/s of the sources that keep up while others are held back; 0 if none or all do."""
        operators, total = self.graph.operators, self.graph.source_rate
        rates = zip(operators.name, operators.rate.tolist(), strict=True)
        held = sum(rate for name, rate in rates if name in self.held_back)
        return total - held if NEGLIGIBLE < held / total < 1 - NEGLIGIBLE else 0.0
