"""Training on a Ray cluster: bit-identical to this machine, even if workers fail.

A shard's gradient depends only on the parameters, the memories of its rows and its seed. All are
sent, so that any worker can compute it, and repeat it if another is lost.
"""

from collections.abc import Callable, Sequence
from typing import Any

from streamplace.evaluate.on_ray import result
from streamplace.learn.learner import Learner
from streamplace.learn.parameters import arrays_of, put_arrays
from streamplace.learn.shards import BatchShard, Gradient, gathered, gradient_of, one_thread, summed
from streamplace.model.arrays import Arrays, Floats, Longs


class RayWorkers:
    """Workers of a Ray cluster, each with a learner that it makes once."""

    def __init__(self, ray: Any, learner: Learner, make: Callable[[], Learner]) -> None:
        self._ray, self._learner = ray, learner
        self._make = [ray.put(make)]  # in a list, or Ray would unpack it for every call
        self._gradient, self._values = (
            ray.remote(max_retries=-1, num_cpus=1)(work) for work in (_gradient, _values)
        )

    def gradient(self, shards: Sequence[BatchShard]) -> Gradient:
        """Sum of the shards' gradients."""
        weights = self._ray.put(arrays_of(self._learner.module))
        tasks = [
            self._gradient.remote(self._make, weights, shard, self._learner.state(shard.rows))
            for shard in shards
        ]
        gradients = [result(self._ray, task) for task in tasks]
        for shard, (_, state) in zip(shards, gradients, strict=True):
            self._learner.restore(state, shard.rows)
        return summed(gradient for gradient, _ in gradients)

    def values(self, parts: Sequence[Longs]) -> Floats:
        """Values of all validation problems."""
        weights = self._ray.put(arrays_of(self._learner.module))
        tasks = [self._values.remote(self._make, weights, part) for part in parts]
        return gathered(parts, [result(self._ray, task) for task in tasks])


def _gradient(made: list[Any], weights: Arrays, shard: BatchShard, state: Arrays) -> Any:
    with one_thread():
        learner = _learner(made, weights)
        learner.restore(state, shard.rows)
        return gradient_of(learner, shard), learner.state(shard.rows)


def _values(made: list[Any], weights: Arrays, part: Longs) -> Floats:
    with one_thread():
        return _learner(made, weights).validate(part)


_made: dict[str, Learner] = {}
"""Learner of the latest training on this worker."""


def _learner(made: list[Any], weights: Arrays) -> Learner:
    """Learner with these weights; the first call in a worker makes it."""
    import ray

    (reference,) = made
    if reference.hex() not in _made:
        _made.clear()
        _made[reference.hex()] = ray.get(reference)()
    learner = _made[reference.hex()]
    put_arrays(learner.module, dict(weights), "the weights")
    return learner
