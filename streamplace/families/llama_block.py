"""One transformer block of Llama, cut into shards: Doppler, appendix C.3."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamplace.families.llama import Llama, transformer_block
from streamplace.families.registry import family
from streamplace.families.sharded import TensorProgram
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class LlamaBlock(Llama):
    """Parameters of the llama-block family."""


@family("llama-block", LlamaBlock)
def llama_block(parameters: LlamaBlock, seed: int) -> Iterator[Problem]:
    """A sharded transformer block of Llama 7B on equal GPUs, after Doppler; deterministic."""
    program = TensorProgram(parameters.labels())
    transformer_block(program, program.input("x", "sd"))
    name = f"llama-block-{parameters.shards}x{parameters.pieces}"
    yield parameters.problem(program.graph(name, parameters.facts("llama-block")))
