"""Valid documents of the native forms, and a document for any schema."""

import json

GRAPH = {
    "name": "g",
    "attributes": {"split": "train", "copies": 3, "share": 0.5, "real": True},
    "operators": [
        {"name": "src", "ipt": 10, "payload": "1 kB", "rate": "10 k/s", "kind": "source"},
        {"name": "join", "ipt": 2.5, "parallelism": 2, "requires": ["gpu"], "memory": "2 GB"},
        {"name": "sink", "window": {"size": 2, "advance": 1, "base": 1, "factor": 0.5, "limit": 9}},
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
    "overhead_per_byte": "1 ns",
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
TWICE = "\0twice"
"""Ends a name that shall stand in a JSON text a second time."""
_ESCAPED = json.dumps(TWICE)[1:-1]


def to_json(document):
    """Text that keeps what no JSON writer should let pass: NaN, surrogates, names twice."""
    text = json.dumps(document, ensure_ascii=False)
    return text.replace(_ESCAPED, "").encode(errors="surrogatepass")


def to_toml(document):
    """TOML with everything in inline tables."""
    lines = [f"{_toml(key)} = {_toml(value)}" for key, value in document.items()]
    return "\n".join(lines).replace(_ESCAPED, "").encode(errors="surrogatepass")


def document_of(schema, rng):
    """Return a document that a JSON Schema allows, about half of its optional fields left out."""
    return _value(schema, schema.get("$defs", {}), rng)


def _value(schema, known, rng):
    if "$ref" in schema:
        return _value(known[schema["$ref"].rsplit("/", 1)[1]], known, rng)
    if "anyOf" in schema:
        return _value(rng.choice(schema["anyOf"]), known, rng)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "type" not in schema:  # whatever: it is checked by a function
        return {"a": 1}
    if schema["type"] == "null":
        return None
    if schema["type"] == "array":
        return [_value(schema["items"], known, rng) for _ in range(rng.randint(1, 3))]
    if schema["type"] == "object":
        return _table(schema, known, rng)
    if "exclusiveMaximum" in schema:
        return schema["exclusiveMaximum"] / 2
    least = int(schema.get("minimum", 0))
    return {"string": rng.choice("abc"), "boolean": True}.get(schema["type"], least + 1)


def _table(schema, known, rng):
    needed = schema.get("required", ())
    fields = {
        name: _value(field, known, rng)
        for name, field in schema.get("properties", {}).items()
        if name in needed or rng.random() < 0.5
    }
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        fields |= {name: _value(others, known, rng) for name in "abc"[: rng.randint(1, 3)]}
    return fields


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
