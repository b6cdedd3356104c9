"""Device maps for Accelerate: the device of each module of a PyTorch model.

A device map moves data at the beginning of a module. Between modules, an operation runs on the
device of its data; the code of the model itself begins on the main device, the first of the map.
"""

import json
from collections.abc import Iterator

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.errors import FormatError
from streamplace.io.files import json_text
from streamplace.io.modules import LOOSE, SOURCE, Modules, around
from streamplace.model.message_text import quoted

REMEDY = "import the model with --blocks, or export to torch, which can split modules"


@export("device-map", suffix=".json", of=SOURCE)
def as_device_map(deployment: Deployment) -> str:
    """Accelerate's device map: the outermost modules of a PyTorch model that are on one device."""
    graph, placement = deployment.problem.graph, deployment.placement
    modules = Modules(graph)
    device = [placement[name] for name in graph.operators.name]
    whole = dict(_whole(modules, device))
    split = [module for module in modules.direct if not _covered(module, whole)]
    main = _main(modules, device, split)
    for module in split:
        _check(modules, device, module, main)
    loose = [name for name in _loose(graph.attributes.get(LOOSE)) if not _covered(name, whole)]
    device_of = {**dict.fromkeys(loose, main), **whole}
    ordered = sorted(device_of.items(), key=lambda entry: entry[1] != main)
    plain = {name: int(on) if on.isdecimal() else on for name, on in ordered}
    return json_text(plain)


def _whole(modules: Modules, device: list[str]) -> Iterator[tuple[str, str]]:
    """Outermost modules with all operators on one device, and that device."""
    outermost: set[str] = set()
    for module, rows in modules.within.items():
        used = {device[row] for row in rows}
        outer = [path for path in around(module) if path != module]
        if len(used) == 1 and outermost.isdisjoint(outer):
            outermost.add(module)
            yield module, used.pop()


def _main(modules: Modules, device: list[str], split: list[str]) -> str:
    """Device at which inputs arrive: the device of their first reader in a split module."""
    memory = modules.graph.operators.memory
    for module in split:
        for row in modules.direct[module]:
            if modules.begins(row) or (memory[row] and not module):
                return device[row]
    return device[modules.within[""][0]]


def _check(modules: Modules, device: list[str], module: str, main: str) -> None:
    """Raise FormatError if the code of a module on several devices needs to move data."""
    operators = modules.graph.operators
    for row in modules.direct[module]:
        name, feeders = operators.name[row], modules.feeders[row]
        senders = {main if modules.is_input(u) else device[u] for u in feeders}
        holds = operators.memory[row] > 0
        where = quoted(module) if module else "the model"
        if holds and (module or device[row] != main):
            raise FormatError(
                f"operator {quoted(name)} on {quoted(device[row])} uses weights of {where}, which "
                f"is on several devices; {REMEDY}"
            )
        if not senders <= {device[row]}:
            other = next(sender for sender in sorted(senders) if sender != device[row])
            raise FormatError(
                f"operator {quoted(name)} on {quoted(device[row])} reads data from "
                f"{quoted(other)}, but {where} is on several devices, and a device map moves data "
                f"only at the start of a module; {REMEDY}"
            )


def _loose(note: object) -> list[str]:
    """Modules and tensors without computation, as recorded by the import."""
    try:
        names = json.loads(str(note or "[]"))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"attribute {LOOSE} is {quoted(note)}; import the model again")
    return names


def _covered(name: str, whole: dict[str, str]) -> bool:
    return any(outer in whole for outer in around(name))
