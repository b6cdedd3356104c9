"""How many tuples each stream carries, from what the tasks at its ends read and wrote."""

from collections.abc import Mapping, Sequence

Pair = tuple[str, str]


def flows(
    streams: Sequence[Pair], read: Mapping[str, float], written: Mapping[str, float]
) -> tuple[dict[int, float], set[int]]:
    """Tuples/s of each stream by its number, and the numbers of those that had to be guessed.

    A task's reads are the sum over its inputs. So a stream that is the only input of its target
    carries what that reads; one that is its source's only output carries what that writes; the last
    unknown input carries the rest. What still is unknown is assumed to share that rest in
    proportion to what the senders write, and told.

    Examples
    --------
    >>> streams = [("src", "a"), ("src", "b"), ("a", "sink"), ("b", "sink")]
    >>> flows(streams, {"a": 9.0, "b": 8.0, "sink": 20.0}, {"a": 4.0, "b": 16.0})
    ({0: 9.0, 1: 8.0, 2: 4.0, 3: 16.0}, set())
    """
    inputs = _numbers(streams, end=1)
    outputs = _numbers(streams, end=0)
    known: dict[int, float] = {}
    for e, (source, target) in enumerate(streams):
        if len(inputs[target]) == 1:
            known[e] = read.get(target, 0.0)
        elif len(outputs[source]) == 1:
            known[e] = written.get(source, 0.0)
    guessed: set[int] = set()
    for target, numbers in inputs.items():
        left = [e for e in numbers if e not in known]
        rest = max(0.0, read.get(target, 0.0) - sum(known.get(e, 0.0) for e in numbers))
        weights = [written.get(streams[e][0], 0.0) for e in left]
        total = sum(weights) or 1.0
        for e, weight in zip(left, weights, strict=True):
            known[e] = rest if len(left) == 1 else rest * weight / total
        guessed.update(left if len(left) > 1 else ())
    return dict(sorted(known.items())), guessed


def _numbers(streams: Sequence[Pair], *, end: int) -> dict[str, list[int]]:
    """Numbers of the streams at each task."""
    found: dict[str, list[int]] = {}
    for e, stream in enumerate(streams):
        found.setdefault(stream[end], []).append(e)
    return found


def payloads(
    streams: Sequence[Pair], carried: Mapping[int, float], read_bytes: Mapping[str, float]
) -> tuple[dict[int, float], set[int]]:
    """Bytes per tuple of each stream, and the numbers of those that are a mean of several.

    What a task reads is known in bytes; what its senders write is not, for Flink counts that once
    for every receiver. Where inputs mix, a sender's payload is known from its other streams.

    Examples
    --------
    >>> streams = [("u", "a"), ("u", "b"), ("v", "b")]
    >>> payloads(streams, {0: 10.0, 1: 10.0, 2: 5.0}, {"a": 1000.0, "b": 1500.0})
    ({0: 100.0, 1: 100.0, 2: 100.0}, set())
    """
    inputs = _numbers(streams, end=1)
    sizes = {
        numbers[0]: _ratio(read_bytes.get(target, 0.0), carried[numbers[0]])
        for target, numbers in inputs.items()
        if len(numbers) == 1
    }
    of_sender = {streams[e][0]: size for e, size in sizes.items()}
    mixed: set[int] = set()
    for target, numbers in inputs.items():
        left = [e for e in numbers if e not in sizes]
        for e in [e for e in left if streams[e][0] in of_sender]:
            sizes[e] = of_sender[streams[e][0]]
            left.remove(e)
        told = sum(carried[e] * sizes[e] for e in numbers if e in sizes)
        rest = max(0.0, read_bytes.get(target, 0.0) - told)
        sizes.update(dict.fromkeys(left, _ratio(rest, sum(carried[e] for e in left))))
        mixed.update(left if len(left) > 1 else ())
    return dict(sorted(sizes.items())), mixed


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
