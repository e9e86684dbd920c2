"""What language models have in common that predict the next token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kiln import nn

from ._cache import KeyValueCache
from ._config import Output
from ._pretrained import PretrainedModel, next_token_loss
from .generation import GenerationMixin

if TYPE_CHECKING:
    from .._C import Tensor


def continued(
    past_key_values: KeyValueCache | None, use_cache: bool
) -> tuple[KeyValueCache | None, int]:
    """(cache, how many tokens it holds): the cache given, or a new one where one is wanted."""
    if use_cache and past_key_values is None:
        past_key_values = KeyValueCache()
    return past_key_values, 0 if past_key_values is None else past_key_values.get_seq_length()


class CausalLM(GenerationMixin, PretrainedModel):
    """A backbone, under the name `base_model_prefix`, and a layer that makes logits of its states.

    A subclass names the backbone's class and, in `embedding`, the part of it that is the table of
    tokens. Where the configuration says so, that table is the layer's matrix too.
    """

    backbone_class: Any = None
    embedding: Any = None

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        backbone = self.backbone_class(config)
        setattr(self, self.base_model_prefix, backbone)
        width = getattr(backbone, self.embedding).embedding_dim
        self.lm_head = nn.Linear(width, config.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, 0.0, config.initializer_range)
        self.tie_weights()

    def tied_keys(self) -> dict[str, str]:
        if not self.config.tie_word_embeddings:
            return {}
        return {"lm_head.weight": f"{self.base_model_prefix}.{self.embedding}.weight"}

    def tie_weights(self) -> None:
        if self.config.tie_word_embeddings:
            backbone = getattr(self, self.base_model_prefix)
            self.lm_head.weight = getattr(backbone, self.embedding).weight

    def predictions(self, output: Output, labels: Tensor | None, logits_to_keep: int) -> Output:
        """Of what the backbone gave: the last `logits_to_keep` logits (0: all), with labels the loss."""
        hidden = output.last_hidden_state
        logits = self.lm_head(hidden[:, -logits_to_keep:] if logits_to_keep else hidden)
        loss = None if labels is None else next_token_loss(logits, labels)
        return Output(loss=loss, logits=logits, past_key_values=output.past_key_values)
