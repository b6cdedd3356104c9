"""IBM Streams from Python: a module for streamsx topologies, and a job configuration overlay."""

from textwrap import indent

from streamplace.engines.deployment import Deployment
from streamplace.engines.names import identifier
from streamplace.engines.registry import export
from streamplace.engines.spl import host_tags, tagging
from streamplace.engines.text import python_docstring, python_table
from streamplace.io.files import json_text

MODULE = '''\
"""{title}

Use: 1. An administrator tags the hosts, once (skip tags that exist):

{tagging}

     2. Name your streams and sinks as below, and submit with

            from placement import NAMES, job_config, place

            topology.name_to_runtime_id = NAMES.get  # before the first stream
            place({{{example}: …}})  # every stream and sink under its operator's name
            submit("DISTRIBUTED", topology, job_config().add({{}}))

Check: check(job) is empty when every operator of the running job is in its PE, on a host with
its tags; streamtool lspes --long shows the same.
{notes}"""

import json
from pathlib import Path

from streamsx.topology.context import JobConfig

# Host tags of each PE → its operators.
PES = {pes}

# Operators whose names are no SPL identifiers → the names that they run under.
NAMES = {names}

# Groups that must share a PE, and groups of which no two may share a host.
COLOCATE = {colocate}
EXLOCATE = {exlocate}


def place(logic):
    """Fuse streams and sinks, given by operator name, into their PEs and tie these to hosts."""
    for tags, names in PES.items():
        first, *others = [logic[name] for name in names]
        for one in (first, *others):
            one.resource_tags.update(tags)
        first.colocate(others)


def job_config():
    """Job configuration: the number of PEs; the tags decide where they run."""
    overlay = Path(__file__).with_name("job_config.json")
    return JobConfig.from_overlays(json.loads(overlay.read_text(encoding="utf-8")))


def check(job):
    """Operators of a running job that are not where they should be, and why."""
    wrong, running = {{}}, {{operator.name: operator.get_pe() for operator in job.get_operators()}}
    for tags, names in PES.items():
        for name in names:
            here, there = (running.get(NAMES.get(one, one)) for one in (name, names[0]))
            if here is None:
                wrong[name] = "does not run"
            elif not set(tags) <= set(here.get_resource().tags):
                wrong[name] = "runs on a host without the tags " + ", ".join(tags)
            elif there is not None and here.id != there.id:
                wrong[name] = "runs in another PE than " + names[0]
    return wrong
'''


@export("streams")
def as_streams(deployment: Deployment) -> dict[str, str]:
    """IBM Streams: a Python module for streamsx topologies and a job configuration overlay."""
    notes = (
        "\nSubtasks are placed one by one: each is a stream of its own.\n"
        if deployment.is_split
        else ""
    )
    operators = deployment.placement.operators
    names = {name: identifier(name) for name in operators if identifier(name) != name}
    pes = {tuple(tags): list(e.operators) for e, tags in host_tags(deployment).items()}
    module = MODULE.format(
        title=python_docstring(f"{deployment.title}."),
        tagging=indent("\n".join(tagging(deployment)), " " * 12),
        example=python_docstring(repr(operators[0])),
        notes=notes,
        pes=python_table(pes),
        names=python_table(names),
        colocate=repr([list(group) for group in deployment.colocated]),
        exlocate=repr([list(group) for group in deployment.exlocated]),
    )
    return {"placement.py": module, "job_config.json": _overlay(deployment)}


def _overlay(deployment: Deployment) -> str:
    """Return the overlay with the number of PEs."""
    tags = ", ".join(own for own, *_ in host_tags(deployment).values())
    document = {
        "comment": (
            f"{deployment.title}. Use: streamtool submitjob --jobConfig job_config.json SAB. "
            "It sets the number of PEs; which operator goes where stands in the program, see "
            f"placement.py or the SPL export (host tags {tags}). "
            "Check: streamtool lspes --long."
        ),
        "jobConfigOverlays": [
            {
                "deploymentConfig": {
                    "fusionScheme": "manual",
                    "fusionTargetPeCount": len(deployment.elements),
                }
            }
        ],
    }
    return json_text(document)
