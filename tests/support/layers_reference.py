"""Layers of torch in float64 of numpy."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def linear(layer, x):
    """W x + b of a layer."""
    bias = 0 if layer.bias is None else parameter(layer.bias)
    return parameter(layer.weight) @ x + bias


def parameter(tensor):
    return tensor.detach().double().numpy()


def lstm(gates, cell):
    i, f, o, g = np.split(gates, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell
