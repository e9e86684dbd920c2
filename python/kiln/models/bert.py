"""BERT (Devlin et al., 2019), with the keys and options of Hugging Face's transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._config import Config, Output
from ._pretrained import PretrainedModel, activation, check_input_ids

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import StrPath


@dataclass
class BertConfig(Config):
    """Defaults are those of the base model.

    vocab_size: tokens. hidden_size, intermediate_size: features, and those within the MLP.
    num_hidden_layers, num_attention_heads: how many. hidden_act: the activation's name.
    hidden_dropout_prob, attention_probs_dropout_prob, classifier_dropout: in training.
    max_position_embeddings: the longest text. type_vocab_size: kinds of sentences.
    initializer_range, layer_norm_eps: of first values and norms. pad_token_id: a special token.
    num_labels: of the classifier.

    >>> kiln.models.BertConfig(hidden_size=64, num_attention_heads=4).hidden_size
    64
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    classifier_dropout: float | None = None
    num_labels: int = 2

    def __post_init__(self) -> None:
        self.require_positive(
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
            "num_labels",
        )
        self.require_multiple("hidden_size", "num_attention_heads")


class BertEmbeddings(nn.Module):
    """The sum of words, positions and sentences."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(
            config.vocab_size, width, padding_idx=config.pad_token_id
        )
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(x + self.position_embeddings(position_ids)))


class BertSelfAttention(nn.Module):
    """Attention of all positions to all."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        n, t, width = x.shape
        q, k, v = (
            project(x).view(n, t, self.heads, width // self.heads).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0
        )
        return y.transpose(1, 2).reshape(n, t, width)


class BertResidual(nn.Module):
    """A linear layer, the residual connection and a norm behind it."""

    def __init__(self, inputs: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class BertAttention(nn.Module):
    """Self-attention with its residual connection."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertResidual(config.hidden_size, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(x, mask), x)


class BertIntermediate(nn.Module):
    """The first layer of the MLP."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.act = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.dense(x))


class BertLayer(nn.Module):
    """Attention and an MLP, each with a residual connection and a norm behind it."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertResidual(config.intermediate_size, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    """The layers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList([BertLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class BertPooler(nn.Module):
    """A layer on the first position."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(x[:, 0]).tanh()


class BertModel(PretrainedModel):
    """Token ids [N, T] -> hidden states [N, T, hidden_size] and pooler_output [N, hidden_size].
    attention_mask [N, T] is 0 at padding.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.BertModel(kiln.models.BertConfig(num_hidden_layers=1))
    ...     net(kiln.zeros(1, 5, dtype=kiln.int64)).last_hidden_state.shape
    kiln.Size([1, 5, 768])
    """

    config_class = BertConfig
    base_model_prefix = "bert"

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.init_normal(config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Output:
        check_input_ids("BERT", input_ids, self.config.vocab_size)
        t = input_ids.shape[1]
        if t > self.config.max_position_embeddings:
            raise ValueError(
                f"BERT: at most {self.config.max_position_embeddings} positions; got {t}"
            )
        if token_type_ids is None:
            token_type_ids = kiln.zeros_like(input_ids)
        if position_ids is None:
            position_ids = kiln.arange(t, device=input_ids.device)
        mask = None
        if attention_mask is not None:
            mask = attention_mask.bool()[:, None, None, :]
        x = self.encoder(self.embeddings(input_ids, token_type_ids, position_ids), mask)
        pooled = None if self.pooler is None else self.pooler(x)
        return Output(last_hidden_state=x, pooler_output=pooled)


class BertTransform(nn.Module):
    """What comes before the words are told."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.act = activation(config.hidden_act)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.LayerNorm(self.act(self.dense(x)))


class BertPredictions(nn.Module):
    """Logits of words; the matrix is that of the embedding."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = BertTransform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(kiln.zeros(config.vocab_size))
        self.decoder.bias = self.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.transform(x))


class BertMaskedHead(nn.Module):
    """The head of masked language modelling."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.predictions = BertPredictions(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.predictions(x)


class BertForMaskedLM(PretrainedModel):
    """Token ids [N, T] -> logits [N, T, vocab_size]; with labels (-100: none) the loss.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.BertForMaskedLM(kiln.models.BertConfig(num_hidden_layers=1))
    ...     net(kiln.zeros(1, 5, dtype=kiln.int64)).logits.shape
    kiln.Size([1, 5, 30522])
    """

    config_class = BertConfig
    base_model_prefix = "bert"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.cls = BertMaskedHead(config)
        nn.init.normal_(self.cls.predictions.transform.dense.weight, 0.0, config.initializer_range)
        nn.init.zeros_(self.cls.predictions.transform.dense.bias)
        self.tie_weights()

    def tied_keys(self) -> dict[str, str]:
        head = "cls.predictions."
        return {
            head + "decoder.weight": "bert.embeddings.word_embeddings.weight",
            head + "decoder.bias": head + "bias",
        }

    def tie_weights(self) -> None:
        predictions = self.cls.predictions
        predictions.decoder.weight = self.bert.embeddings.word_embeddings.weight
        predictions.decoder.bias = predictions.bias

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Output:
        output = self.bert(input_ids, attention_mask, token_type_ids, position_ids)
        logits = self.cls(output.last_hidden_state)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Output(loss=loss, logits=logits)


class BertForSequenceClassification(PretrainedModel):
    """Token ids [N, T] -> logits [N, num_labels]; with labels [N] the loss.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.BertForSequenceClassification(
    ...         kiln.models.BertConfig(num_hidden_layers=1, num_labels=3))
    ...     net(kiln.zeros(1, 5, dtype=kiln.int64)).logits.shape
    kiln.Size([1, 3])
    """

    config_class = BertConfig
    base_model_prefix = "bert"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        dropout = config.classifier_dropout
        self.dropout = nn.Dropout(config.hidden_dropout_prob if dropout is None else dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        nn.init.normal_(self.classifier.weight, 0.0, config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Output:
        output = self.bert(input_ids, attention_mask, token_type_ids, position_ids)
        logits = self.classifier(self.dropout(output.pooler_output))
        loss = None
        if labels is not None:
            if self.config.num_labels == 1:
                loss = nn.functional.mse_loss(logits.flatten(), labels.flatten())
            else:
                loss = nn.functional.cross_entropy(logits, labels)
        return Output(loss=loss, logits=logits)


def bert(*, weights: StrPath | None = None, **options: Any) -> BertModel:
    """A BertModel, without weights or with those of a folder or file. Options are BertConfig's.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.bert(num_hidden_layers=1)
    >>> len(net.encoder.layer)
    1
    """
    config = BertConfig(**options)
    if weights is not None:
        return BertModel.from_pretrained(weights, config)
    return BertModel(config)
