"""Work of operators of ONNX and OpenVINO."""

import math

import pytest

from streamplace.io.tensor_work import Tensor, work_of

TURNED = {"transA": True}
STATE, LENGTHS = (2, 1, 7), (2,)
"""States and lengths of two sequences, of seven hidden values."""


def work(kind, taken, made, **attributes):
    """Work of an operator on tensors of these shapes, of which none is a weight."""
    tensors = [Tensor(shape, 4) for shape in taken]
    return work_of(kind, attributes, tensors, [False] * len(taken), [Tensor(made, 4)])


@pytest.mark.parametrize(
    ("left", "right", "made", "attributes", "inner"),
    [
        ((8, 3, 5), (5, 4), (8, 3, 4), {}, 5),
        ((8, 5, 3), (5, 4), (8, 3, 4), TURNED, 5),
        ((5,), (5, 4), (4,), TURNED, 5),
    ],
    ids=["plain", "turned", "vector"],
)
def test_a_product_of_matrices_sums_over_its_inner_length(left, right, made, attributes, inner):
    """The last length of the left matrix, or the one before if the matrix is transposed."""
    assert work("MatMul", [left, right], made, **attributes) == 2 * math.prod(made) * inner


@pytest.mark.parametrize(
    ("kind", "before", "gates", "steps"),
    [
        ("LSTM", [(9, 2, 3)], 4, 18),
        ("LSTMSequence", [(2, 9, 3), STATE, STATE, LENGTHS], 4, 18),
        ("GRUSequence", [(2, 9, 3), STATE, LENGTHS], 3, 18),
        ("RNNSequence", [(2, 9, 3), STATE, LENGTHS], 1, 18),
        ("LSTMCell", [(2, 3), (2, 7), (2, 7)], 4, 2),
        ("GRUCell", [(2, 3), (2, 7)], 3, 2),
        ("RNNCell", [(2, 3), (2, 7)], 1, 2),
    ],
)
def test_recurrent_operators_multiply_with_all_weights_at_every_step(kind, before, gates, steps):
    weights = [(1, gates * 7, 3), (1, gates * 7, 7)]
    assert work(kind, [*before, *weights], (2, 7)) == 2 * steps * gates * 7 * (3 + 7)


@pytest.mark.parametrize(
    ("kind", "taken", "keys"),
    [
        ("ScaledDotProductAttention", [(2, 3, 7, 4), (2, 3, 9, 4), (2, 3, 9, 4), (7, 9), ()], 9),
        ("Attention", [(2, 3, 7, 4), (2, 1, 9, 4), (2, 1, 9, 4)], 9),
        ("Attention", [(2, 7, 12), (2, 9, 12), (2, 9, 12), (), (2, 3, 5, 4), (2, 3, 5, 4)], 9 + 5),
    ],
    ids=["OpenVINO", "ONNX", "ONNX with earlier keys, heads beside one another"],
)
def test_attention_compares_queries_with_keys(kind, taken, keys):
    """Of two sequences with seven queries, each of three heads of four values."""
    made = (2, 7, 12) if len(taken[0]) == 3 else taken[0]
    assert work(kind, taken, made) == 2 * keys * (2 * 7 * 12) * 2


def test_pooling_counts_values_and_not_their_indices():
    """Of new versions of OpenVINO, and of ONNX on request, it returns both."""
    taken, values, indices = (
        Tensor((1, 3, 8, 8), 4),
        Tensor((1, 3, 4, 4), 4),
        Tensor((1, 3, 4, 4), 8),
    )
    for made in ([values], [values, indices]):
        assert work_of("MaxPool", {"kernel_shape": [2, 2]}, [taken], [False], made) == 3 * 16 * 4


def test_a_transposed_convolution_in_groups_counts_the_channels_of_a_group():
    taken = [(1, 6, 8, 8), (2, 3, 5, 3, 3)]
    assert work("GroupConvolutionBackpropData", taken, (1, 10, 10, 10)) == 2 * 6 * 64 * 5 * 9


@pytest.mark.parametrize(
    ("kind", "taken", "expected"),
    [
        ("LayerNormalization", [(2, 3, 6), (6,)], 5 * 2 * 3 * 6),
        ("ReduceSum", [(2, 3, 6)], 2 * 3 * 6),
        ("Reshape", [(2, 3, 6), (2,)], 0),
    ],
)
def test_others_count_what_they_take(kind, taken, expected):
    assert work(kind, taken, (2, 3, 6)) == expected
