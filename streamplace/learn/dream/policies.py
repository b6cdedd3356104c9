"""The paper's three models, built from their options."""

from streamplace.errors import SettingError
from streamplace.learn.dream.decoder import Decoder, DecoderShape
from streamplace.learn.dream.features import OPERATOR_FEATURES, STREAM_FEATURES
from streamplace.learn.dream.graph_encoder import GraphEncoder
from streamplace.learn.dream.options import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.dream.policy import Policy
from streamplace.learn.dream.sequence_encoder import SequenceEncoder

CONFIGS: dict[str, type[AllocatorConfig]] = {
    "encdec": AllocatorConfig,
    "encdec-gnn": GraphAllocatorConfig,
    "dream": GraphAllocatorConfig,
}
"""Options of model B, of B+F1 (graph encoder) and of B+F1&F2 (graph-aware decoder too)."""


def build_policy(model: str, config: AllocatorConfig) -> Policy:
    """Policy of a model with fresh parameters from torch's generator."""
    if model not in CONFIGS:
        raise SettingError(f"{model!r} is no model of the paper; choose one of {list(CONFIGS)}")
    shape = DecoderShape(
        width=config.width,
        devices=config.devices,
        embedding=config.embedding,
        upstream=model == "dream",
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
