"""Layers of torch in float64 of numpy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sigmoid(z: NDArray[Any]) -> NDArray[Any]:
    return 1 / (1 + np.exp(-z))


def linear(layer: Any, x: NDArray[Any]) -> NDArray[Any]:
    """W x + b of a layer."""
    bias = 0 if layer.bias is None else parameter(layer.bias)
    return parameter(layer.weight) @ x + bias


def parameter(tensor: Any) -> NDArray[Any]:
    return tensor.detach().double().numpy()


def lstm(gates: NDArray[Any], cell: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    i, f, o, g = np.split(gates, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell
