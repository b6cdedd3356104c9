"""The reporter in pods with an unchanged image: a ConfigMap with its jar, and a patch.

The pod template mounts the jar, of some kilobytes, below Flink's ``plugins/``, and Flink's
configuration names it.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from streamplace.flink.cpu.reporter import JAR, jar_path
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.resource import CONFIGURATION, FlinkResource, flat, nested
from streamplace.flink.rest.client import FlinkError
from streamplace.io.files import json_text

NAME = "streamplace-reporter"
CONFIG_MAP, PATCH = "reporter.json", "patch.json"
"""Files of the ConfigMap and of the patch."""
TEMPLATE_FILE = "kubernetes.pod-template-file"
"""Prefix of Flink's settings of template files, which a template of a specification replaces."""
MAIN = "flink-main-container"
REPORTERS = "metrics.reporters"
PLACE = f"/opt/flink/plugins/streamplace/{JAR}"


def reporter_files(resource: FlinkResource) -> dict[str, str]:
    """Files by name: a ConfigMap with the jar, and the merge patch that mounts it."""
    return {
        CONFIG_MAP: json_text(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": resource.namespace},
                "binaryData": {JAR: b64encode(Path(jar_path()).read_bytes()).decode()},
            }
        ),
        PATCH: json_text({"spec": reporter_patch(resource)}),
    }


def reporter_patch(resource: FlinkResource) -> dict[str, Any]:
    """Merge patch of the specification of a cluster that mounts the reporter and names it.

    A merge patch replaces lists, so it repeats those of the present template.
    """
    spec = resource.cluster["spec"]
    files = [key for key in flat(spec.get(CONFIGURATION) or {}) if key.startswith(TEMPLATE_FILE)]
    if files and not spec.get("podTemplate"):
        raise FlinkError(
            f"{files[0]} names the template of pods, which a podTemplate of the specification "
            f"would replace; mount {JAR} there by hand"
        )
    for part in ("jobManager", "taskManager"):
        pods = ((spec.get(part) or {}).get("podTemplate") or {}).get("spec") or {}
        if pods.get("volumes") or pods.get("containers"):
            raise FlinkError(
                f"{part}.podTemplate of the cluster has containers or volumes, which the operator "
                f"may merge with others by position; mount {JAR} there by hand"
            )
    template = (spec.get("podTemplate") or {}).get("spec") or {}
    containers = _with(template.get("containers") or (), {"name": MAIN})
    (main,) = (container for container in containers if container["name"] == MAIN)
    mount = {"name": NAME, "mountPath": PLACE, "subPath": JAR}
    main["volumeMounts"] = _with(main.get("volumeMounts") or (), mount)
    volume = {"name": NAME, "configMap": {"name": NAME}}
    settings = {"metrics.reporter.streamplace.factory.class": "CpuReporter"}
    if reporters := resource.configuration.get(REPORTERS):  # without a list, Flink starts all
        names = dict.fromkeys([*reporters.split(","), "streamplace"])
        settings[REPORTERS] = ",".join(names)
    volumes = _with(template.get("volumes") or (), volume)
    pods = {"podTemplate": {"spec": {"containers": containers, "volumes": volumes}}}
    patches = (nested(resource.setting_path(key), value) for key, value in settings.items())
    return reduce(merged, patches, pods)


def _with(rows: Sequence[Mapping[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """Copies of rows, with another row unless one has its name."""
    copies = [dict(other) for other in rows]
    return copies if any(other["name"] == row["name"] for other in copies) else [*copies, row]
