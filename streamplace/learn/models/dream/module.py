"""The paper's models in torch: an encoder, and a decoder that samples placements."""

import torch
from torch import Tensor, nn

from streamplace.learn.constructive.policy import Likelihood
from streamplace.learn.constructive.recurrence import one_hot
from streamplace.learn.models.dream.decoder import Decoder, DecoderShape, Encoded
from streamplace.learn.models.dream.features import OPERATOR_FEATURES, STREAM_FEATURES
from streamplace.learn.models.dream.graph_encoder import GraphEncoder
from streamplace.learn.models.dream.graphs import GraphBatch
from streamplace.learn.models.dream.options import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.models.dream.sequence_encoder import SequenceEncoder


class EncoderDecoder(nn.Module):
    """P(placement | graph), equation 2.

    Shapes: G graphs, S samples of each, N operators in the order of decision.
    """

    def __init__(self, encoder: nn.Module, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, batch: GraphBatch) -> Encoded:
        """Encode graphs, once for all that is asked about them."""
        nodes, graph = self.encoder(batch)
        return self.decoder.encode(batch, nodes, graph)

    def likelihood(self, batch: GraphBatch, encoded: Encoded, placements: Tensor) -> Likelihood:
        """Log-probabilities and entropies of placements [G, S, N], with gradients."""
        chosen = one_hot(placements.transpose(1, 2), batch.n_devices)
        each = self.decoder.all_steps(encoded, chosen)
        taken = (each * chosen).sum((1, 3))
        spread = -(each.exp() * each).sum((1, 3)) / batch.present.sum(1)[:, None]
        return Likelihood(taken, spread)

    @torch.no_grad()
    def sample(self, encoded: Encoded, samples: int, generator: torch.Generator) -> Tensor:
        """Draw placements [G, S, N], step by step."""
        return self._decide(encoded, samples, generator)

    @torch.no_grad()
    def greedy(self, encoded: Encoded) -> Tensor:
        """Placements [G, 1, N] of the likeliest device at every step."""
        return self._decide(encoded, 1, None)

    def _decide(self, encoded: Encoded, samples: int, generator: torch.Generator | None) -> Tensor:
        batch = encoded.earlier.batch
        graphs, n, devices = batch.n_graphs, batch.n_operators, batch.n_devices
        chosen = encoded.start.new_zeros(graphs, n, samples, devices)
        state = encoded.start.detach().repeat_interleave(samples, dim=0)
        cell = torch.zeros_like(state)
        noise = torch.zeros_like(chosen)
        if generator is not None:  # the largest of log p + Gumbel noise is a draw from p
            noise.exponential_(generator=generator).log_().neg_()
        decided = []
        for t in range(n):
            log_p, state, cell = self.decoder.step(encoded, chosen, t, state, cell)
            device = log_p.add_(noise[:, t]).argmax(-1)
            chosen[:, t] = one_hot(device, devices)
            decided.append(device)
        return torch.stack(decided, dim=-1)


def built_module(config: AllocatorConfig, *, upstream: bool) -> EncoderDecoder:
    """Model with fresh parameters from torch's generator; ``upstream`` is the paper's F2."""
    shape = DecoderShape(
        width=config.width,
        devices=config.devices,
        embedding=config.embedding,
        upstream=upstream,
        device_state=config.device_state,
    )
    if isinstance(config, GraphAllocatorConfig):
        graph = GraphEncoder(
            features=len(OPERATOR_FEATURES),
            width=config.width,
            hops=config.hops,
            shared=config.shared,
            stream_features=len(STREAM_FEATURES) if config.stream_features else 0,
        )
        return EncoderDecoder(graph, Decoder(shape))
    return EncoderDecoder(SequenceEncoder(len(OPERATOR_FEATURES), config.width), Decoder(shape))
