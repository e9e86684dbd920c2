"""Keys and values of earlier positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

if TYPE_CHECKING:
    from .._C import Tensor


class KeyValueCache:
    """Keys and values of each layer, [N, heads, length, features]. What a layer has room for
    doubles when it is full, so that a step costs what it adds.

    >>> cache = kiln.models.KeyValueCache()
    >>> net = kiln.models.llama(vocab_size=10, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...                         num_attention_heads=2)
    >>> _ = net(kiln.tensor([[1, 2]]), past_key_values=cache)
    >>> net(kiln.tensor([[3]]), past_key_values=cache).logits.shape  # reads 1 and 2 in the cache
    kiln.Size([1, 1, 10])
    """

    def __init__(self) -> None:
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._lengths: list[int] = []

    def get_seq_length(self, layer: int = 0) -> int:
        """How many positions are kept."""
        return self._lengths[layer] if layer < len(self._lengths) else 0

    def update(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Appends keys and values [N, heads, new, features] to a layer's; gives all of them."""
        if layer == len(self._keys):
            self._keys.append(key)
            self._values.append(value)
            self._lengths.append(key.shape[2])
            return key, value
        start = self._lengths[layer]
        end = start + key.shape[2]
        self._lengths[layer] = end
        self._keys[layer] = _append(self._keys[layer], key, start, end)
        self._values[layer] = _append(self._values[layer], value, start, end)
        return self._keys[layer][:, :, :end], self._values[layer][:, :, :end]

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """A layer's keys and values."""
        end = self._lengths[layer]
        return self._keys[layer][:, :, :end], self._values[layer][:, :, :end]

    def reorder(self, index: Tensor) -> None:
        """Rows of the batch in another order, or some of them, or some several times."""
        self._keys = [key.index_select(0, index) for key in self._keys]
        self._values = [value.index_select(0, index) for value in self._values]


def _append(kept, new, start, end):
    if kept.requires_grad or new.requires_grad:
        return kiln.cat([kept[:, :, :start], new], dim=2)
    if end > kept.shape[2]:
        room = max(end, 2 * start) - start
        kept = kiln.cat(
            [kept[:, :, :start], new.new_empty((*new.shape[:2], room, new.shape[3]))], dim=2
        )
    kept[:, :, start:end] = new
    return kept
