"""Embedding and Dropout."""

from .. import _C
from .._C import Parameter
from . import functional as F
from . import init
from .module import Module


class Embedding(Module):
    """Rows of a table by index: [..] -> [.., embedding_dim]."""

    def __init__(
        self, num_embeddings, embedding_dim, padding_idx=None, device=None, dtype=None
    ):
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"Embedding: padding_idx must be within num_embeddings; got {padding_idx} for "
                    f"{num_embeddings}"
                )
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(
            _C.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new values of the standard normal distribution; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].fill_(0)

    def forward(self, input):
        out = F.embedding(input, self.weight)
        if self.padding_idx is None or not out.requires_grad:
            return out
        # The same values, but no gradient for the padding row.
        padding = input.eq(self.padding_idx).unsqueeze(-1)
        return _C.where(padding, out.detach(), out)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Dropout(Module):
    """In training, zeroes elements with probability p and scales the others by 1 / (1 - p)."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"
