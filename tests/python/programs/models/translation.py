"""Translation by nn.Transformer: positions, masks of padding, teacher forcing, greedy decoding."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor

PAD_IDX, BOS_IDX, EOS_IDX = 0, 1, 2
rng = np.random.default_rng(7)


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size: int, dropout: float, maxlen: int = 50) -> None:
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding.unsqueeze(-2))

    def forward(self, token_embedding: Tensor) -> Tensor:
        return self.dropout(token_embedding + self.pos_embedding[: token_embedding.size(0), :])


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size: int, emb_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.emb_size = emb_size

    def forward(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens.long()) * math.sqrt(self.emb_size)


class Seq2SeqTransformer(nn.Module):
    def __init__(
        self, layers: int, emb_size: int, nhead: int, vocab_size: int, dim_feedforward: int
    ) -> None:
        super().__init__()
        self.transformer = nn.Transformer(
            d_model=emb_size,
            nhead=nhead,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            dim_feedforward=dim_feedforward,
            dropout=0.0,
        )
        self.generator = nn.Linear(emb_size, vocab_size)
        self.src_tok_emb = TokenEmbedding(vocab_size, emb_size)
        self.tgt_tok_emb = TokenEmbedding(vocab_size, emb_size)
        self.positional_encoding = PositionalEncoding(emb_size, dropout=0.0)

    def forward(
        self,
        src: Tensor,
        trg: Tensor,
        src_mask: Tensor,
        tgt_mask: Tensor,
        src_pad: Tensor,
        tgt_pad: Tensor,
        memory_pad: Tensor,
    ) -> Tensor:
        src_emb = self.positional_encoding(self.src_tok_emb(src))
        tgt_emb = self.positional_encoding(self.tgt_tok_emb(trg))
        outs = self.transformer(
            src_emb, tgt_emb, src_mask, tgt_mask, None, src_pad, tgt_pad, memory_pad
        )
        return self.generator(outs)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        src_emb = self.positional_encoding(self.src_tok_emb(src))
        memory: Tensor = self.transformer.encoder(src_emb, src_mask)
        return memory

    def decode(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor) -> Tensor:
        tgt_emb = self.positional_encoding(self.tgt_tok_emb(tgt))
        outs: Tensor = self.transformer.decoder(tgt_emb, memory, tgt_mask)
        return outs


def generate_square_subsequent_mask(sz: int) -> Tensor:
    mask = (torch.triu(torch.ones((sz, sz))) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))


def create_mask(src: Tensor, tgt: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    tgt_mask = generate_square_subsequent_mask(tgt.shape[0]) != 0
    src_mask = torch.zeros((src.shape[0], src.shape[0])).type(torch.bool)
    return src_mask, tgt_mask, (src == PAD_IDX).transpose(0, 1), (tgt == PAD_IDX).transpose(0, 1)


def batch(n: int = 12) -> tuple[Tensor, Tensor]:
    """Numbers, and the same backwards."""
    src: list[Tensor] = []
    tgt: list[Tensor] = []
    for length in map(int, rng.integers(2, 7, n)):
        words = torch.from_numpy(rng.integers(3, 12, length))
        ends = torch.tensor([BOS_IDX]), torch.tensor([EOS_IDX])
        src.append(torch.cat((ends[0], words, ends[1])))
        tgt.append(torch.cat((ends[0], words.flip(0), ends[1])))
    pad = nn.utils.rnn.pad_sequence
    return pad(src, padding_value=PAD_IDX), pad(tgt, padding_value=PAD_IDX)


def greedy_decode(model: Seq2SeqTransformer, src: Tensor, max_len: int) -> Tensor:
    memory = model.encode(src, torch.zeros(src.shape[0], src.shape[0]).type(torch.bool))
    ys = torch.ones(1, 1).fill_(BOS_IDX).type(torch.long)
    for _ in range(max_len - 1):
        tgt_mask = generate_square_subsequent_mask(ys.size(0)).type(torch.bool)
        out = model.decode(ys, memory, tgt_mask).transpose(0, 1)
        _, best = torch.max(model.generator(out[:, -1]), dim=1)
        next_word = best.item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=0)
    return ys


model = Seq2SeqTransformer(layers=2, emb_size=16, nhead=2, vocab_size=12, dim_feedforward=32)
for p in model.parameters():
    if p.dim() > 1:
        bound = math.sqrt(6 / sum(p.shape))
        p.data = torch.tensor(rng.uniform(-bound, bound, tuple(p.shape)), dtype=torch.float32)
    elif p.shape[0] != 16:
        nn.init.zeros_(p)
for layer in model.modules():
    if isinstance(layer, nn.Linear) and layer.bias is not None:
        nn.init.zeros_(layer.bias)
loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD_IDX)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003, betas=(0.9, 0.98), eps=1e-9)
model.train()
for step in range(20):
    src, tgt = batch()
    tgt_input = tgt[:-1, :]
    src_mask, tgt_mask, src_pad, tgt_pad = create_mask(src, tgt_input)
    logits = model(src, tgt_input, src_mask, tgt_mask, src_pad, tgt_pad, src_pad)
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1))
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
model.eval()
with torch.no_grad():
    print("writes", *greedy_decode(model, torch.tensor([[1], [5], [6], [2]]), 6).flatten().tolist())
