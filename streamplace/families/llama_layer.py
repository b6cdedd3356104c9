"""Llama with a single layer, from tokens to hidden states, in shards: Doppler, appendix C.3."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamplace.families.llama import Llama, rms_norm, transformer_block
from streamplace.families.parameters import parameter
from streamplace.families.registry import family
from streamplace.families.sharded import TensorLabel, TensorProgram
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class LlamaLayer(Llama):
    """Parameters of the llama-layer family."""

    vocabulary: int = parameter(32_000, "number of different tokens", least=1, most=2**24)


@family("llama-layer", LlamaLayer)
def llama_layer(parameters: LlamaLayer, seed: int) -> Iterator[Problem]:
    """A sharded one-layer Llama on equal GPUs, with embedding and last norm; deterministic.

    The projection onto the vocabulary is left out: the paper's layer takes hardly longer than its
    block, which half as many FLOPs again would forbid.
    """
    program = TensorProgram(parameters.labels() | {"w": TensorLabel(parameters.vocabulary)})
    tokens, table = program.input("tokens", "s"), program.input("table", "wd")
    out = transformer_block(program, program.lookup("embed", "s,wd->sd", tokens, table))
    rms_norm(program, "norm3", "sd", out)
    name = f"llama-layer-{parameters.shards}x{parameters.pieces}"
    yield parameters.problem(program.graph(name, parameters.facts("llama-layer")))
