"""OpenVINO's HETERO plugin: run a placed model and measure its time.

This is the loop of HSDAG: the reward of a placement is measured, not simulated. The affinity of an
operator determines its device; constants are on the device of their first user.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.errors import FormatError, ProblemError
from streamplace.io.extras import extra
from streamplace.io.files import spot
from streamplace.io.openvino import held_rows, names_of
from streamplace.model.arrays import Floats, Ints
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective

RUNS, COUNTED = 10, 5
"""Number of runs of a placement, and of the last runs whose mean counts, as in the paper."""


@dataclass(frozen=True, eq=False)
class Hetero:
    """A model file for the ``openvino`` reader, on devices of this machine."""

    path: Path
    # OpenVINO's name of each device of the cluster, in order, such as ``("CPU", "GPU")``.
    devices: tuple[str, ...]
    _known: dict[bytes, float] = field(default_factory=dict, repr=False)

    def seconds(self, problem: Problem, row: Ints) -> float:
        """Mean of the last five of ten runs; equal placements are measured once."""
        key = row.astype(np.int32).tobytes()
        if key not in self._known:
            self._known[key] = float(np.mean(self._runs(self.compiled(problem, row))[-COUNTED:]))
        return self._known[key]

    def objective(self, name: str = "openvino-latency") -> Objective:
        """Objective of the shortest measured pass, which the caller may register."""

        def evaluate(problem: Problem, placements: Ints) -> Floats:
            return np.array([self.seconds(problem, row) for row in np.atleast_2d(placements)])

        return Objective(name, "min", "Measured by OpenVINO.", evaluate, unit="s")

    def compiled(self, problem: Problem, row: Ints) -> Any:
        """Compile the model with operators on devices [N]."""
        if problem.n_devices != len(self.devices):
            raise ProblemError(
                f"the cluster has {problem.n_devices} devices, but {len(self.devices)} OpenVINO "
                "devices are named; name one for each"
            )
        core = extra("openvino").Core()
        model = core.read_model(self.path)
        nodes = model.get_ordered_ops()
        names = names_of([node.get_friendly_name() for node in nodes])
        if tuple(names) != problem.graph.operators.name:
            raise FormatError(
                f"{spot(self.path)}: is not the model that graph {quoted(problem.graph.name)} was "
                "imported from; import the model again"
            )
        for node, device in zip(nodes, self._beside_users(problem, row), strict=True):
            node.get_rt_info()["affinity"] = self.devices[device]
        return core.compile_model(model, "HETERO:" + ",".join(self.devices))

    def _beside_users(self, problem: Problem, row: Ints) -> Sequence[int]:
        """Devices of the operators, with constants on the device of their first user."""
        streams, held = problem.graph.streams, held_rows(problem.graph)
        users: dict[int, int] = {}
        for source, target in zip(streams.source.tolist(), streams.target.tolist(), strict=True):
            users.setdefault(source, target)
        devices = []
        for v in range(problem.n_operators):
            u = v
            while u in held and u in users:
                u = users[u]
            devices.append(int(row[u]))
        return devices

    def _runs(self, compiled: Any) -> list[float]:
        """Seconds of each run on inputs of zeros."""
        request = compiled.create_infer_request()
        given = {
            i: np.zeros(list(one.shape), one.get_element_type().to_dtype())
            for i, one in enumerate(compiled.inputs)
        }
        took = []
        for _ in range(RUNS):
            start = time.perf_counter()
            request.infer(given)
            took.append(time.perf_counter() - start)
        return took
