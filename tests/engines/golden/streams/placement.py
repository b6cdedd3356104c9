"""shop: 6 operators in 3 PEs on 3 devices.

Use: 1. An administrator tags the hosts, once (skip tags that exist):

            streamtool mktag dev_box0
            streamtool chhost --add --tags dev_box0 HOST_OF_dev_box0
            streamtool mktag dev_box1
            streamtool chhost --add --tags dev_box1 HOST_OF_dev_box1
            streamtool mktag dev_gpu
            streamtool mktag gpu
            streamtool chhost --add --tags dev_gpu,gpu HOST_OF_dev_gpu

     2. Name your streams and sinks as below, and submit with

            from placement import NAMES, job_config, place

            topology.name_to_runtime_id = NAMES.get  # before the first stream
            place({'clicks': …})  # every stream and sink under its operator's name
            submit("DISTRIBUTED", topology, job_config().add({}))

Check: check(job) is empty when every operator of the running job is in its PE, on a host with
its tags; streamtool lspes --long shows the same.
"""

import json
from pathlib import Path

from streamsx.topology.context import JobConfig

# Host tags of each PE → its operators.
PES = {
    ('dev_box0',): ['clicks', 'parse'],
    ('dev_box1',): ['orders', 'join', 'sink'],
    ('dev_gpu', 'gpu'): ['score'],
}

# Operators whose names are no SPL identifiers → the names that they run under.
NAMES = {
}

# Groups that must share a PE, and groups of which no two may share a host.
COLOCATE = [['clicks', 'parse']]
EXLOCATE = [['join', 'score']]


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
    wrong, running = {}, {operator.name: operator.get_pe() for operator in job.get_operators()}
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
