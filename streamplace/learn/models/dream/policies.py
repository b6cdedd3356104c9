"""The paper's three models, built from their options."""

from streamplace.learn.models.dream.decoder import Decoder, DecoderShape
from streamplace.learn.models.dream.features import OPERATOR_FEATURES, STREAM_FEATURES
from streamplace.learn.models.dream.graph_encoder import GraphEncoder
from streamplace.learn.models.dream.options import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.models.dream.policy import Policy
from streamplace.learn.models.dream.sequence_encoder import SequenceEncoder


def build_policy(config: AllocatorConfig, *, upstream: bool) -> Policy:
    """Policy with fresh parameters from torch's generator; ``upstream`` is the paper's F2."""
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
        return Policy(graph, Decoder(shape))
    return Policy(SequenceEncoder(len(OPERATOR_FEATURES), config.width), Decoder(shape))
