"""An instance of the library as plain lists; reads the native format without streamplace."""

import json
from itertools import product
from pathlib import Path


def bits(speed):
    """Bits per second of a speed; slow ones are written with their unit."""
    return float(str(speed).removesuffix(" bps"))


class Instance:
    """Rates, times and links of an instance.

    rate[v] tuples/s arrive at operator v when all sources run at full rate; seconds[v][d] is the
    core time of one on device d. streams are (sender, receiver, tuples/s, bytes per tuple).
    """

    def __init__(self, path):
        document = json.loads(Path(path).read_text())
        graph, cluster = document["graph"], document["cluster"]
        rows, devices = graph["operators"], cluster["devices"]
        self.operators = [row["name"] for row in rows]
        self.devices = [row["name"] for row in devices]
        self.cores = [row.get("cores", 1) for row in devices]
        self.parallelism = [row.get("parallelism", 1) for row in rows]
        self.gap, self.overhead = cluster.get("gap", 0), cluster.get("overhead", 0)
        self.latency = self._links(cluster, "latency", 0)
        self.wire = self._links(cluster, "bandwidth", 1e9, lambda speed: 8 / bits(speed))
        self.egress, self.ingress = (
            [8 / bits(row.get(key, "inf")) for row in devices] for key in ("egress", "ingress")
        )
        speeds = [
            row.get("mips", 2500) - row.get("reserved", 0) / row.get("cores", 1) for row in devices
        ]
        self.seconds = document.get("seconds") or [
            [row.get("ipt", 0) / (speed * 1e6) for speed in speeds] for row in rows
        ]
        self._flow(rows, graph)
        allowed = document.get("constraints", {}).get("allowed", {})
        self.allowed = [
            [d for d, name in enumerate(self.devices) if name in allowed.get(v, self.devices)]
            for v in self.operators
        ]

    def _links(self, cluster, key, default, convert=lambda x: x):
        row = {name: d for d, name in enumerate(self.devices)}
        table = [[convert(cluster.get(key, default)) for _ in row] for _ in row]
        for link in cluster.get("links", []):
            if key in link:
                table[row[link["from"]]][row[link["to"]]] = convert(link[key])
        return table

    def _flow(self, rows, graph):
        row = {name: v for v, name in enumerate(self.operators)}
        streams = [(row[s["from"]], row[s["to"]], s) for s in graph["streams"]]
        every = [r.get("fires", graph.get("fires", "each")) == "all" for r in rows]
        self.sources = [r.get("rate", 0) for r in rows]
        into = [[] for _ in rows]
        for u, v, stream in streams:
            into[v].append((u, stream.get("selectivity", 1)))
        self.rate, self.order, left = [0.0] * len(rows), [], set(range(len(rows)))
        while left:
            ready = sorted(v for v in left if not any(u in left for u, _ in into[v]))
            for v in ready:
                tuples = [share * self.rate[u] for u, share in into[v]]
                total = max(tuples, default=0) if every[v] else sum(tuples)
                self.rate[v] = total or (self.sources[v] if not tuples else 0)
            self.order += ready
            left -= set(ready)
        self.streams = [
            (
                u,
                v,
                s.get("selectivity", 1) * self.rate[u],
                s.get("payload", rows[u].get("payload", 0)),
            )
            for u, v, s in streams
        ]

    def load(self, v, d):
        """Share of device d that operator v needs at full rate."""
        return self.rate[v] * self.seconds[v][d] / self.cores[d]

    def one_pass(self):
        """Seconds of operators [v][d] and of streams [e][a, b] in one pass."""
        span, k = 1 / max(self.sources), range(len(self.devices))
        work = [[span * r * s for s in row] for r, row in zip(self.rate, self.seconds, strict=True)]
        send = [
            {(a, b): self._sending(span * tuples, size, a, b) for a, b in product(k, k)}
            for _, _, tuples, size in self.streams
        ]
        return work, send

    def _sending(self, tuples, size, a, b):
        if a == b:
            return 0.0
        byte = max(self.wire[a][b], self.egress[a], self.ingress[b])
        return self.latency[a][b] + tuples * (size * byte + self.gap + 2 * self.overhead)

    def write(self, path, devices, starts=None):
        """Write a placement file; operators that start earlier come first.

        An operator that may not run on its device runs on the one that is fastest for it.
        """
        devices = [
            d if d in allowed else min(allowed, key=seconds.__getitem__)
            for d, allowed, seconds in zip(devices, self.allowed, self.seconds, strict=True)
        ]
        document = {
            "assignment": {
                name: self.devices[d] for name, d in zip(self.operators, devices, strict=True)
            }
        }
        if starts is not None:
            position = {v: i for i, v in enumerate(self.order)}
            line = sorted(position, key=lambda v: (starts[v], position[v]))
            priority = {self.operators[v]: len(line) - i for i, v in enumerate(line)}
            document |= {"queue": "order", "priority": priority}
        Path(path).write_text(json.dumps(document))
