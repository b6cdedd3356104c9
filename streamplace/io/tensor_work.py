"""Floating-point operations of operators in ONNX and OpenVINO, from the shapes of tensors."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Tensor(NamedTuple):
    """Shape of a tensor, and bytes per element: 0 if unknown, 0.5 for four bits."""

    shape: tuple[int, ...]
    item: float

    @property
    def elements(self) -> float:
        """Number of elements."""
        return float(math.prod(self.shape)) if self.item else 0.0

    @property
    def size(self) -> float:
        """Bytes."""
        return self.elements * self.item


class Call(NamedTuple):
    """Inputs, attributes and outputs of an operator."""

    taken: Sequence[Tensor]
    attributes: Mapping[str, Any]
    made: Sequence[Tensor]

    @property
    def results(self) -> float:
        """Number of output elements."""
        return sum(tensor.elements for tensor in self.made)


def _convolution(
    weights: int = 1, first: int = 1, *, is_transposed: bool = False
) -> Callable[[Call], float]:
    """Product of each result, or each input of a transposed one, with the weights of a channel.

    ``weights`` is the input with the weights; their dimensions count from ``first`` on.
    """

    def work(call: Call) -> float:
        values = call.taken[0].elements if is_transposed else call.results
        return 2 * values * math.prod(call.taken[weights].shape[first:])

    return work


def _matmul(call: Call) -> float:
    factor = call.taken[0].shape
    is_turned = call.attributes.get("transA") and len(factor) > 1
    return 2 * call.results * factor[-2 if is_turned else -1]


def _attention(call: Call) -> float:
    """Products of queries and keys, and weighted sums of values."""
    keys = call.taken[1].shape[-2]
    for earlier in call.taken[4:5]:  # keys of earlier calls in ONNX, a single number in OpenVINO
        keys += sum(earlier.shape[-2:-1])
    return 2 * keys * (call.taken[0].elements + call.made[0].elements)


def _recurrent(weights: int, lengths: int = 2) -> Callable[[Call], float]:
    """Product with both weights at every step of every sequence.

    ``weights`` is the input with the first weights, before the second. The first ``lengths``
    dimensions of input 0 are the batch and, except in a cell, the sequence.
    """

    def work(call: Call) -> float:
        steps = math.prod(call.taken[0].shape[:lengths])
        return 2.0 * steps * (call.taken[weights].elements + call.taken[weights + 1].elements)

    return work


def _pool(call: Call) -> float:
    kernel: list[int] = call.attributes.get("kernel_shape", [])
    return call.made[0].elements * math.prod(kernel)  # a second output would be their indices


def _times(factor: int) -> Callable[[Call], float]:
    return lambda call: factor * call.made[0].elements


SCALED, NORMALISED = _times(2), _times(5)
"""Operations per element: a product and a sum; these with mean and variance."""
NORMALISATIONS = (
    "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "LRN",
    "MVN", "SoftMax", "Softmax", "LogSoftmax",
)  # fmt: skip
WITHOUT_WORK = (
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Shape", "Size", "ShapeOf",
    "Parameter", "Constant", "Result",
)  # fmt: skip

WORK: dict[str, Callable[[Call], float]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "Convolution"), _convolution()),
    "QLinearConv": _convolution(3),
    "GroupConvolution": _convolution(first=2),
    **dict.fromkeys(("ConvTranspose", "ConvolutionBackpropData"), _convolution(is_transposed=True)),
    "GroupConvolutionBackpropData": _convolution(first=2, is_transposed=True),
    **dict.fromkeys(("Attention", "ScaledDotProductAttention"), _attention),
    **dict.fromkeys(("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"), _matmul),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent(1)),
    "LSTMSequence": _recurrent(4),
    **dict.fromkeys(("GRUSequence", "RNNSequence"), _recurrent(3)),
    "LSTMCell": _recurrent(3, lengths=1),
    **dict.fromkeys(("GRUCell", "RNNCell"), _recurrent(2, lengths=1)),
    **dict.fromkeys(("MaxPool", "AveragePool", "AvgPool", "LpPool"), _pool),
    "BatchNormalization": SCALED,
    **dict.fromkeys(NORMALISATIONS, NORMALISED),
    **dict.fromkeys(WITHOUT_WORK, lambda call: 0.0),
}


def work_of(
    kind: str,
    attributes: Mapping[str, Any],
    taken: Sequence[Tensor],
    held: Sequence[bool],
    made: Sequence[Tensor],
) -> float:
    """Floating-point operations of an operator.

    Operators without an entry in `WORK` have one per element of their inputs or outputs, whichever
    are more. Weights do not count as inputs, and operators on weights alone have no work, as they
    are computed in advance.
    """
    if held and all(held):
        return 0.0
    call = Call(taken, attributes, made)
    usual = max([call.results, *(t.elements for t, w in zip(taken, held, strict=True) if not w)])
    try:
        return WORK[kind](call) if kind in WORK else usual
    except (IndexError, ValueError, TypeError):  # some shapes or inputs are missing
        return usual
