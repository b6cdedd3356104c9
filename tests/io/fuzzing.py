"""Valid documents, ways to spoil them, and what must hold of every answer."""

import json

from hypothesis import strategies as st

from streamplace.errors import StreamplaceError

GRAPH = {
    "name": "g",
    "attributes": {"split": "train", "copies": 3, "share": 0.5, "real": True},
    "operators": [
        {"name": "src", "ipt": 10, "payload": "1 kB", "rate": "10 k/s", "kind": "source"},
        {"name": "join", "ipt": 2.5, "parallelism": 2, "requires": ["gpu"], "memory": "2 GB"},
        {
            "name": "sink",
            "window": {"size": 2, "advance": 1, "base": 1, "factor": 0.5, "limit": 9},
        },
    ],
    "streams": [
        {"from": "src", "to": "join", "selectivity": 0.5, "payload": 7},
        {"from": "join", "to": "sink", "partitioning": "hash"},
        {"from": "src", "to": "sink", "payload": "3 B"},
    ],
}
PLACEMENT = {
    "graph": "g",
    "placer": "single",
    "relative_throughput": 0.5,
    "assignment": {"src": "d0", "join": "d1", "sink": "d0"},
}
CLUSTER = {
    "bandwidth": "1000 Mbps",
    "latency": 0.001,
    "overhead": "1 us",
    "gap": 0,
    "devices": [
        {"name": "d", "count": 2, "mips": "2500 MIPS", "cores": 4, "memory": "16 GB"},
        {"name": "gpu", "tags": ["gpu"], "egress": "10 Gbps", "ingress": 1e10},
    ],
    "links": [{"from": "d0", "to": "gpu", "bandwidth": 1e8, "latency": "20 ms"}],
}
CONSTRAINTS = {
    "pin": {"src": "d0"},
    "colocate": [["join", "sink"]],
    "exlocate": [["src", "sink"]],
    "allowed": {"join": ["d0", "d1"]},
}

odd_numbers = [0, -1, 3, 1.5, -0.0, float("nan"), float("inf"), 1e308, 5e-324, 10**18, 10**400]
odd_texts = ["", " ", "src", "sink", "d0", "nobody", "from", "a\nb", "\0", "\ud800", "\ufeff"]
odd_quantities = ["1000 Mbpz", "-1 kB", "1e999 B", "inf", "nan", "١ kB", "x" * 1000]
odd_shapes = [None, True, False, [], {}, [[[]]], ["src", "src"], ["src", 1], [None] * 3]
odd_tables = [{"a": {"b": {}}}, {"size": 0, "advance": 0}]
odd_values = st.sampled_from(odd_numbers + odd_texts + odd_quantities + odd_shapes + odd_tables)
spoilers = st.lists(
    st.tuples(
        st.integers(0, 1000),
        st.integers(0, 5),
        odd_values | st.text() | st.integers() | st.floats(),
    ),
    min_size=10,
    max_size=10,
)
scratches = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 4), st.binary(min_size=1, max_size=4)),
    min_size=10,
    max_size=10,
)


def spoiled(document, place, way, value):
    """Copy of a document with one of its values replaced, removed, renamed, doubled or wrapped."""
    copy = json.loads(json.dumps(document))
    slots = list(_slots(copy))
    holder, key = slots[place % len(slots)]
    if way <= 1:
        holder[key] = value
    elif way == 2:
        del holder[key]
    elif way == 3:
        holder[key] = [holder[key]]
    elif isinstance(holder, list):
        holder.insert(0, holder[key] if way == 4 else value)
    else:
        holder[str(value)] = holder.pop(key) if way == 4 else holder[key]
    return copy


def scratched(content, place, way, junk):
    """Copy of a text with bytes inserted, overwritten, cut off, removed or doubled."""
    at = place % len(content)
    head, tail = content[:at], content[at:]
    return {
        0: head + junk + tail,
        1: head + junk + tail[len(junk) :],
        2: head,
        3: head + tail[len(junk) * 7 :],
        4: head + tail[:30] + tail,
    }[way]


def to_json(document):
    """Text that keeps what no JSON writer should let pass: NaN, surrogates."""
    return json.dumps(document, ensure_ascii=False).encode(errors="surrogatepass")


def to_toml(document):
    """TOML with everything in inline tables."""
    lines = [f"{_toml(key)} = {_toml(value)}" for key, value in document.items()]
    return "\n".join(lines).encode(errors="surrogatepass")


def answer(parse, content, where="here: "):
    """What a reader makes of a text: a value, or None after an error that can be shown."""
    try:
        return parse(content)
    except StreamplaceError as error:
        message = str(error)
        assert where in message, message
        assert message.isprintable(), repr(message)
        assert len(message) < 1200, message
        return None


def _slots(node):
    """Every place in a document that holds a value."""
    if isinstance(node, dict | list):
        for key, child in list(node.items() if isinstance(node, dict) else enumerate(node)):
            yield node, key
            yield from _slots(child)


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "1979-05-27T07:32:00Z" if value is None else repr(value)
