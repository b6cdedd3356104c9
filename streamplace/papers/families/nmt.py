"""Machine translation: the nmt graphs of Placeto and the traversal-order study.

An encoder and a decoder of LSTM cells with attention, unrolled for some steps. Operations have
the names of appendix A of the study, so that lexicographic order means the same. The published
graphs are lost; sizes are as in Table I of the study: 16 to 30 steps give its longest paths of
41 to 69.
"""

from collections.abc import Iterator

from streamplace.families.registry import family
from streamplace.model.graph import Attribute
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator
from streamplace.papers.families.neural import NeuralNet, NeuralNets

STEPS = (16, 30)
DRAWS = 3
"""Draws of steps, whose maximum counts: most of the published networks are long."""
BATCH, HIDDEN, VOCABULARY = 64, 512, 17_000
STATE = BATCH * HIDDEN
CELL_FLOPS = 2.0 * BATCH * 2 * HIDDEN * 4 * HIDDEN


@family("nmt", NeuralNets)
def nmt(parameters: NeuralNets, seed: int) -> Iterator[Problem]:
    """Translation networks of 1 or 2 layers on equal devices, after the traversal-order study."""
    for number in range(parameters.count):
        draws = generator(seed, number).integers(*STEPS, size=DRAWS, endpoint=True)
        steps, layers = int(draws.max()), 1 + number % 2
        net = NeuralNet()
        _write(net, steps, layers)
        facts: dict[str, Attribute] = {"family": "nmt", "steps": steps, "layers": layers}
        yield net.problem(f"nmt-{number:02d}", parameters.devices, facts)


def _write(net: NeuralNet, steps: int, layers: int) -> None:
    states = [_words(net, "encoder", net.add("sources", "input", [], 0, steps * BATCH), steps)]
    states *= steps
    ends = []
    for layer in range(layers):
        states = _layer(net, f"encoder/depth_{layer}", states, [])
        ends.append(states[-1])
    memory_flops = 2.0 * steps * STATE * HIDDEN
    memory = net.add("encoder/attention/Reshape_1", "concat", states, memory_flops, steps * STATE)
    bridge = net.add("encoder/bridge", "concat", ends, 0, layers * STATE)
    targets = net.add("targets", "input", [], 0, steps * BATCH)
    states = [_words(net, "decoder", targets, steps)] * steps
    for layer in range(layers):
        states = _layer(net, f"decoder/depth_{layer}", states, [bridge])
    _losses(net, states, memory, targets)


def _words(net: NeuralNet, part: str, tokens: int, steps: int) -> int:
    """Row of the embedded tokens, of all steps."""
    table = net.add(f"{part}/embedding/read", "weights", [], 0, VOCABULARY * HIDDEN)
    embedded = net.add(f"{part}/embedding_lookup", "lookup", [tokens, table], 0, steps * STATE)
    return net.add(f"{part}/slicing_layer/strided_slice", "slice", [embedded], 0, STATE)


def _layer(net: NeuralNet, name: str, below: list[int], start: list[int]) -> list[int]:
    """Rows of the states of a layer, step by step."""
    weights = net.add(f"{name}/lstm_cell/bias/read", "weights", [], 0, 8 * HIDDEN**2)
    states: list[int] = []
    for t, row in enumerate(below):
        inputs = [row, *(states[-1:] or start), weights]
        states.append(net.add(f"{name}/static_rnn_{t}/add_1", "lstm", inputs, CELL_FLOPS, STATE))
    return states


def _losses(net: NeuralNet, states: list[int], memory: int, targets: int) -> None:
    """Attention, scores of all words and loss of every step, and their sum."""
    weights = net.add("decoder/softmax/kernel/read", "weights", [], 0, HIDDEN * VOCABULARY)
    context, scores = 4.0 * len(states) * STATE, 2.0 * STATE * VOCABULARY
    losses = []
    for t, state in enumerate(states):
        name = f"decoder/attention_decoder/attn_{t}/concat"
        attended = net.add(name, "attention", [state, memory], context, STATE)
        name = f"decoder/softmax/logits_{t}"
        logits = net.add(name, "matmul", [attended, weights], scores, BATCH * VOCABULARY)
        name = f"decoder/loss/xent_{t}"
        losses.append(net.add(name, "loss", [logits, targets], BATCH * VOCABULARY, BATCH))
    net.add("loss/Sum", "sum", losses, BATCH * len(losses), 1)
