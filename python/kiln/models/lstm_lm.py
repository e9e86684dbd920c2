"""A language model of recurrent layers, with the keys of PyTorch's word-level example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._config import Output
from ._vision import positive
from .generation import GenerationMixin

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


class LSTMLanguageModel(GenerationMixin, nn.Module):
    """Token ids [N, T] -> logits [N, T, ntoken] of each next token. rnn_type: "LSTM" or "GRU". With
    tie_weights the last layer's matrix is the embedding's.

    ninp, nhid: features of tokens and of states. nlayers: how many layers. dropout: in training.

    >>> net = kiln.models.LSTMLanguageModel(10, 4, 4, 1)
    >>> net(kiln.tensor([[1, 2, 3]])).logits.shape
    kiln.Size([1, 3, 10])
    """

    def __init__(
        self,
        ntoken: int,
        ninp: int,
        nhid: int,
        nlayers: int,
        dropout: float = 0.5,
        tie_weights: bool = False,
        rnn_type: str = "LSTM",
    ) -> None:
        super().__init__()
        positive("LSTMLanguageModel", ntoken=ntoken, ninp=ninp, nhid=nhid, nlayers=nlayers)
        if rnn_type not in ("LSTM", "GRU"):
            raise ValueError(
                f"LSTMLanguageModel: rnn_type must be 'LSTM' or 'GRU'; got {rnn_type!r}"
            )
        if tie_weights and nhid != ninp:
            raise ValueError(
                f"LSTMLanguageModel: tie_weights needs nhid equal to ninp; got {nhid} and {ninp}"
            )
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(
            ninp, nhid, nlayers, dropout=dropout if nlayers > 1 else 0.0, batch_first=True
        )
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(
        self,
        input_ids: Tensor,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Output:
        """past_key_values is the state of the recurrent layers. attention_mask [N, T] is 0 at
        padding, which stands before the tokens and changes no state."""
        x = self.drop(self.encoder(input_ids))
        if attention_mask is None or bool(attention_mask.bool().all()):
            y, state = self.rnn(x, past_key_values)
        else:
            y, state = self._padded(x, past_key_values, attention_mask.bool())
        logits = self.decoder(self.drop(y))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
            )
        return Output(loss=loss, logits=logits, past_key_values=state)

    def _padded(self, x, state, mask):
        """Rows are turned so that their tokens come first, and back."""
        length = x.shape[1]
        counts = mask.sum(1)
        steps = kiln.arange(length, device=x.device)
        if not bool((mask == (steps >= length - counts[:, None])).all()) or bool(
            (counts < 1).any()
        ):
            raise ValueError("LSTMLanguageModel: padding must stand before the tokens of each row")
        turn = (steps + (length - counts)[:, None]) % length
        packed = nn.utils.rnn.pack_padded_sequence(
            x.gather(1, turn[:, :, None].expand_as(x)),
            counts.cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        y, state = self.rnn(packed, state)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=length)
        back = (steps - (length - counts)[:, None]) % length
        return y.gather(1, back[:, :, None].expand_as(y)), state

    def _generation_step(self, ids, mask, positions, cache, use_cache, inputs):
        mask = mask if ids.shape[1] == mask.shape[1] else None
        output = self(ids, cache if use_cache else None, mask)
        return output.logits[:, -1], output.past_key_values if use_cache else None
