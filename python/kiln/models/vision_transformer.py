"""Vision Transformer (Dosovitskiy et al., 2021), with torchvision's keys and options."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._vision import init_truncated_normal, positive
from ._weights import load_weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor
    from .._typing import Builder, ModuleFactory


class MLPBlock(nn.Sequential):
    """Two linear layers with GELU between."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(in_dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, in_dim),
            nn.Dropout(dropout),
        )
        for layer in (self[0], self[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """Self-attention and an MLP, each with a norm before and a residual connection."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: ModuleFactory,
    ) -> None:
        super().__init__()
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Adds positions, then runs the blocks and a norm."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        hidden_dim: int,
        dropout: float,
        block: Callable[[], nn.Module],
        norm_layer: ModuleFactory,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(kiln.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            OrderedDict((f"encoder_layer_{i}", block()) for i in range(num_layers))
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Patches of patch_size pixels and a class token: images [N, 3, image_size, image_size] ->
    [N, num_classes].

    num_layers, num_heads: how many. hidden_dim, mlp_dim: features of the tokens, and within the
    MLPs. dropout, attention_dropout: in training. representation_size: of a layer before the last,
    None for none. norm_layer: a class.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.VisionTransformer(32, 8, 1, 2, 16, 32, num_classes=10)
    ...     net(kiln.zeros(1, 3, 32, 32)).shape
    kiln.Size([1, 10])
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: ModuleFactory | None = None,
    ) -> None:
        super().__init__()
        positive(
            "VisionTransformer",
            image_size=image_size,
            patch_size=patch_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            mlp_dim=mlp_dim,
            num_classes=num_classes,
        )
        if image_size % patch_size:
            raise ValueError(
                f"VisionTransformer: image_size must be a multiple of patch_size; got {image_size} "
                f"and {patch_size}"
            )
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.image_size = image_size
        self.patch_size = patch_size
        self.class_token = nn.Parameter(kiln.zeros(1, 1, hidden_dim))
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, stride=patch_size)
        block = partial(
            EncoderBlock, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(seq_length, num_layers, hidden_dim, dropout, block, norm_layer)
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is None:
            heads["head"] = nn.Linear(hidden_dim, num_classes)
        else:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
            heads["head"] = nn.Linear(representation_size, num_classes)
            nn.init.trunc_normal_(heads["pre_logits"].weight, std=math.sqrt(1 / hidden_dim))
            nn.init.zeros_(heads["pre_logits"].bias)
        self.heads = nn.Sequential(heads)
        init_truncated_normal(self.conv_proj)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape[-2:]) != (self.image_size, self.image_size):
            raise ValueError(
                f"VisionTransformer: expected images of {self.image_size} x {self.image_size}; got "
                f"{tuple(x.shape)}"
            )
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        token = self.class_token.expand(x.shape[0], -1, -1)
        return self.heads(self.encoder(kiln.cat([token, patches], dim=1))[:, 0])


def _builder(
    name: str, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int
) -> Builder[VisionTransformer]:
    fixed = {
        "image_size": 224,
        "patch_size": patch_size,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "hidden_dim": hidden_dim,
        "mlp_dim": mlp_dim,
    }

    def build(*, weights: Any = None, progress: bool = True, **options: Any) -> VisionTransformer:
        return load_weights(VisionTransformer(**{**fixed, **options}), weights)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""{name}: a VisionTransformer; see the class for the options.

    weights: None, a state dict, or the name of a file that holds one.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.{name}(num_classes=10)
    ...     net(kiln.zeros(1, 3, 224, 224)).shape
    kiln.Size([1, 10])
    """
    return build


vit_tiny_16 = _builder("vit_tiny_16", 16, 12, 3, 192, 768)
vit_b_16 = _builder("vit_b_16", 16, 12, 12, 768, 3072)
vit_b_32 = _builder("vit_b_32", 32, 12, 12, 768, 3072)
vit_l_16 = _builder("vit_l_16", 16, 24, 16, 1024, 4096)
vit_l_32 = _builder("vit_l_32", 32, 24, 16, 1024, 4096)
vit_h_14 = _builder("vit_h_14", 14, 32, 16, 1280, 5120)
