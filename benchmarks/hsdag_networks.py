"""The networks that HSDAG places, as plain modules: Inception-v3, ResNet-50 and BERT-base.

Weights are random, since only shapes matter. After the papers (Szegedy et al. 2016, He et al.
2016, Devlin et al. 2019) with the layers of the usual implementations.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Conv(nn.Module):
    """Convolution, batch norm and, by default, ReLU."""

    def __init__(self, n_in, n_out, kernel, stride=1, padding=0, act=True, eps=1e-3):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(n_out, eps=eps)
        nn.init.normal_(self.bn.bias)  # a bias of 0 would be optimised away
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        """Compute."""
        y = self.bn(self.conv(x))
        return F.relu(y) if self.act else y


class Bottleneck(nn.Module):
    """A residual block of ResNet-50."""

    def __init__(self, n_in, width, stride, change):
        super().__init__()
        self.a = Conv(n_in, width, 1)
        self.b = Conv(width, width, 3, stride, 1)
        self.c = Conv(width, 4 * width, 1, act=False)
        self.down = Conv(n_in, 4 * width, 1, stride, act=False) if change else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute."""
        kept = x if self.down is None else self.down(x)
        return F.relu(self.c(self.b(self.a(x))) + kept)


def resnet50() -> tuple[nn.Module, Tensor]:
    """ResNet-50 for 224 × 224 pixels."""
    layers: list[nn.Module] = [Conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]
    n_in = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(n_in, width, stride if i == 0 else 1, i == 0))
            n_in = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*layers).eval(), torch.zeros(1, 3, 224, 224)


class Branches(nn.Module):
    """Branches side by side, joined along the channels."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """Compute."""
        return torch.cat([branch(x) for branch in self.branches], 1)


def _pool() -> nn.Module:
    return nn.AvgPool2d(3, 1, 1)


def _across(n_in, n_out, n=7) -> list[nn.Module]:
    """1 × n, then n × 1."""
    half = n // 2
    return [
        Conv(n_in, n_in, (1, n), padding=(0, half)),
        Conv(n_in, n_out, (n, 1), padding=(half, 0)),
    ]


def _a(n_in, pooled) -> nn.Module:
    return Branches(
        Conv(n_in, 64, 1),
        nn.Sequential(Conv(n_in, 48, 1), Conv(48, 64, 5, padding=2)),
        nn.Sequential(Conv(n_in, 64, 1), Conv(64, 96, 3, padding=1), Conv(96, 96, 3, padding=1)),
        nn.Sequential(_pool(), Conv(n_in, pooled, 1)),
    )


def _b(n_in) -> nn.Module:
    return Branches(
        Conv(n_in, 384, 3, 2),
        nn.Sequential(Conv(n_in, 64, 1), Conv(64, 96, 3, padding=1), Conv(96, 96, 3, 2)),
        nn.MaxPool2d(3, 2),
    )


def _c(c) -> nn.Module:
    down = [Conv(768, c, 1), Conv(c, c, (7, 1), padding=(3, 0)), Conv(c, c, (1, 7), padding=(0, 3))]
    last = [Conv(c, c, (7, 1), padding=(3, 0)), Conv(c, 192, (1, 7), padding=(0, 3))]
    return Branches(
        Conv(768, 192, 1),
        nn.Sequential(Conv(768, c, 1), *_across(c, 192)),
        nn.Sequential(*down, *last),
        nn.Sequential(_pool(), Conv(768, 192, 1)),
    )


def _d() -> nn.Module:
    return Branches(
        nn.Sequential(Conv(768, 192, 1), Conv(192, 320, 3, 2)),
        nn.Sequential(Conv(768, 192, 1), *_across(192, 192), Conv(192, 192, 3, 2)),
        nn.MaxPool2d(3, 2),
    )


def _fork() -> nn.Module:
    return Branches(Conv(384, 384, (1, 3), padding=(0, 1)), Conv(384, 384, (3, 1), padding=(1, 0)))


def _e(n_in) -> nn.Module:
    return Branches(
        Conv(n_in, 320, 1),
        nn.Sequential(Conv(n_in, 384, 1), _fork()),
        nn.Sequential(Conv(n_in, 448, 1), Conv(448, 384, 3, padding=1), _fork()),
        nn.Sequential(_pool(), Conv(n_in, 192, 1)),
    )


class Scaled(nn.Module):
    """Shift and scale of the colours for weights that were trained elsewhere."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute."""
        means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        colours = [
            x[:, i].unsqueeze(1) * (deviation / 0.5) + (mean - 0.5) / 0.5
            for i, (mean, deviation) in enumerate(zip(means, deviations, strict=True))
        ]
        return torch.cat(colours, 1)


def inception_v3() -> tuple[nn.Module, Tensor]:
    """Inception-v3 for 299 × 299 pixels, without the auxiliary classifier, as it infers."""
    stem: list[nn.Module] = [Scaled()]
    stem += [Conv(3, 32, 3, 2), Conv(32, 32, 3), Conv(32, 64, 3, padding=1), nn.MaxPool2d(3, 2)]
    stem += [Conv(64, 80, 1), Conv(80, 192, 3), nn.MaxPool2d(3, 2)]
    blocks = [_a(192, 32), _a(256, 64), _a(288, 64), _b(288)]
    blocks += [_c(128), _c(160), _c(160), _c(192), _d(), _e(1280), _e(2048)]
    end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*stem, *blocks, *end).eval(), torch.zeros(1, 3, 299, 299)


class Attention(nn.Module):
    """Self-attention of BERT, written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out, self.norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Compute."""
        q, k, v = (self._split(part(x)) for part in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5) + mask
        seen = (scores.softmax(-1) @ v).permute(0, 2, 1, 3).flatten(2)
        return self.norm(self.out(seen) + x)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).permute(0, 2, 1, 3)


class Layer(nn.Module):
    """A layer of BERT."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Compute."""
        seen = self.attention(x, mask)
        return self.norm(self.down(F.gelu(self.up(seen))) + seen)


class Bert(nn.Module):
    """Embeddings, layers and pooler of BERT."""

    def __init__(self, layers=12, width=768, heads=12, words=30522, places=512):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.pool = nn.Linear(width, width)

    def forward(self, x: Tensor, keep: Tensor, kind: Tensor) -> tuple[Tensor, Tensor]:
        """Compute."""
        mask = (1.0 - keep[:, None, None].float()) * torch.finfo(torch.float32).min
        place = torch.arange(x.shape[1], device=x.device)
        y = self.norm(self.words(x) + self.kinds(kind) + self.places(place))
        for layer in self.layers:
            y = layer(y, mask)
        return y, torch.tanh(self.pool(y[:, 0]))


def bert_base() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """BERT-base for sentences of 16 tokens."""
    return Bert().eval(), tuple(torch.zeros(1, 16, dtype=torch.long) for _ in range(3))


NETWORKS = {"Inception-v3": inception_v3, "ResNet-50": resnet50, "BERT": bert_base}
