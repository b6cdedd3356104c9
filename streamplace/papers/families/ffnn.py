"""A feed-forward network of one hidden layer, cut into shards: Doppler, appendix C.2."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamplace.families.parameters import parameter
from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.papers.families.sharded import Gpus, TensorLabel, TensorProgram


@dataclass(frozen=True, slots=True)
class Ffnn(Gpus):
    """Parameters of the ffnn family."""

    batch: int = parameter(2**15, "number of rows of a batch", least=1, most=2**30)
    features: int = parameter(
        2**5, "number of features of a row, and of classes", least=1, most=2**20
    )
    hidden: int = parameter(2**16, "width of the hidden layer", least=1, most=2**24)
    shards: int = parameter(
        4, "number of shards of the batch; the hidden layer has twice as many", least=1, most=64
    )


@family("ffnn", Ffnn)
def ffnn(parameters: Ffnn, seed: int) -> Iterator[Problem]:
    """Sharded softmax(ReLU(X·W1 + b1)·W2 + b2) on equal GPUs, after Doppler; deterministic."""
    features, cuts = TensorLabel(parameters.features), parameters.shards
    n, h = TensorLabel(parameters.batch, cuts), TensorLabel(parameters.hidden, 2 * cuts)
    program = TensorProgram({"n": n, "h": h, "d": features, "o": features})
    names = {"X": "nd", "W1": "dh", "b1": "h", "W2": "ho", "b2": "o"}
    x, w1, b1, w2, b2 = (program.input(name, labels) for name, labels in names.items())
    wide = program.einsum("XW1", "nd,dh->nh", x, w1)
    biased = program.each("add1", "nh,h->nh", wide, b1)
    hidden = program.each("relu", "nh->nh", biased)
    narrow = program.einsum("HW2", "nh,ho->no", hidden, w2)
    program.softmax("softmax", "no", program.each("add2", "no,o->no", narrow, b2))
    facts: dict[str, Attribute] = {"family": "ffnn", "hidden": parameters.hidden, "shards": cuts}
    yield parameters.problem(program.graph(f"ffnn-{parameters.hidden}-{cuts}", facts))
