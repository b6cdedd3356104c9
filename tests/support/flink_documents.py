"""What a Flink answers: documents of TaskManagers, jobs, and whole clusters."""

from collections.abc import Mapping
from typing import Any

from streamplace.engines.names import resource


def task_manager(device: str, devices: list[str], managed: int = 100) -> dict[str, Any]:
    """A TaskManager that is prepared for spreading over some devices, by one group."""
    limits = {f"lim-0-{other}": 1e6 if other == device else 1e12 for other in devices}
    offered = {resource(device): 100.0} | ({"lim-0": 1e6, **limits} if limits else {})
    resources = {"managedMemory": managed, "extendedResources": offered}
    return {
        "id": device,
        "path": f"pekko.tcp://flink@{device}:6122/user/rpc/taskmanager_0",
        "totalResource": resources,
        "freeResource": resources,
        "hardware": {"cpuCores": 2},
        "memoryConfiguration": {},
    }


def job(name: str, state: str, vertices: dict[str, str]) -> dict[str, Any]:
    """A job's document; vertices with their states."""
    rows = [{"id": v, "name": v, "parallelism": 1, "status": s} for v, s in vertices.items()]
    return {"name": name, "state": state, "schedulerType": "Default", "vertices": rows}


def jobs(states: Mapping[str, str]) -> dict[str, Any]:
    """The list of all jobs, by their ids."""
    return {"jobs": [{"id": name, "status": state} for name, state in states.items()]}


def config(settings: Mapping[str, str]) -> list[dict[str, str]]:
    """Settings of a JobManager."""
    return [{"key": key, "value": value} for key, value in settings.items()]


def failed_by(stack_trace: str) -> dict[str, Any]:
    """Exceptions of a job that has failed once."""
    return {"exceptionHistory": {"entries": [{"stacktrace": stack_trace}]}}


def healthy(*devices: str) -> dict[str, Any]:
    """Answers of a cluster of these devices on which the job "new" comes up."""
    managers = [task_manager(device, [*devices]) for device in devices]
    return {
        "GET /jobmanager/config": config({"rest.port": "8081"}),
        "GET /taskmanagers": {"taskmanagers": managers},
        **{f"GET /taskmanagers/{device}": {"allocatedSlots": []} for device in devices},
        "GET /jobs": jobs({}),
        "GET /jobs/overview": {"jobs": []},
        "POST /jars/upload": {"filename": "/tmp/web/jar-1"},
        "POST /jars/jar-1/run": {"jobid": "new"},
        "DELETE /jars/jar-1": {},
        "GET /jobs/new": job("new", "RUNNING", {"map": "RUNNING"}),
    }


KEPT = {"externalization": {"enabled": True, "delete_on_cancellation": False}}
"""A job's policy by which its checkpoints outlive it."""
DELETED = {"externalization": {"enabled": True, "delete_on_cancellation": True}}
"""One by which they outlive its failure, but not that it is cancelled."""

JOB = "a" * 32
TASK_MANAGER = task_manager("dev-0", []) | {
    "path": "pekko.tcp://flink@127.0.0.1:6122/user/rpc/taskmanager_0",
    "memoryConfiguration": {"totalProcessMemory": 704643072},
}
ANSWERS: dict[str, Any] = {
    "GET /taskmanagers": {"taskmanagers": [TASK_MANAGER]},
    "GET /jobs": jobs({JOB: "RUNNING"}),
    f"GET /jobs/{JOB}": {
        "name": "shop",
        "state": "RUNNING",
        "schedulerType": "Default",
        "vertices": [
            {"id": "v0", "name": "Source: src", "parallelism": 1, "status": "RUNNING"},
            {"id": "v1", "name": "a -> (b, c)", "parallelism": 1, "status": "RUNNING"},
        ],
    },
    f"GET /jobs/{JOB}/plan": {
        "plan": {
            "nodes": [
                {"id": "v0", "description": "Source: src<br/>"},
                {
                    "id": "v1",
                    "description": "a<br/>:- b<br/>+- c<br/>",
                    "inputs": [{"id": "v0", "ship_strategy": "HASH"}],
                },
            ]
        }
    },
    f"GET /jobs/{JOB}/exceptions": failed_by("a.B: c"),
    f"GET /jobs/{JOB}/vertices/v0": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    f"GET /jobs/{JOB}/vertices/v1": {"subtasks": [{"taskmanager-id": "dev-0"}]},
    "GET /taskmanagers/dev-0/metrics": [{"id": "Status.JVM.CPU.Time", "value": "5000000"}],
    f"GET /jobs/{JOB}/vertices/v0/subtasks/metrics": [
        {"id": "Source__src.numRecordsOut", "sum": 5.0},
        {"id": "numRecordsOut", "sum": 5.0},
        {"id": "numBytesOut", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": "NaN"},
    ],
    f"GET /jobs/{JOB}/vertices/v1/subtasks/metrics": [
        {"id": "numRecordsIn", "sum": 5.0},
        {"id": "numBytesIn", "sum": 500.0},
        {"id": "accumulateBusyTimeMs", "sum": 100},
    ],
    "GET /jobmanager/config": config({"jobmanager.scheduler": "default"}),
}
"""What a Flink with one job answers; what it counts, it counts per look."""
