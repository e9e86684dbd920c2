"""A tagger: words and their letters, packed sentences, two directions; padding does not count."""

from collections.abc import Iterable

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(1)
training_data = [
    ("The dog ate the apple".split(), ["DET", "NN", "V", "DET", "NN"]),
    ("Everybody read that book".split(), ["NN", "V", "DET", "NN"]),
    ("The quick brown fox saw it".split(), ["DET", "ADJ", "ADJ", "NN", "V", "NN"]),
    ("It slept".split(), ["NN", "V"]),
]
tag_to_ix: dict[str, int]
word_to_ix, tag_to_ix, char_to_ix = {"<pad>": 0}, {}, {"<pad>": 0}
for sent, tags in training_data:
    for word in sent:
        word_to_ix.setdefault(word, len(word_to_ix))
        for c in word:
            char_to_ix.setdefault(c, len(char_to_ix))
    for tag in tags:
        tag_to_ix.setdefault(tag, len(tag_to_ix))


def prepare_sequence(seq: Iterable[str], to_ix: dict[str, int]) -> Tensor:
    return torch.tensor([to_ix[w] for w in seq], dtype=torch.long)


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim: int, hidden_dim: int, char_dim: int) -> None:
        super(LSTMTagger, self).__init__()
        self.word_embeddings = nn.Embedding(len(word_to_ix), embedding_dim, padding_idx=0)
        self.char_embeddings = nn.Embedding(len(char_to_ix), char_dim, padding_idx=0)
        self.char_rnn = nn.GRU(char_dim, char_dim, batch_first=True)
        self.lstm = nn.LSTM(
            embedding_dim + char_dim, hidden_dim, num_layers=2, bidirectional=True, batch_first=True
        )
        self.hidden2tag = nn.Linear(2 * hidden_dim, len(tag_to_ix))

    def forward(
        self, sentences: Tensor, lengths: list[int], words: list[str]
    ) -> tuple[Tensor, Tensor]:
        chars = pad_sequence([prepare_sequence(w, char_to_ix) for w in words], batch_first=True)
        sizes = [len(w) for w in words]
        packed = pack_padded_sequence(
            self.char_embeddings(chars), sizes, batch_first=True, enforce_sorted=False
        )
        _, last = self.char_rnn(packed)
        letters = pad_sequence(torch.split(last[0], lengths), batch_first=True)
        embeds = torch.cat([self.word_embeddings(sentences), letters], dim=-1)
        packed = pack_padded_sequence(embeds, lengths, batch_first=True, enforce_sorted=False)
        lstm_out, (h_n, _) = self.lstm(packed)
        padded, _ = pad_packed_sequence(lstm_out, batch_first=True)
        return F.log_softmax(self.hidden2tag(padded), dim=-1), h_n


model = LSTMTagger(8, 6, 4)
rng = np.random.default_rng(6)
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape))))
with torch.no_grad():
    model.word_embeddings.weight[0].fill_(0)
    model.char_embeddings.weight[0].fill_(0)
loss_function = nn.NLLLoss(ignore_index=-100)
optimizer = optim.SGD(model.parameters(), lr=0.5)
sentences = pad_sequence(
    [prepare_sequence(s, word_to_ix) for s, _ in training_data], batch_first=True, padding_value=0
)
targets = pad_sequence(
    [prepare_sequence(t, tag_to_ix) for _, t in training_data], batch_first=True, padding_value=-100
)
lengths = [len(s) for s, _ in training_data]
words = [w for s, _ in training_data for w in s]
for epoch in range(20):
    model.zero_grad()
    tag_scores, h_n = model(sentences, lengths, words)
    loss = loss_function(tag_scores.view(-1, len(tag_to_ix)), targets.view(-1))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 5)
    optimizer.step()
    print("loss", loss.item(), norm.item(), h_n.abs().sum().item())
grad = model.word_embeddings.weight.grad
assert grad is not None and grad[0].abs().sum() == 0
with torch.no_grad():
    tag_scores, _ = model(sentences, lengths, words)
    print("tags", *tag_scores.argmax(-1)[targets != -100].tolist())
