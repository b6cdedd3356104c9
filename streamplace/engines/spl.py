"""SPL (IBM Streams): host pools and placement configs for the operators' invocations.

Operators with the same ``partitionColocation`` are fused into one PE, and those with the same
``partitionExlocation`` never are; the first operator of every PE has the latter, so that PEs
which could be fused remain separate. Each PE's host is in a pool of one host, chosen by a tag.
"""

from collections.abc import Iterator

from streamplace.engines.deployment import Deployment, Element
from streamplace.engines.names import identifier
from streamplace.engines.registry import export
from streamplace.engines.text import comment, listed

APART = "streamplace"
"""Name of the groups that separate PEs and their hosts."""


def host_tags(deployment: Deployment) -> dict[Element, list[str]]:
    """Tags of the host of each PE, as identifiers: its own, and those that operators require."""
    own = {device: name.replace("-", "_") for device, name in deployment.resources.items()}
    return {e: [own[e.device], *map(identifier, e.tags)] for e in deployment.elements}


def tagging(deployment: Deployment) -> Iterator[str]:
    """Commands that tag the hosts, once per cluster."""
    for tags in host_tags(deployment).values():
        for tag in tags:
            yield f"streamtool mktag {tag}"
        yield f"streamtool chhost --add --tags {','.join(tags)} HOST_OF_{tags[0]}"


@export("spl", suffix=".spl")
def as_spl(deployment: Deployment) -> str:
    """IBM Streams SPL: host pools and a placement config for each operator's invocation."""
    pools = ",\n".join(f"  {_pool(tags)}" for tags in host_tags(deployment).values())
    return (
        f"{comment(_notes(deployment), '//')}\n"
        f"// In the main composite:\nconfig hostPool :\n{pools};\n\n"
        f"// In the operators' invocations:\n{''.join(_clauses(deployment))}"
    )


def _notes(deployment: Deployment) -> Iterator[str]:
    count = len(deployment.elements)
    yield f"{deployment.title}."
    yield ""
    yield "Use: 1. An administrator tags the hosts, once (skip tags that exist):"
    yield from (f"          {command}" for command in tagging(deployment))
    yield "     2. Copy each config clause below into the invocation of its operator, and the"
    yield "        hostPool clause into your main composite. Fusing alone guarantees neither that"
    yield "        PEs stay separate nor where they run; these clauses do."
    yield f"     3. streamtool submitjob -C fusionScheme=manual -C fusionTargetPeCount={count} SAB"
    yield "Check: streamtool lspes --long shows the operators and the host of every PE."
    if deployment.is_split:
        yield ""
        yield "Subtasks are placed one by one: invoke the operator once for each of them."
    for group in deployment.colocated:
        yield f"Must share a PE: {listed(group)}"
    for group in deployment.exlocated:
        yield f"Must not share a host: {listed(group)}"


def _clauses(deployment: Deployment) -> Iterator[str]:
    for element, (tag, *_) in host_tags(deployment).items():
        yield "\n" + comment([f"PE {element.number}, on {listed([element.device])}"], "//")
        clause = f'config placement : partitionColocation("{tag}"), host(Pool_{tag})'
        apart = f', partitionExlocation("{APART}"), hostExlocation("{APART}")'
        for i, name in enumerate(element.operators):
            yield f"{comment([listed([name])], '//')}{clause}{'' if i else apart};\n"


def _pool(tags: list[str]) -> str:
    listed_tags = ", ".join(f'"{tag}"' for tag in tags)
    return f"Pool_{tags[0]} = createPool({{size=1u, tags=[{listed_tags}]}}, Sys.Shared)"
