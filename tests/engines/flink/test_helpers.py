"""CPU of the threads that help tasks."""

import pytest

from streamplace.engines.flink.cpu.threads import (
    ThreadLoad,
    charged_to_tasks,
    cores_by_kind,
    java_itself,
)

SOURCE, MAP = "Source: in (1/1)#0", "Map (1/1)#0"


def loads(**cores: float) -> list[ThreadLoad]:
    """Threads of a TaskManager and their cores."""
    names = {
        "source": SOURCE,
        "map": MAP,
        "fetcher": f"Source Data Fetcher for {SOURCE}",
        "legacy": f"Legacy Source Thread - {SOURCE}",
        "flusher": f"OutputFlusher for {MAP}",
        "limiter": "flink-rate-limiter-thread-1",
        "cache": f"cache of {MAP}",
        "garbage": "VM Thread",
        "sweep": "Concurrent Mark-Sweep",
        "shenandoah": "Shenandoah GC T",
        "java": "flink-pekko.actor.default-dispatcher-4",
        "pool": "pool-3-thread-1",
        "network": "Flink Netty Client (0) Thread 0",
        "compiler": "C2 CompilerThread0",
    }
    return [ThreadLoad(names[name], taken) for name, taken in cores.items()]


@pytest.mark.parametrize(
    ("cores", "charged"),
    [
        # a legacy source works in such a thread alone
        ({"source": 0.1, "fetcher": 0.02, "legacy": 0.3, "flusher": 0.01}, (0.32, 0.01)),
        ({"source": 0.1, "limiter": 0.05}, (0.05, 0.0)),  # it does not say whose it is
        # a program can ask for the name of its subtask; connectors do, to name their threads
        ({"source": 0.1, "cache": 0.02}, (0.0, 0.02)),
        # unnamed ones beyond a little; the network and compilers are counted elsewhere
        ({"source": 0.3, "java": 0.04, "pool": 0.09, "network": 9, "compiler": 9}, (0.03, 0.01)),
        ({"source": 0.1, "java": 0.9, "pool": 0.05}, (0.0, 0.0)),
        # at twice the rate there is twice as much garbage
        ({"source": 0.3, "garbage": 0.04}, (0.03, 0.01)),
        ({"source": 0.3, "sweep": 0.02, "shenandoah": 0.02}, (0.03, 0.01)),
    ],
)
def test_threads_are_those_of_the_task_that_they_work_for(
    cores: dict[str, float], charged: tuple[float, float]
) -> None:
    """By their names, else in proportion to the tasks' CPU."""
    threads = loads(map=0.1, **cores)
    own = {load.name: load.cores for load in threads if load.name in (SOURCE, MAP)}
    found = charged_to_tasks(threads, own, {SOURCE: 1.0}, {})
    assert (found[SOURCE], found[MAP]) == pytest.approx(charged)


PRODUCER = "kafka-producer-network-thread | producer"


@pytest.mark.parametrize(
    ("thread", "charged"),
    [
        (f"{PRODUCER}-orders-0-15", [0.08, 0.0]),  # transactions of the first subtask
        (f"{PRODUCER}-7", [0.02, 0.06]),  # some sink's: by what they write
        ("kafka-admin-client-thread | orders-0", [0.04, 0.04]),  # a source's; there is none
    ],
)
def test_threads_of_kafka_clients_are_those_of_sinks_and_sources(
    thread: str, charged: list[float]
) -> None:
    """Of the subtask that a transactional client is called after, if it is."""
    writers = [f"out: Writer ({i}/2)#0" for i in (1, 2)]
    own = [ThreadLoad(name, 0.1) for name in writers] + [ThreadLoad(thread, 0.08)]
    sinks = dict(zip(writers, (100.0, 300.0), strict=True))
    found = charged_to_tasks(own, dict.fromkeys(writers, 0.1), {}, sinks)
    assert [found[name] for name in writers] == pytest.approx(charged)


def test_java_itself_is_the_mean_of_task_managers_with_subtasks() -> None:
    """Of its own threads and a little of others; where nothing runs, it uses less."""
    few = cores_by_kind(loads(java=0.02, pool=0.01, map=1))
    more = cores_by_kind(loads(java=0.04, pool=0.9, map=1))
    idle = cores_by_kind(loads(java=0.02, garbage=0.1, sweep=0.1, shenandoah=0.1))
    assert java_itself([few, more, idle]) == pytest.approx(0.06)
    assert java_itself([idle, {}]) == 0
