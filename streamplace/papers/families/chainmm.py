"""A chain of matrix products, (A×B) + (C×(D×E)), cut into shards: Doppler, appendix C.1."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamplace.families.parameters import parameter
from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.papers.families.sharded import Gpus, TensorLabel, TensorProgram


@dataclass(frozen=True, slots=True)
class ChainMM(Gpus):
    """Parameters of the chainmm family."""

    size: int = parameter(
        10_000, "number of rows and columns of every matrix", least=1, most=1_000_000
    )
    shards: int = parameter(
        2,
        "number of shards per side of a matrix; the dimension that A×B and C×(D×E) sum over has "
        "twice as many",
        least=1,
        most=32,
    )


@family("chainmm", ChainMM)
def chainmm(parameters: ChainMM, seed: int) -> Iterator[Problem]:
    """Sharded matrix products (A×B) + (C×(D×E)) on equal GPUs, after Doppler; deterministic."""
    size, cuts = parameters.size, parameters.shards
    few, many = TensorLabel(size, cuts), TensorLabel(size, 2 * cuts)
    program = TensorProgram({"i": few, "j": few, "a": many, "b": many, "c": few})
    names = {"A": "ia", "B": "aj", "C": "ib", "D": "bc", "E": "cj"}
    a, b, c, d, e = (program.input(name, labels) for name, labels in names.items())
    ab = program.einsum("AB", "ia,aj->ij", a, b)
    de = program.einsum("DE", "bc,cj->bj", d, e)
    cde = program.einsum("CDE", "ib,bj->ij", c, de)
    program.each("add", "ij,ij->ij", ab, cde)
    facts: dict[str, Attribute] = {"family": "chainmm", "size": size, "shards": cuts}
    yield parameters.problem(program.graph(f"chainmm-{size}-{cuts}", facts))
