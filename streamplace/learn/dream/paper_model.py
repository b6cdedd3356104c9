"""What a model of the DREAM paper is, besides a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamplace.learn.dream.options import AllocatorConfig
from streamplace.learn.registry import Model

if TYPE_CHECKING:
    from streamplace.learn.dream.policy import Policy


@dataclass(frozen=True, slots=True)
class PaperModel(Model):
    """A model of the paper.

    Attributes
    ----------
    upstream
        Whether the decoder sees the devices of upstream operators (F2).
    """

    upstream: bool = False

    def policy(self, config: AllocatorConfig) -> "Policy":
        """Policy with fresh parameters from torch's generator."""
        from streamplace.learn.dream.policies import build_policy

        return build_policy(config, upstream=self.upstream)
