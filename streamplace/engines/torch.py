"""PyTorch script that runs a model operation by operation on the devices of its placement."""

import shlex

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import python_docstring, python_table
from streamplace.io.modules import SOURCE

SCRIPT = '''\
"""{title}

Use: python FILE {example}
     says where each device of the placement is; names that PyTorch knows need no word. Or

         from placement import Placed
         model = Placed({{{first}: "cuda:0"}})
         outputs = model(*inputs)

Check: the command runs the example inputs on the whole model as well, where its code puts it, and
compares the outputs, which on CPUs have to be the same. A GPU rounds in another way than a CPU.
"""

import importlib
import math
import operator
import os
import sys
import warnings

import torch
from torch.fx.node import map_arg
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

SOURCE = {source}

# Device of every node of the exported graph.
NODES = {nodes}


def load():
    """Model, positional and named example inputs."""
    sys.path.insert(0, os.getcwd())
    path, name = SOURCE.split(":")
    made = getattr(importlib.import_module(path), name)
    answer = made if isinstance(made, torch.nn.Module) else made()
    pair = isinstance(answer, tuple) and len(answer) == 2
    model, inputs = answer if pair else (answer, answer.example_inputs)
    if isinstance(inputs, dict):
        return model.eval(), (), inputs
    return model.eval(), tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {{}}


class Placed:
    """The model with its operations on several devices.

    ``devices`` says which device of PyTorch each device of the placement is.
    """

    def __init__(self, devices=None, loaded=None):
        model, args, kwargs = loaded or load()
        names = dict.fromkeys(NODES.values())
        self.devices = {{name: torch.device((devices or {{}}).get(name, name)) for name in names}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, of its next release
            whole = torch.export.export(model, args, kwargs, strict=False)
            exported = whole.run_decompositions({{}})
        self.program = exported
        nodes = exported.graph.nodes
        self.nodes = [n for n in nodes if n.op != "call_function" or n.users]
        self.device_of = {{}}
        self.device_of.update((node, self._device_of(node)) for node in self.nodes)
        tensors = {{**exported.state_dict, **exported.constants}}
        target = {{spec.arg.name: spec.target for spec in exported.graph_signature.input_specs}}
        self.inputs = [n for n in self.nodes if n.op == "placeholder" and target[n.name] is None]
        self.weights = {{
            node: self._at_users(node, tensors[target[node.name]])
            for node in self.nodes
            if node.op == "placeholder" and target[node.name] is not None
        }}
        self.last = {{used: node for node in self.nodes for used in node.all_input_nodes}}
        self.sent = 0

    def __call__(self, *args, **kwargs):
        """Outputs of the model; each stays on the device that computed it."""
        self.sent = 0
        values = {{node: dict(copies) for node, copies in self.weights.items()}}
        for node, value in zip(self.inputs, tree_leaves((args, kwargs)), strict=True):
            values[node] = {{self.device_of[node]: _moved(value, self.device_of[node])}}
        with torch.no_grad():
            for node in self.nodes:
                if node.op == "get_attr":
                    values[node] = {{None: getattr(self.program.graph_module, node.target)}}
                elif node.op == "call_function":
                    values[node] = {{self.device_of[node]: self._run(node, values)}}
                    for used in node.all_input_nodes:
                        if self.last[used] is node:
                            del values[used]
        return self._outputs(values)

    def _device_of(self, node):
        """Device of a node; what picks one of several results stays with them."""
        if node.name in NODES:
            return self.devices[NODES[node.name]]
        if node.target is operator.getitem:
            return self.device_of[node.all_input_nodes[0]]
        if node.op == "call_function":
            sys.exit(f"{{SOURCE}} has changed, {{node.name}} is new; import and place it again")
        return next(iter(self.devices.values()))

    def _at_users(self, node, tensor):
        devices = {{self.device_of[user] for user in node.users if user in self.device_of}}
        return {{device: tensor.to(device) for device in devices}}

    def _run(self, node, values):
        device = self.device_of[node]
        arguments = map_arg((node.args, node.kwargs), lambda used: self._at(used, device, values))
        args, kwargs = tree_map_only(torch.device, lambda _: device, arguments)
        return node.target(*args, **kwargs)

    def _at(self, node, device, values):
        """Value of a node on a device, sent there once."""
        copies = values[node]
        if None in copies:
            return copies[None]
        if device not in copies:
            copies[device] = _moved(copies[self.device_of[node]], device)
            self.sent += sum(t.nbytes for t in tree_leaves(copies[device]) if _is_tensor(t))
        return copies[device]

    def _outputs(self, values):
        specs = self.program.graph_signature.output_specs
        outputs = [
            next(iter(values[output].values())) if isinstance(output, torch.fx.Node) else output
            for output, spec in zip(self.nodes[-1].args[0], specs, strict=True)
            if spec.kind.name == "USER_OUTPUT"
        ]
        return tree_unflatten(outputs, self.program.call_spec.out_spec)


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _moved(value, device):
    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)


def main(words):
    """Run the example inputs on the placed and on the whole model."""
    loaded = load()
    model, args, kwargs = loaded
    devices = dict(word.rsplit("=", 1) for word in words)
    placed = Placed(devices, loaded)
    outputs = tree_flatten(placed(*args, **kwargs))[0]
    torch.backends.mha.set_fastpath_enabled(False)  # fused attention rounds otherwise
    with torch.no_grad():
        expected = tree_flatten(model(*args, **kwargs))[0]
    pairs = zip(outputs, expected, strict=True)
    apart = max((distance(output, wanted) for output, wanted in pairs), default=0.0)
    only_cpu = all(device.type == "cpu" for device in placed.devices.values())
    count = f"{{len(NODES)}} operators on {{len(placed.devices)}} devices"
    print(f"{{count}}, {{placed.sent}} bytes sent between them")
    same = "yes" if not apart else "no" if only_cpu or apart > 1 else "yes, but for rounding"
    print(f"outputs equal those of the whole model: {{same}}")
    return 1 if same == "no" else 0


def distance(output, wanted):
    """Distance of two outputs: 0 if they are equal, at most 1 if half of their digits are."""
    if not _is_tensor(output):
        return 0.0 if output == wanted else math.inf
    output, wanted = output.cpu(), wanted.cpu()
    if torch.equal(output, wanted):
        return 0.0
    if output.shape != wanted.shape or not (output.is_floating_point() or output.is_complex()):
        return math.inf
    digits = torch.finfo(output.dtype).eps ** 0.5
    error = float((output - wanted).abs().max() / wanted.abs().max()) / digits
    return error if math.isfinite(error) else math.inf


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''


@export("torch", suffix=".py", of=SOURCE)
def as_torch(deployment: Deployment) -> str:
    """PyTorch script that runs a model operation by operation on the devices of its placement."""
    placement = deployment.placement
    names = dict.fromkeys(placement.values())
    targets = [f"cuda:{i}" for i in range(len(names))]
    words = shlex.join(f"{name}={to}" for name, to in zip(names, targets, strict=True))
    return SCRIPT.format(
        title=python_docstring(f"{deployment.title}, by streamplace."),
        example=python_docstring(words),
        first=python_docstring(repr(next(iter(names)))),
        source=repr(str(deployment.problem.graph.attributes[SOURCE])),
        nodes=python_table({name.rpartition("/")[2]: device for name, device in placement.items()}),
    )
