"""The paper's formulas, operator by operator, from a policy's parameters; slow and literal."""

import math

import torch

from streamplace.model.coarsening import finest_level
from streamplace.model.least_peak import peak_yardstick


class Reference:
    """The text of section 3 for one problem, in float64; its parameters have gradients."""

    def __init__(self, policy, problem, features, hops=2):
        state = policy.state_dict()
        self.parameters = {n: p.double().clone().requires_grad_() for n, p in state.items()}
        self.problem, self.hops = problem, hops
        self.features = list(torch.as_tensor(features).double())
        instance = problem.instance
        self.ends = list(zip(instance.source.tolist(), instance.target.tolist(), strict=True))
        self.n_devices = problem.n_devices
        if "decoder.devices" in self.parameters:
            self.n_devices = len(self.parameters["decoder.devices"])

    def has(self, layer):
        """Whether the policy has a layer."""
        return f"{layer}.weight" in self.parameters

    def linear(self, layer, x):
        """W x + b of a layer."""
        product = self.parameters[f"{layer}.weight"] @ x
        bias = f"{layer}.bias"
        return product + self.parameters[bias] if bias in self.parameters else product

    def graph_vectors(self):
        """Vectors of operators [N, W] in operator order, and of the graph [W] (§3.1)."""
        views = []
        tied = not self.has("encoder.hops.1.incoming")
        for forward in (True, False):
            h = self.features
            if tied:  # one W₁ and one W₂, of m rows: so h⁰ has m dimensions as well
                m = len(self.parameters["encoder.hops.0.incoming.bias"])
                h = [torch.cat([f, f.new_zeros(m - len(f))]) for f in h]
            for k in range(self.hops):
                hop = f"encoder.hops.{0 if tied else k}"
                h = [self.one_update(hop, h, v, forward) for v in range(len(h))]
            views.append(h)
        nodes = torch.stack([torch.cat([up, down]) for up, down in zip(*views, strict=True)])
        return nodes, torch.stack([self.linear("encoder.pool", h) for h in nodes]).amax(0)

    def one_update(self, hop, h, v, forward):
        """Equation 1 for one operator and one view."""
        arriving = []
        for u, w in self.ends:
            neighbour, here = (u, w) if forward else (w, u)
            if here == v:
                arriving.append(torch.tanh(self.linear(f"{hop}.incoming", h[neighbour])))
        nothing = torch.zeros_like(self.parameters[f"{hop}.incoming.bias"])
        mean = torch.stack(arriving).mean(0) if arriving else nothing
        return torch.tanh(self.linear(f"{hop}.update_view", torch.cat([h[v], mean])))

    def sequence_vectors(self, order):
        """Vectors of operators [N, W] in operator order, and of the graph [W], of B."""
        recurrent = self.parameters["encoder.recurrent"]
        state = cell = recurrent.new_zeros(recurrent.shape[1])
        nodes = {}
        for v in order:
            gates = self.linear("encoder.read", self.features[v])
            nodes[v] = state, cell = lstm(gates + recurrent @ state, cell)
        return torch.stack([nodes[v][0] for v in range(len(nodes))]), state

    def probabilities(self, placement, order):
        """P(d_v | decisions before) [N, D], in the order of decision, along a placement (§3.2)."""
        graph = self.has("encoder.pool")
        nodes, state = self.graph_vectors() if graph else self.sequence_vectors(order)
        described = self.has("decoder.read_state")
        devices = self.parameters.get("decoder.devices", torch.zeros(self.n_devices, 1))
        cell, previous = torch.zeros_like(state), devices.new_zeros(devices.shape[1])
        decided: dict[int, int] = {}
        rows = []
        for v in order:
            gates = self.linear("decoder.read", nodes[v])
            is_open = [self.is_open(d, decided) for d in range(self.n_devices)]
            features = self.described(v, decided, order) if described else None
            if features is not None:
                read = self.summary(v, decided, features, is_open)
                gates = gates + self.linear("decoder.read_state", read)
            else:
                gates = gates + self.linear("decoder.read_previous", previous)
            if self.has("decoder.read_upstream"):
                mean = self.upstream_mean(v, decided, devices)
                gates = gates + self.linear("decoder.read_upstream", mean)
            state, cell = lstm(gates + self.parameters["decoder.recurrent"] @ state, cell)
            attention = torch.stack([state @ h for h in nodes]).softmax(0)
            context = attention @ nodes
            hidden = self.linear("decoder.state_layer", state)
            hidden = hidden + self.linear("decoder.context_layer", context)
            if features is not None:
                hidden = hidden + self.linear("decoder.device_layer", features.t()).t()
            score = self.linear("decoder.output", hidden.relu().t()).t().flatten().exp()
            score = score * torch.tensor(is_open)
            rows.append(score / score.sum())
            decided[v] = placement[v]
            previous = devices[placement[v]]
        return torch.stack(rows)

    def log_probability(self, placement, order):
        """The logarithm of equation 2."""
        rows = self.probabilities(placement, order)
        return torch.stack([rows[t, placement[v]].log() for t, v in enumerate(order)]).sum()

    def upstream_mean(self, v, decided, devices):
        """D^(up)(v): mean embedding of the devices of v's upstream neighbours, once decided."""
        known = [devices[decided[u]] for u in {u for u, w in self.ends if w == v} if u in decided]
        return torch.stack(known).mean(0) if known else devices.new_zeros(devices.shape[1])

    def described(self, v, decided, order):
        """What every device is and holds [D, 20] before v is decided about: `devices.FEATURES`."""
        problem, n = self.problem, self.n_devices
        instance, unit = problem.instance, peak_yardstick(problem, finest_level(problem))
        load = torch.tensor(instance.load[:, instance.device_type] / unit)
        wire = torch.tensor(instance.seconds_per_byte / unit)
        usual = wire.sum() / max(n * (n - 1), 1)
        streams = list(zip(self.ends, instance.traffic.tolist(), strict=True))

        def held(places):
            """Loads of devices and links."""
            devices, links = torch.zeros(n).double(), torch.zeros(n, n).double()
            for u, device in places.items():
                devices[device] += load[u, device]
            for (u, w), traffic in streams:
                if u in places and w in places and places[u] != places[w]:
                    links[places[u], places[w]] += traffic * wire[places[u], places[w]]
            return devices, links

        def peak(places):
            return max(float(part.max()) for part in held(places))

        now, peak_now = held(decided), 0.0
        for t in range(len(decided) + 1):
            peak_now = max(peak_now, peak({u: decided[u] for u in order[:t]}))
        flow = [
            sum(t * usual for (u, w), t in streams if w == v and decided.get(u) == d)
            for d in range(n)
        ]
        away = (wire.sum(1) / max(n - 1, 1)).tolist()
        loose = [
            sum(
                t * away[d]
                for (u, w), t in streams
                if decided.get(u) == d and order.index(w) > order.index(u) and w not in decided
            )
            for d in range(n)
        ]
        upstream = {u for u, w in self.ends if w == v and u in decided}
        least = load.amin(1)
        coming = sum(float(least[u]) for u in order[len(decided) :])
        free = float((1 - now[0]).clamp(min=0).sum())
        rows = []
        for d in range(n):
            after = float(now[0][d] + load[v, d])
            into = [
                (b, sum(t for (u, w), t in streams if w == v and decided.get(u) == b) * wire[b, d])
                for b in range(n)
                if b != d and flow[b] > 0
            ]
            link = max((float(now[1][b, d] + more) for b, more in into), default=0.0)
            rows.append(
                [
                    now[0][d],
                    after,
                    max(0.0, after - 1),
                    link,
                    max(0.0, link - 1),
                    flow[d],
                    flow[d] / sum(flow) if sum(flow) > 0 else 0.0,
                    sum(decided[u] == d for u in upstream) / max(len(upstream), 1),
                    sum(more for _, more in into),
                    loose[d],
                    sum(t * away[d] for (u, _), t in streams if u == v),
                    d not in decided.values(),
                    bool(decided) and decided[order[len(decided) - 1]] == d,
                    least[v] / load[v, d],
                    max(0.0, max(after, link) - peak_now),
                    max(0.0, 1 - after) / (coming + 1e-3),
                    peak_now,
                    coming / (float(least.sum()) + 1e-9),
                    coming / (free + 1e-3),
                    len(set(decided.values())) / n,
                ]
            )
        return torch.tensor(rows, dtype=torch.float64).clamp(max=4)

    def summary(self, v, decided, features, is_open):
        """Mean, least and most over the open devices, and the mean over the devices upstream."""
        among = features[torch.tensor(is_open)]
        upstream = [decided[u] for u in {u for u, w in self.ends if w == v} if u in decided]
        of_upstream = [features[d] * is_open[d] for d in upstream]
        mean = torch.stack(of_upstream).mean(0) if upstream else torch.zeros_like(among[0])
        return torch.cat([among.mean(0), among.amin(0), among.amax(0), mean])

    def is_open(self, device, decided):
        """Of interchangeable devices only the first unused is open; without rules."""
        if device >= self.problem.n_devices:
            return False
        used, classes = set(decided.values()), self.problem.interchangeable
        alike = [d for d, c in enumerate(classes.tolist()) if c == classes[device]]
        return all(other in used for other in alike if other < device)


def lstm(gates, cell):
    i, f, o, g = gates.chunk(4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def random_samples(epoch, memory_is_empty):
    """20 in the first epoch, exponentially fewer, 20 while nothing good is known (§3.3)."""
    return 20 if memory_is_empty else round(20 * math.exp(-epoch))
