"""Servers of equal GPUs: what sharded tensor programs run on."""

from dataclasses import dataclass

from streamplace.families.parameters import check, parameter
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem
from streamplace.model.units import bandwidth_bps, size_bytes


@dataclass(frozen=True, slots=True)
class Gpus:
    """Parameters of a server; by default four of the GPUs that Doppler was measured on.

    13.6 TFLOPS is what the paper's multiplications reach on one of its P100: 440 ms for chainmm.
    """

    devices: int = parameter(4, "GPUs", least=1, most=1024)
    tflops: float = parameter(13.6, "TFLOPS of a GPU", least=1e-6, most=1e6)
    memory: str = parameter("16 GB", "memory of a GPU")
    bandwidth: str = parameter("16 GB/s", "bandwidth between any two GPUs, in each direction")

    def __post_init__(self) -> None:
        check(self)
        bandwidth_bps(self.bandwidth)
        size_bytes(self.memory)

    @property
    def n_graphs(self) -> int:
        """Number of problems."""
        return 1

    def problem(self, graph: StreamGraph) -> Problem:
        """The problem of running a program on these GPUs."""
        gpus = [
            Device(f"gpu{d}", self.tflops * 1e6, memory=self.memory) for d in range(self.devices)
        ]
        return Problem(graph, Cluster.of(gpus, bandwidth=self.bandwidth))
