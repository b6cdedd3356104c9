"""Patches in manifests of a checkout: only their fields change, with a comment, or nothing does."""

import pytest
import yaml
from operator_stand_in import MODE, resource

from streamplace.errors import FormatError
from streamplace.flink.advise.equal_pods import PodPatch
from streamplace.flink.advise.patch_file import check_manifest, is_manifest, write_patch
from streamplace.flink.operator.merge_patch import merged

HEAD = ("predicted by streamplace to carry 9 tuples/s",)
WHY = "3 × half for 12000 tuples/s"
SLOTS = "taskmanager.numberOfTaskSlots"
MANIFEST = """\
# The job of the counters.
apiVersion: v1
kind: Service
metadata: {name: count}
---
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata:
  name: count  # in all clusters
spec:
  flinkConfiguration:
    taskmanager.numberOfTaskSlots: "1"
    # how long we wait
    heartbeat.timeout: 20s
  taskManager:
    resource: {memory: "1024m", cpu: 1}  # small
  job:
    parallelism: 1  # streamplace: 2 × half for 9 tuples/s; was 3
    args: ["a # streamplace: b", 'c']
    upgradeMode: savepoint
"""


def patch(*changes):
    return PodPatch(HEAD, changes, WHY, "flink", "count")


PATCH = patch(
    ("taskManager/resource/cpu", 0.5, "was 1"),
    ("taskManager/resource/memory", "2048m", "was 1024m"),
    (f"flinkConfiguration/{SLOTS}", "2", "was 1"),
    (f"flinkConfiguration/{MODE}", "TASKS", ""),
    ("job/parallelism", 6, "was 1"),
)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fields_of_a_manifest_change_in_their_lines(tmp_path, end):
    """All other lines, comments and documents stay."""
    path = tmp_path / "count.yaml"
    path.write_bytes(MANIFEST.replace("\n", end).encode())
    assert is_manifest(path)
    check_manifest(path, "flink", "count")
    write_patch(PATCH, path)
    text = path.read_bytes().decode()
    old, new = MANIFEST.splitlines(), text.splitlines()
    assert set(old) - set(new) == {old[11], old[15], old[17]}
    assert set(new) - set(old) == {
        f'    {SLOTS}: "2"  # streamplace: {WHY}; was 1',
        f'    {MODE}: "TASKS"  # streamplace: {WHY}',
        f'    resource: {{memory: "2048m", cpu: 0.5}}  # small  # streamplace: {WHY}; was 1024m',
        f"    parallelism: 6  # streamplace: {WHY}; was 1",
    }
    before = [*yaml.safe_load_all(MANIFEST)]
    assert [*yaml.safe_load_all(text)] == [
        before[0],
        merged(before[1], {"spec": PATCH.document["spec"]}),
    ]


def test_a_new_file_is_a_patch_and_is_written_again(tmp_path):
    path = tmp_path / "patch.yaml"
    for _ in range(2):
        assert not is_manifest(path)
        write_patch(PATCH, path)
    document = yaml.safe_load(path.read_text())
    assert document == PATCH.document
    assert merged(resource().spec, document["spec"])["job"]["parallelism"] == 6


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: count  #", "name: other  #", "no manifest of FlinkDeployment flink/count"),
        ("name: count  #", "name: count\n  namespace: b  #", "no manifest of FlinkDeployment"),
        ("parallelism: 1", "parallelism: {{ .Values.parallelism }}", "is not valid YAML"),
        ("  job:", "  job: &job", "its fields cannot be changed one by one"),
        ("    resource: {", "    resources: {", "no line to change for taskManager/resource/cpu"),
        ('"1024m"', "|\n      1024m", "is not valid YAML"),
        ("cpu: 1}", "cpu: [1]}", "no line to change for taskManager/resource/cpu"),
        ("parallelism: 1", "parallelism: >\n      1", "no line to change for job/parallelism"),
    ],
)
def test_a_file_that_cannot_be_changed_line_by_line_is_refused_and_stays(tmp_path, old, new, words):
    path = tmp_path / "count.yaml"
    content = MANIFEST.replace(old, new)
    if "&job" in new:  # a mapping that another document part shares
        content += "  other: *job\n"
    path.write_text(content)
    with pytest.raises(FormatError, match=words) as refusal:
        write_patch(PATCH, path)
    assert "\n" not in str(refusal.value)
    assert path.read_text() == content


def test_a_file_of_another_resource_is_refused_before_a_job_is_measured(run, tmp_path):
    path = tmp_path / "count.yaml"
    path.write_text(MANIFEST)
    for address, words in {
        "kubernetes:flink/other": "no manifest of FlinkDeployment flink/other",
        "http://localhost:1": "is for the patch of a FlinkDeployment",
    }.items():
        told = run("flink", "advise", "--rest", address, "--rate", "2x", "-o", str(path))
        assert (told.status, words in told.err) == (2, True), told
    assert path.read_text() == MANIFEST
