"""Graph encoder of the DREAM paper (§3.1): K hops up and down the streams, then max-pooling.

Shapes: G graphs, N operators (padded), V = G · N, E streams, m dimensions per view, W = 2 m.
"""

from typing import cast

import torch
from torch import Tensor, nn

from streamplace.learn.models.dream.graphs import GraphBatch


class Hop(nn.Module):
    """One update of one view, equation 1, with biases.

    h_u^(in) = tanh(W₁ h_u), or with stream features tanh(W₁ [h_u : f_e]) (footnote 4);
    h_v^(k+1) = tanh(W₂ [h_v : mean of h_u^(in) over the neighbours u of v]).
    """

    def __init__(self, n_in: int, m: int, stream_features: int = 0) -> None:
        super().__init__()
        self.incoming = nn.Linear(n_in + stream_features, m)
        self.update_view = nn.Linear(n_in + m, m)
        self.of_streams = stream_features > 0

    def forward(self, h: Tensor, edges: Tensor, stream_features: Tensor) -> Tensor:
        """View [V, m] from the one before [V, in] and edges [2, E] from u to v."""
        source, target = edges
        if self.of_streams:
            sent = torch.tanh(self.incoming(torch.cat([h[source], stream_features], dim=1)))
        else:
            sent = torch.tanh(self.incoming(h))[source]
        pooled = _mean(sent, target, len(h))
        return torch.tanh(self.update_view(torch.cat([h, pooled], dim=1)))


def _mean(sent: Tensor, target: Tensor, n: int) -> Tensor:
    """Means [n, m] of what arrives [E, m] at each target, 0 where nothing does."""
    total = sent.new_zeros(n, sent.shape[1]).index_add(0, target, sent)
    count = sent.new_zeros(n).index_add(0, target, sent.new_ones(len(target)))
    return total / count.clamp(min=1)[:, None]


class GraphEncoder(nn.Module):
    """Operators as vectors that know K hops upstream and downstream, and a vector of the graph.

    Parameters
    ----------
    features
        Features per operator.
    width
        Dimensions W of an operator's vector [up : down] and of the graph's.
    hops
        K.
    shared
        Whether both views share their weights, as in the paper's experiments.
    stream_features
        Features per stream that messages carry; 0 for none.
    """

    def __init__(
        self, features: int, width: int, hops: int, shared: bool = True, stream_features: int = 0
    ) -> None:
        super().__init__()
        m = width // 2
        sizes = [features] + [m] * (hops - 1)
        self.up = nn.ModuleList(Hop(size, m, stream_features) for size in sizes)
        self.down = (
            self.up if shared else nn.ModuleList(Hop(size, m, stream_features) for size in sizes)
        )
        self.pool = nn.Linear(width, width)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Operators [G, N, W] and graphs [G, W]; the vectors of padding operators mean nothing."""
        edges, features = batch.edges, batch.stream_features
        up = down = batch.features.flatten(0, 1)
        for hop_up, hop_down in zip(self.up, self.down, strict=True):
            up, down = hop_up(up, edges, features), hop_down(down, edges.flip(0), features)
        nodes = torch.cat([up, down], dim=1).view(*batch.present.shape, -1)
        pooled = cast(Tensor, self.pool(nodes))
        return nodes, pooled.masked_fill(~batch.present[:, :, None], -torch.inf).amax(1)
