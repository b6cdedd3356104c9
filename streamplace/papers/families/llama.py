"""Llama's transformer block, and Llama with a single layer, cut into shards: Doppler, appendix C.3.

Heads and the hidden layer are cut into shards, and the sequence into pieces: attention and the
feed-forward network are dealt to the devices by heads and columns, norms by pieces of the sequence.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from streamplace.errors import SettingError
from streamplace.families.parameters import parameter
from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.papers.families.sharded import Gpus, ShardedTensor, TensorLabel, TensorProgram


@dataclass(frozen=True, slots=True)
class Llama(Gpus):
    """Parameters of a transformer block; by default Llama's of 7 billion parameters."""

    sequence: int = parameter(4096, "number of tokens of a sequence", least=1, most=2**20)
    embedding: int = parameter(4096, "width of an embedding", least=1, most=2**20)
    heads: int = parameter(
        32, "number of attention heads; it must divide the embedding", least=1, most=2**12
    )
    hidden: int = parameter(11_008, "width of the feed-forward network", least=1, most=2**24)
    shards: int = parameter(
        4, "number of shards of the heads and the hidden layer", least=1, most=64
    )
    pieces: int = parameter(2, "number of shards of the sequence", least=1, most=64)

    def __post_init__(self) -> None:
        super(Llama, self).__post_init__()
        if self.embedding % self.heads:
            raise SettingError(
                f"heads is {self.heads}; it must divide the embedding of {self.embedding}"
            )

    def labels(self) -> dict[str, TensorLabel]:
        """Sequence s, all of it as keys t, embedding d, heads h of e features, hidden layer f."""
        return {
            "s": TensorLabel(self.sequence, self.pieces),
            "t": TensorLabel(self.sequence),
            "d": TensorLabel(self.embedding),
            "h": TensorLabel(self.heads, self.shards),
            "e": TensorLabel(self.embedding // self.heads),
            "f": TensorLabel(self.hidden, self.shards),
        }

    def facts(self, family: str) -> dict[str, Attribute]:
        """Attributes of the graph."""
        return {"family": family, "shards": self.shards, "pieces": self.pieces}


def transformer_block(program: TensorProgram, x: ShardedTensor) -> ShardedTensor:
    """Attention and a feed-forward network, each after a norm and beside a residual stream."""
    after = program.each("residual1", "sd,sd->sd", x, attention(program, x))
    return program.each("residual2", "sd,sd->sd", after, feed_forward(program, after))


def attention(program: TensorProgram, x: ShardedTensor) -> ShardedTensor:
    """Causal self-attention of many heads with rotary positions, after a norm."""
    angles, mask = program.input("angles", "se"), program.input("mask", "st")
    normed = rms_norm(program, "norm1", "sd", x)
    q, k, v = (
        program.einsum(name, "sd,dhe->she", normed, program.input(f"W{name}", "dhe"))
        for name in "qkv"
    )
    query = program.each("rope.q", "she,se->she", q, angles)
    key = program.each("rope.k", "she,se->she", k, angles)
    keys, values = program.select("keys", "the", key), program.select("values", "the", v)
    scores = program.einsum("scores", "she,the->hst", query, keys)
    masked = program.each("masked", "hst,st->hst", scores, mask)
    weights = program.softmax("softmax", "hst", masked)
    context = program.einsum("attention", "hst,the->she", weights, values)
    return program.einsum("Wo", "she,hed->sd", context, program.input("Wout", "hed"))


def feed_forward(program: TensorProgram, x: ShardedTensor) -> ShardedTensor:
    """SwiGLU: (silu(x·W1) ∘ x·W3)·W2, after a norm."""
    w1, w3, w2 = (
        program.input(name, labels) for name, labels in (("W1", "df"), ("W3", "df"), ("W2", "fd"))
    )
    normed = rms_norm(program, "norm2", "sd", x)
    gate = program.each("silu", "sf->sf", program.einsum("gate", "sd,df->sf", normed, w1))
    both = program.each("gated", "sf,sf->sf", gate, program.einsum("up", "sd,df->sf", normed, w3))
    return program.einsum("down", "sf,fd->sd", both, w2)


def rms_norm(program: TensorProgram, name: str, labels: str, x: ShardedTensor) -> ShardedTensor:
    """Divide by the root of the mean square over the last label, and scale: four operations."""
    rest = labels[:-1]
    squares = program.reduce(f"{name}.squares", f"{labels}->{rest}", "sum", x)
    root = program.each(f"{name}.root", f"{rest}->{rest}", squares)
    even = program.each(f"{name}.over", f"{labels},{rest}->{labels}", x, root)
    weight = program.input(f"{name}.weight", labels[-1])
    return program.each(f"{name}.scale", f"{labels},{labels[-1]}->{labels}", even, weight)


@family("llama-block", Llama)
def llama_block(parameters: Llama, seed: int) -> Iterator[Problem]:
    """A sharded transformer block of Llama 7B on equal GPUs, after Doppler; deterministic."""
    program = TensorProgram(parameters.labels())
    transformer_block(program, program.input("x", "sd"))
    name = f"llama-block-{parameters.shards}x{parameters.pieces}"
    yield parameters.problem(program.graph(name, parameters.facts("llama-block")))


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
