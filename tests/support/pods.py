"""A real Kubernetes whose pods are processes of this machine, on which stock Flink deploys itself.

Each JobManager and TaskManager is a pod in namespaces and a cgroup of its own. streamplace reaches
their REST interface only, by the address of a service.
"""

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import httpx
from flink_clusters import awaited

from streamplace.flink.local.session import find_java
from streamplace.flink.rest.client import FlinkError, Rest

VARIABLE = "STREAMPLACE_KUBERNETES"
WHY_SKIPPED = f"needs a Kubernetes for tests: {VARIABLE} set to a folder with up.py (CONTRIBUTING)"
OPERATOR = "STREAMPLACE_OPERATOR"
"""Variable with the folder of a real operator for Flink: its jars, conf/ and crds/."""
NAMESPACE = "flink"
MAIN, SESSION_MAIN = (
    "org.apache.flink.client.cli.CliFrontend",
    "org.apache.flink.kubernetes.cli.KubernetesSessionCli",
)
COUNT = ("CountJob", "local:///opt/flink/usrlib/count-job.jar")
TEMPLATE = "kubernetes.pod-template-file.default"
STATE = "/state"
"""Folder of savepoints in all pods, which this machine does not have."""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Clusters of seconds are not worth the second compiler."""
SETTINGS = {
    "kubernetes.namespace": NAMESPACE,
    "kubernetes.service-account": "flink",
    "kubernetes.container.image.ref": "flink:tests",
    "kubernetes.rest-service.exposed.type": "ClusterIP",
    **dict.fromkeys(("env.java.opts.jobmanager", "env.java.opts.taskmanager"), JAVA_OPTIONS),
    "jobmanager.memory.process.size": "1024m",
    "taskmanager.memory.process.size": "1024m",
    "metrics.fetcher.update-interval": "500",
    "execution.checkpointing.savepoint-dir": f"file://{STATE}",
}
START_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class PodCluster:
    """A Kubernetes cluster, and the Flink whose image its pods have."""

    work: Path  # folder of its files and logs
    home: Path  # Flink with its scripts, and the jar of a job in usrlib
    java: tuple[str, ...]  # command line of Java with Flink's classes
    gateway: str  # address of this machine for its pods

    @contextmanager
    def application(self, name, *arguments, of=COUNT, **settings):
        """REST interface and job of an application, which counts, while the block runs.

        ``of``: its main class and its jar.
        """
        begin = (MAIN, "run", "-t", "kubernetes-application", "-c", of[0])
        end = (of[1], *arguments)
        with self._deployed(name, settings, begin, end) as rest:
            yield rest, self._running(rest)

    @contextmanager
    def session(self, name, *arguments, job=None, **settings):
        """REST interface of a session cluster, and a job that counts numbers on it, likewise.

        ``job``: id that the job gets.
        """
        with self._deployed(name, settings, (SESSION_MAIN,)) as rest:
            jar = rest.upload(self.home / "usrlib" / "count-job.jar")
            request = {"entryClass": "CountJob", "programArgsList": [*arguments]}
            rest.post(f"/jars/{jar}/run", request | ({} if job is None else {"jobId": job}))
            yield rest, self._running(rest)

    def call(self, method, path, document=None):
        """Answer of the API server."""
        config = json.loads((self.work / "kubeconfig").read_text())
        server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        answer = httpx.request(
            method,
            server["server"] + path,
            json=document,
            headers={
                "Authorization": f"Bearer {user['token']}",
                **({"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}),
            },
            verify=ssl.create_default_context(cafile=server["certificate-authority"]),
            timeout=60.0,  # pods that are busy share the machine with it
            trust_env=False,
        )
        answer.raise_for_status()
        return answer.json()

    def kubectl(self, *arguments):
        """What kubectl prints."""
        command = [os.environ[VARIABLE] + "/bin/kubeall", "kubectl", *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.work / "kubeconfig")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def stopped(self, name, seconds):
        """Stop a process of Kubernetes for some seconds, from the beginning of the block."""
        process, _ = json.loads((self.work / "pids.json").read_text())[name]
        timer = Timer(seconds, os.kill, (process, signal.SIGCONT))
        os.kill(process, signal.SIGSTOP)
        timer.start()
        try:
            yield
        finally:
            timer.join()

    @contextmanager
    def _deployed(self, name, settings, begin, end=()):
        """Let Flink deploy itself, and delete all of it when the block ends."""
        given = SETTINGS | {"kubernetes.cluster-id": name} | settings
        if TEMPLATE not in given:
            given[TEMPLATE] = str(self.template())
        options = [f"-D{key}={value}" for key, value in given.items()]
        deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"
        service = f"/api/v1/namespaces/{NAMESPACE}/services/{name}-rest"
        environment = {
            "KUBECONFIG": str(self.work / "kubeconfig"),
            "FLINK_CONF_DIR": str(self.home / "conf"),
            "FLINK_HOME": str(self.home),
        }
        try:
            done = subprocess.run(
                [*self.java, *begin, *options, *end],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=START_SECONDS,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            address = self.call("GET", service)["spec"]["clusterIP"]
            rest = Rest(f"http://{address}:8081")
            awaited(lambda: _answers(rest), START_SECONDS)
            yield rest
        finally:
            with suppress(httpx.HTTPStatusError):
                self.call("DELETE", deployment, {"propagationPolicy": "Foreground"})
                awaited(lambda: not self._left(name), START_SECONDS)

    def _left(self, name):
        """Pods of a deployment; on a node that is lost, nothing but force removes them."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        pods: list[Any] = self.call("GET", f"{path}?labelSelector=app%3D{name}")["items"]
        for pod in pods:
            if (self.work / "lost" / pod["spec"].get("nodeName", "")).is_file():
                with suppress(httpx.HTTPStatusError):
                    self.call("DELETE", f"{path}/{pod['metadata']['name']}?gracePeriodSeconds=0")
        return pods

    def template_spec(self, given=None):
        """Specification of all pods, which share a folder, with what a template gives."""
        mount = {"name": "state", "mountPath": STATE}
        shared = self.work / "state"
        shared.mkdir(exist_ok=True)
        spec = {
            "containers": [{"name": "flink-main-container", "volumeMounts": [mount]}],
            "volumes": [{"name": "state", "hostPath": {"path": str(shared)}}],
        }
        for key, rows in (given or {}).get("spec", {}).items():
            names = {row["name"] for row in rows}
            spec[key] = [*rows, *(row for row in spec.get(key, ()) if row["name"] not in names)]
            if key == "containers":
                mounts = rows[0].get("volumeMounts", [])
                mounts = [*mounts, *([] if mount in mounts else [mount])]
                spec[key][0] = {**rows[0], "volumeMounts": mounts}
        return spec

    def template(self, given=None):
        """File of a template of pods."""
        template = self.work / "template.yaml"
        document = {"apiVersion": "v1", "kind": "Pod", "spec": self.template_spec(given)}
        template.write_text(json.dumps(document))
        return template

    def _running(self, rest):
        """Id of the only job, of which all subtasks run."""
        awaited(rest.live_jobs, START_SECONDS)
        (job,) = rest.live_jobs()
        rest.wait_running(job, START_SECONDS)
        return job


def _answers(rest):
    with suppress(FlinkError):
        rest.jobs()
        return True
    return False


@contextmanager
def kubernetes(flink, folder):
    """Start Kubernetes while the block runs."""
    up, number = Path(os.environ[VARIABLE]) / "up.py", os.getpid() % 200
    home = _home(flink, folder)
    work, subnet = folder / "kubernetes", f"10.244.{number}"
    beside = (
        *("--port", str(20_000 + 5 * number), "--bridge", f"kbr{number}"),
        *("--subnet", subnet, "--service-range", f"10.{number}.0.0/24"),
    )
    if operator := os.environ.get(OPERATOR):
        beside = (*beside, "--operator", operator)
    command = [sys.executable, "-B", str(up)]
    try:
        begin = [*command, "up", str(work), "--flink", str(home), *beside]
        done = subprocess.run(begin, capture_output=True, text=True, timeout=START_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        java = [find_java(), "-Xmx256m", *flink.java_options()]
        classes = ":".join(map(str, flink.jars))
        yield PodCluster(work, home, (*java, "-cp", classes), f"{subnet}.1")
    finally:
        subprocess.run([*command, "down", str(work)], capture_output=True, timeout=START_SECONDS)


def _home(flink, folder):
    """Flink as its image has it: the libraries, with scripts from the package of PyFlink."""
    home, wheels = folder / "flink", folder / "wheels"
    pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    only = ("--only-binary=:all:", "--python-version=3.11")  # one of those that there are
    package = f"apache-flink=={flink.version}"
    subprocess.run([*pip, str(wheels), *only, package], check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    shutil.copytree(flink.home, home, copy_function=os.symlink)
    with zipfile.ZipFile(wheel) as file:
        for member in file.infolist():
            member.filename = member.filename.removeprefix("pyflink/")
            if member.filename.startswith(("bin/", "conf/")):
                Path(file.extract(member, home)).chmod(0o755)
    (home / "usrlib").mkdir()
    sample = Path(os.environ[VARIABLE]) / "samples" / "count-job.jar"
    shutil.copy(sample, home / "usrlib")
    return home
