"""The reporter in pods by a ConfigMap, and the page on jobs of Flink's operator."""

import json
import shlex
import shutil
from base64 import b64decode
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from flink_clusters import measured_at_once
from operator_stand_in import reconciled, resource, specification
from pods import NAMESPACE
from test_docs import blocks

from streamplace.flink.cpu import threads
from streamplace.flink.cpu.reporter import JAR, jar_path
from streamplace.flink.measure.windows import JobWindows
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.mounting import CONFIG_MAP, reporter_files, reporter_patch
from streamplace.flink.operator.resource import rest_of
from streamplace.flink.rest.client import FlinkError

PAGE = Path(__file__).parents[2] / "docs/how-to/kubernetes.md"
IN_POD = "org.apache.flink.kubernetes.taskmanager.KubernetesTaskExecutorRunner"
LEAST_CORES = 0.005
"""Below this CPU, errors of a subtask say nothing."""
OWN = {
    "containers": [
        {"name": "beside"},
        {"name": "flink-main-container", "image": "own", "volumeMounts": [{"name": "state"}]},
    ],
    "volumes": [{"name": "state"}],
}


def test_the_config_map_holds_the_jar():
    document = json.loads(reporter_files(resource())["reporter.json"])
    assert b64decode(document["binaryData"][JAR]) == Path(jar_path()).read_bytes()
    assert document["metadata"]["namespace"] == "flink"


@pytest.mark.parametrize("template", [None, {"spec": OWN}])
def test_a_template_keeps_what_it_has_and_is_patched_once(template):
    own = resource(podTemplate=template, flinkConfiguration={"metrics.reporters": "prom"})
    spec = merged(own.spec, reporter_patch(own))
    pod = spec["podTemplate"]["spec"]
    (main,) = (row for row in pod["containers"] if row["name"] == "flink-main-container")
    assert [mount["name"] for mount in main["volumeMounts"]][-1] == "streamplace-reporter"
    assert [volume["name"] for volume in pod["volumes"]][-1] == "streamplace-reporter"
    assert spec["flinkConfiguration"]["metrics.reporters"] == "prom,streamplace"
    if template:
        assert pod["containers"][0] == {"name": "beside"}
        assert main["image"] == "own"
        assert len(main["volumeMounts"]) == len(pod["volumes"]) == 2
    again = resource(**{key: spec[key] for key in ("podTemplate", "flinkConfiguration")})
    assert merged(again.spec, reporter_patch(again)) == again.spec


def test_reporters_that_no_list_names_go_on():
    """Flink starts all that are configured, but with a list, only those."""
    own = resource(flinkConfiguration={"metrics.reporter.prom.port": "9249"})
    assert "metrics.reporters" not in reporter_patch(own)["flinkConfiguration"]


@pytest.mark.parametrize("part", ["jobManager", "taskManager"])
def test_a_template_of_one_kind_of_pods_is_refused(part):
    """The operator would merge its lists with the common ones by position."""
    with pytest.raises(FlinkError, match=part):
        reporter_patch(resource(**{part: {"podTemplate": {"spec": OWN}}}))


@pytest.mark.parametrize("template", [None, {"spec": OWN}])
def test_a_template_in_a_file_is_not_replaced(template):
    """The operator ignores it where the specification has a template."""
    file = {"kubernetes": {"pod-template-file.taskmanager": "/opt/pod.yaml"}}
    own = resource(flinkConfiguration=file, podTemplate=template)
    with nullcontext() if template else pytest.raises(FlinkError, match="pod-template-file"):
        reporter_patch(own)


@pytest.mark.slow
@pytest.mark.xdist_group("kubernetes")
def test_the_commands_of_the_page_do_what_it_says(pods, context, run, tmp_path):
    """Each patch is taken up, and the reporter is used after the first one."""
    spec = specification(**{"taskmanager.numberOfTaskSlots": "1"})
    spec["job"] |= {"args": ["20000", "1000"], "parallelism": 2}
    spec["taskManager"]["resource"]["cpu"] = 0.5
    sources = []
    with reconciled(pods, "count", spec, runs=True) as operator:
        for block in blocks(PAGE):
            if block.title.endswith(".toml"):
                Path(block.title).write_text(block.text)
            for line in block.text.splitlines() if block.language == "sh" else ():
                program, *words = shlex.split(line)
                if program == "streamplace":
                    done = run(*words, *(["--yes"] if "move" in words else []))
                    assert done.status == 0, (line, done)
                    sources += [
                        t for t in ("thread dumps", "reporter in") if t in done.out + done.err
                    ]
                elif program == "kubectl":
                    pods.kubectl(*words)
                    operator.await_stable()
    assert sources[:2] == ["thread dumps", "reporter in"]
    assert NAMESPACE in (tmp_path / "plan" / "patch.yaml").read_text()


@pytest.mark.slow
@pytest.mark.xdist_group("kubernetes")
def test_cpu_by_a_mounted_reporter_is_that_of_the_threads(
    pods, context, log_jar, tmp_path, monkeypatch
):
    """Within 5 % in the median over subtasks; threads as the machine of the pods sees them."""
    shutil.copy(log_jar, pods.home / "usrlib" / "log.jar")
    spec = specification(**{"taskmanager.numberOfTaskSlots": "2"})
    spec["job"] |= {
        "jarURI": "local:///opt/flink/usrlib/log.jar",
        "entryClass": "LogJob",
        "args": ["3000"],
        "parallelism": 2,
    }
    own = resource()
    (tmp_path / CONFIG_MAP).write_text(reporter_files(own)[CONFIG_MAP])
    pods.kubectl("apply", "--filename", str(tmp_path / CONFIG_MAP))
    with reconciled(pods, "count", merged(spec, reporter_patch(own)), runs=True):
        rest = rest_of(NAMESPACE, "count")
        (job,) = rest.live_jobs()
        rest.wait_running(job, 120.0)
        JobWindows(rest, job).add(30.0)  # code is compiled
        with monkeypatch.context() as machine:
            machine.setattr(threads, "TASK_MANAGER", IN_POD)
            near = JobWindows(rest, job)
        far = JobWindows(rest, job)
        assert near.processes
        assert not far.processes
        here, there = measured_at_once(near, far, 30.0)
    errors = []
    for task in near.tasks:
        for (_, true), (_, reported) in zip(
            here.subtasks[task.id], there.subtasks[task.id], strict=True
        ):
            assert not true.source
            assert not reported.source
            if true.cores >= LEAST_CORES:
                errors.append(abs(reported.cores / true.cores - 1))
    print(sorted(errors))
    assert len(errors) >= len(near.tasks)
    assert np.median(errors) < 0.05
