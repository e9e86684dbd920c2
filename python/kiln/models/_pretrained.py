"""Loading public weights as Hugging Face's transformers writes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

import kiln
from kiln import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._C import Tensor
    from .._typing import DeviceLike, StrPath

_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


class PretrainedModel(nn.Module):
    """Base of the language models: a configuration, initial values, and public weights."""

    config_class: Any = None
    config: Any
    base_model_prefix = ""
    # Ends of keys that older files have and that are no weights.
    ignored_keys: tuple[str, ...] = ()

    def __init__(self, config: Any) -> None:
        super().__init__()
        if not isinstance(config, self.config_class):
            raise TypeError(
                f"{type(self).__name__}: expected a {self.config_class.__name__}; got "
                f"{type(config).__name__}"
            )
        self.config = config

    @classmethod
    def from_pretrained(cls, path: StrPath, config: Any = None, **options: Any) -> Self:
        """The model of a folder with `config.json` and weights, or of a file of weights with the
        config given. `options` replace fields of the config. Nothing is fetched."""
        path = os.fspath(path)
        weights = path
        if os.path.isdir(path):
            names = [name for name in _FILES if os.path.exists(os.path.join(path, name))]
            if not names:
                raise FileNotFoundError(
                    f"{cls.__name__}.from_pretrained: {path!r} holds none of {', '.join(_FILES)}"
                )
            weights = os.path.join(path, names[0])
            if config is None:
                config = cls.config_class.from_json_file(os.path.join(path, "config.json"))
        if config is None:
            raise ValueError(f"{cls.__name__}.from_pretrained: a file of weights needs config=")
        if options:
            config = cls.config_class.from_dict({**config.to_dict(), **options})
        with kiln.device("meta"):
            model = cls(config)
        model.load_pretrained(kiln.load(weights), assign=True)
        return model.eval()

    def load_pretrained(self, state: Mapping[str, Any], assign: bool = False) -> Self:
        """Takes a state dict of the model, or of the model without its head, or with another head:
        every key that this model has must be there, but for weights that are tied to others."""
        own = self.state_dict()
        prefix = self.base_model_prefix + "."
        found = {}
        for key, value in state.items():
            key = key.replace("LayerNorm.gamma", "LayerNorm.weight")
            key = key.replace("LayerNorm.beta", "LayerNorm.bias")
            if key not in own and prefix + key in own:
                key = prefix + key
            elif key not in own and key.startswith(prefix) and key[len(prefix) :] in own:
                key = key[len(prefix) :]
            if key in own:
                found[key] = value
        for key, source in self.tied_keys().items():
            if key not in found and source in found:
                found[key] = found[source]
        self.load_state_dict(found, assign=assign)
        if assign:
            self.tie_weights()
            self._materialize_buffers()
        return self

    def tied_keys(self) -> dict[str, str]:
        """Keys of weights that are another's."""
        return {}

    def tie_weights(self) -> None:
        """Makes tied weights one parameter."""

    def _materialize_buffers(self):
        """Gives values to buffers that no file has."""

    def init_normal(self, std: float) -> None:
        """Normal weights, biases of 0, norms of 1."""
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding, nn.Conv1d)):
                nn.init.normal_(module.weight, 0.0, std)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                with kiln.no_grad():
                    module.weight[module.padding_idx].zero_()


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function that a configuration names."""
    functions = {
        "gelu": nn.functional.gelu,
        "gelu_new": _gelu_tanh,
        "gelu_pytorch_tanh": _gelu_tanh,
        "quick_gelu": lambda x: x * (1.702 * x).sigmoid(),
        "relu": nn.functional.relu,
        "silu": nn.functional.silu,
        "swish": nn.functional.silu,
        "tanh": kiln.tanh,
    }
    if name not in functions:
        raise ValueError(f"activation: expected one of {', '.join(functions)}; got {name!r}")
    return functions[name]


def _gelu_tanh(x):
    return nn.functional.gelu(x, approximate="tanh")


def causal_mask(
    attention_mask: Tensor | None, queries: int, keys: int, device: DeviceLike | None
) -> tuple[Tensor | None, bool]:
    """(mask, is_causal) for attention of the last `queries` of `keys` positions, each to itself and
    those before it. attention_mask [N, keys] is 0 where nobody may look."""
    plain = attention_mask is None or bool(attention_mask.bool().all())
    if plain and (queries == keys or queries == 1):
        return None, queries > 1
    mask = kiln.ones(queries, keys, dtype=kiln.bool, device=device).tril(keys - queries)
    if attention_mask is not None and not plain:
        if attention_mask.shape[-1] != keys:
            raise ValueError(
                f"attention_mask: expected {keys} positions, the cached ones too; got "
                f"{attention_mask.shape[-1]}"
            )
        mask = mask & attention_mask.bool()[:, None, None, :]
    return mask, False


def check_input_ids(model: str, input_ids: Any, vocab_size: int) -> None:
    """Token ids must be integers [N, T] below vocab_size (which the embedding checks)."""
    if input_ids.dim() != 2 or input_ids.is_floating_point() or input_ids.shape[1] < 1:
        raise ValueError(
            f"{model}: input_ids must be integers [batch, length of at least 1]; got "
            f"{input_ids.dtype} {tuple(input_ids.shape)}"
        )


def next_token_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    """The mean cross entropy of each position's logits with the label behind it."""
    return nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=ignore_index
    )
