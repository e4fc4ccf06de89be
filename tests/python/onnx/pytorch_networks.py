"""Networks of PyTorch, one for each kind of layer that its exporters write in their own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

Inputs = tuple[torch.Tensor, ...]


@dataclass
class Network:
    """A network for tests.

    Attributes
    ----------
    make : callable
        Makes the module.
    inputs : callable
        Makes its inputs from a batch size.
    has_open_batch : bool
        Whether PyTorch exports it for any batch size.
    trains : bool
        Whether gradients of its parameters are compared.
    exporters : tuple of str
        "new" for the exporter by torch.export, "old" for TorchScript's.
    slow : bool
        Whether its test takes seconds.
    folded : tuple of str
        Parameters that an exporter merges into others.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[int], Inputs]
    has_open_batch: bool = True
    trains: bool = True
    exporters: tuple[str, ...] = ("new", "old")
    slow: bool = False
    folded: tuple[str, ...] = ()


class Calling(nn.Module):
    """A module of a function of its layers and inputs."""

    def __init__(self, function: Callable[..., torch.Tensor], **layers: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(self, *inputs)


def floats(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def shaped(*sizes: int) -> Callable[[int], Inputs]:
    """Inputs of one tensor: (batch, *sizes)."""
    return lambda batch: (floats(batch, *sizes),)


def numbers(limit: int, *sizes: int) -> Callable[[int], Inputs]:
    return lambda batch: (torch.randint(0, limit, (batch, *sizes)),)


NETWORKS: dict[str, Network] = {}


def network(
    name: str, function: Callable[..., torch.Tensor], inputs: Callable[[int], Inputs], **options: object
) -> None:
    """Adds a network of a function; options: layers, and fields of Network."""
    fields = {key: options.pop(key) for key in list(options) if key in Network.__dataclass_fields__}
    layers: Callable[[], dict[str, nn.Module]] = options.pop("layers", dict)  # type: ignore[assignment]
    assert not options
    NETWORKS[name] = Network(lambda: Calling(function, **layers()), inputs, **fields)  # type: ignore[arg-type]


def sequence(name: str, make: Callable[[], list[nn.Module]], inputs: Callable[[int], Inputs], **fields: object) -> None:
    """Adds a network of layers one after another."""
    NETWORKS[name] = Network(lambda: nn.Sequential(*make()), inputs, **fields)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- convolutions
sequence(
    "convolutions with pooling and norms",
    lambda: [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 6, 3, stride=2),
        nn.BatchNorm2d(6),
        nn.SiLU(),
        nn.AvgPool2d(2, stride=1, padding=1),
        nn.Flatten(),
        nn.Linear(96, 5),
    ],
    shaped(3, 16, 16),
    folded=("0.", "1.", "4.", "5."),
)
sequence(
    "depthwise, dilated and grouped convolutions",
    lambda: [
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Hardswish(),
        nn.Conv2d(4, 8, 1),
        nn.LeakyReLU(0.1),
        nn.Conv2d(8, 8, 3, dilation=2, padding=2, groups=2, bias=False),
        nn.ELU(),
    ],
    shaped(4, 9, 11),
)
sequence(
    "transposed convolutions",
    lambda: [
        nn.ConvTranspose2d(3, 6, 3, stride=2, padding=1, output_padding=1),
        nn.GELU(),
        nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2),
        nn.Softplus(),
    ],
    shaped(3, 5, 6),
)
sequence(
    "convolutions of one and three axes",
    lambda: [
        nn.Conv1d(2, 4, 5, padding=2),
        nn.Mish(),
        nn.Unflatten(2, (4, 3, 2)),
        nn.Conv3d(4, 3, (2, 1, 2)),
        nn.Tanh(),
    ],
    shaped(2, 24),
    slow=True,
)
sequence(
    "poolings",
    lambda: [
        nn.Conv2d(2, 4, 1),
        nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
        nn.AvgPool2d(3, stride=2, ceil_mode=True, count_include_pad=False, padding=1),
        nn.LPPool2d(2, 2, stride=1),
    ],
    shaped(2, 14, 17),
    slow=True,
)
sequence(
    "adaptive poolings",
    lambda: [nn.Conv2d(2, 4, 1), nn.AdaptiveAvgPool2d((4, 3)), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 2)],
    shaped(2, 12, 9),
)
network(
    "whole network in bfloat16 and back",
    lambda self, x: self.dense(x).to(torch.bfloat16).float() * 2,
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 3)},
    trains=False,
    slow=True,
)

# -------------------------------------------------------------------------------------------------------------- norms
sequence(
    "LayerNorm and GroupNorm",
    lambda: [nn.Conv1d(4, 8, 3), nn.GroupNorm(2, 8), nn.ReLU6(), nn.LayerNorm([8, 10]), nn.LayerNorm(10, bias=False)],
    shaped(4, 12),
)
sequence(
    "InstanceNorm",
    lambda: [nn.InstanceNorm2d(3, affine=True), nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4), nn.Sigmoid()],
    shaped(3, 7, 8),
    slow=True,
)
sequence("RMSNorm", lambda: [nn.Linear(6, 8), nn.RMSNorm(8), nn.Linear(8, 3)], shaped(5, 6), exporters=("new",))
sequence(
    "BatchNorm of vectors",
    lambda: [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.PReLU(8), nn.Linear(8, 3), nn.LogSoftmax(-1)],
    shaped(6),
    folded=("0.", "1."),
    slow=True,
)

# ----------------------------------------------------------------------------------------------------------- sequences
network(
    "LSTM of two layers and directions",
    lambda self, x: self.rnn(x)[0],
    shaped(7, 5),
    layers=lambda: {"rnn": nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True)},
)
network(
    "LSTM with given states",
    lambda self, x, h, c: torch.cat([self.rnn(x, (h, c))[0], *self.rnn(x, (h, c))[1]], 0),
    lambda batch: (floats(6, batch, 5), floats(1, batch, 4), floats(1, batch, 4)),
    layers=lambda: {"rnn": nn.LSTM(5, 4)},
    has_open_batch=False,
    slow=True,
)
network(
    "GRU",
    lambda self, x: self.dense(self.rnn(x)[0][:, -1]),
    shaped(7, 5),
    layers=lambda: {"rnn": nn.GRU(5, 4, batch_first=True), "dense": nn.Linear(4, 3)},
)
network(
    "RNN of both directions",
    lambda self, x: self.rnn(x)[0],
    shaped(7, 5),
    layers=lambda: {"rnn": nn.RNN(5, 4, bidirectional=True, nonlinearity="relu", batch_first=True)},
)
network(
    "embeddings",
    lambda self, words: self.dense(self.table(words).mean(1)),
    numbers(11, 6),
    layers=lambda: {"table": nn.Embedding(11, 8), "dense": nn.Linear(8, 3)},
)
network(
    "multi-head attention",
    lambda self, x: self.attention(x, x, x)[0],
    shaped(5, 8),
    layers=lambda: {"attention": nn.MultiheadAttention(8, 2, batch_first=True)},
)
network(
    "encoder of a transformer",
    lambda self, x: self.layer(x),
    shaped(6, 8),
    layers=lambda: {
        "layer": nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True), 2, enable_nested_tensor=False
        )
    },
    slow=True,
)
network(
    "decoder of a transformer",
    lambda self, x, memory: self.layer(x, memory),
    lambda batch: (floats(batch, 5, 8), floats(batch, 7, 8)),
    layers=lambda: {"layer": nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True)},
    slow=True,
)
network(
    "scaled dot product attention that is causal",
    lambda self, x: functional.scaled_dot_product_attention(
        *(part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.dense(x).chunk(3, -1)), is_causal=True
    ),
    shaped(6, 5),
    layers=lambda: {"dense": nn.Linear(5, 24)},
)
network(
    "scaled dot product attention with a mask",
    lambda self, x, mask: functional.scaled_dot_product_attention(
        self.dense(x).unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1), attn_mask=mask[:, None, None, :]
    ),
    lambda batch: (floats(batch, 4, 6), torch.tensor([[True, True, False, True]] * batch)),
    layers=lambda: {"dense": nn.Linear(6, 6)},
    slow=True,
)

# -------------------------------------------------------------------------------------------------------------- images
for _mode, _corners in (("nearest", None), ("bilinear", False), ("bilinear", True), ("bicubic", False)):
    network(
        f"resizing, {_mode}{' with corners' if _corners else ''}",
        lambda self, x, mode=_mode, corners=_corners: functional.interpolate(
            functional.interpolate(self.conv(x), scale_factor=2.0, mode=mode, align_corners=corners),
            (9, 7),
            mode=mode,
            align_corners=corners,
        ),
        shaped(2, 6, 5),
        layers=lambda: {"conv": nn.Conv2d(2, 3, 1)},
        slow=_mode != "bilinear" or bool(_corners),
    )
network(
    "resizing, trilinear",
    lambda self, x: functional.interpolate(self.conv(x), (4, 5, 6), mode="trilinear"),
    shaped(2, 3, 3, 4),
    layers=lambda: {"conv": nn.Conv3d(2, 3, 1)},
    slow=True,
)
for _mode, _padding, _corners in (
    ("bilinear", "zeros", False),
    ("nearest", "border", True),
    ("bicubic", "reflection", False),
):
    network(
        f"sampling at grids, {_mode}",
        lambda self, x, grid, mode=_mode, padding=_padding, corners=_corners: functional.grid_sample(
            self.conv(x), grid, mode=mode, padding_mode=padding, align_corners=corners
        ),
        lambda batch: (floats(batch, 2, 6, 5), torch.rand(batch, 4, 3, 2) * 2.2 - 1.1),
        layers=lambda: {"conv": nn.Conv2d(2, 3, 1)},
        slow=_mode != "bilinear",
    )
for _mode in ("constant", "reflect", "replicate", "circular"):
    network(
        f"padding, {_mode}",
        lambda self, x, mode=_mode: functional.pad(self.conv(x), (2, 1, 0, 3), mode=mode),
        shaped(2, 6, 5),
        layers=lambda: {"conv": nn.Conv2d(2, 3, 1)},
        slow=_mode in ("replicate", "circular"),
    )
network(
    "shuffled pixels",
    lambda self, x: functional.pixel_unshuffle(functional.pixel_shuffle(self.conv(x), 2), 4),
    shaped(2, 4, 6),
    layers=lambda: {"conv": nn.Conv2d(2, 8, 1)},
    slow=True,
)
network(
    "unfolded windows",
    lambda self, x: functional.unfold(self.conv(x), (2, 3), stride=2, padding=1),
    shaped(2, 6, 7),
    layers=lambda: {"conv": nn.Conv2d(2, 3, 1)},
)
network(
    "windows of a tensor",
    lambda self, x: self.dense(x).unfold(1, 3, 2).sum(-1),
    shaped(9, 4),
    layers=lambda: {"dense": nn.Linear(4, 5)},
    slow=True,
)

# ------------------------------------------------------------------------------------------------------------- indices
network(
    "gather and scatter",
    lambda self, x, places: torch.zeros_like(x).scatter_add(1, places, torch.gather(self.dense(x), 1, places)),
    lambda batch: (floats(batch, 6), torch.randint(0, 6, (batch, 4))),
    layers=lambda: {"dense": nn.Linear(6, 6)},
)
network(
    "index_select and indexing",
    lambda self, x: torch.index_select(self.dense(x), 1, torch.tensor([4, 0, 2]))[:, [2, 1]] + x[:, 1:3, -1:],
    shaped(5, 4),
    layers=lambda: {"dense": nn.Linear(4, 6)},
)
network(
    "where and masked_fill",
    lambda self, x: torch.where(x > 0, self.dense(x), -x).masked_fill(x < -1, 0.5),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 6)},
)
network(
    "elements that a mask selects",
    lambda self, x: torch.masked_select(self.dense(x), x > 0),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 6)},
    exporters=("old",),
)
network(
    "rows that are not zero",
    lambda self, x: self.dense(x)[torch.nonzero(x[:, 0] > 0).squeeze(1)],
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 4)},
)
network(
    "values written by a mask",
    lambda self, x: torch.index_put(self.dense(x), (x[:, 0] > 0,), torch.tensor(2.0)),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 4)},
    exporters=("new",),  # the old one writes a Where whose shapes do not broadcast,
    slow=True,
)
network(
    "the largest elements",
    lambda self, x: torch.cat([*[part.float() for part in torch.topk(self.dense(x), 3, -1)], x.sort(-1)[0]], -1),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 8)},
)
network(
    "cumulative sums and differences",
    lambda self, x: torch.cumsum(self.dense(x), 1).diff(dim=1).flip(1).roll(1, 1),
    shaped(5, 4),
    layers=lambda: {"dense": nn.Linear(4, 3)},
    exporters=("new",),
    slow=True,
)
network(
    "einsum",
    lambda self, x: torch.einsum("bij,kj,bik->bk", x, self.weight, torch.einsum("bij->bi", x)[..., None] * x[..., :3]),
    shaped(4, 5),
    layers=lambda: {"weight": nn.Parameter(torch.empty(3, 5))},
)
network(
    "triangles and one-hot rows",
    lambda self, x: torch.tril(self.dense(x)) + functional.one_hot(x.argmax(-1), 5).float(),
    shaped(5, 5),
    layers=lambda: {"dense": nn.Linear(5, 5)},
    slow=True,
)
network(
    "norms, variances and distances",
    lambda self, x: (
        torch.cat(
            [functional.normalize(self.dense(x), dim=-1), x.std(-1, keepdim=True), x.norm(dim=-1, keepdim=True)], -1
        )
        * functional.cosine_similarity(x, self.dense(x), dim=-1).unsqueeze(-1)
    ),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 6)},
    slow=True,
)
network(
    "choice of one of two functions",
    lambda self, x: torch.cond(x.sum() > 0, lambda x: self.dense(x), lambda x: self.other(x).abs(), (x,)),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 4), "other": nn.Linear(6, 4)},
    exporters=("new",),
)

# -------------------------------------------------------------------------------------------------------------- dtypes
network(
    "double",
    lambda self, x: functional.softmax(self.dense(x.double()), -1),
    shaped(6),
    layers=lambda: {"dense": nn.Linear(6, 4).double()},
)
network(
    "half",
    lambda self, x: functional.relu(self.conv(x.half())).float().mean((2, 3)),
    shaped(2, 6, 5),
    layers=lambda: {"conv": nn.Conv2d(2, 3, 3).half()},
    trains=False,
)
network(
    "integers",
    lambda self, x: (x // 3 + x % 4 - (x << 1)).clamp(-5, 40) * self.table.weight.shape[0] + (x & 6 | 1),
    numbers(50, 6),
    layers=lambda: {"table": nn.Embedding(3, 2)},
    trains=False,
    exporters=("new",),
    slow=True,
)
