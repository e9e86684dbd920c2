"""Reads `.model` files of SentencePiece, as Llama 2, Gemma and T5 have them. The work is C++'s
(kiln/text/sentence_piece.h)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kiln._C._tokenizers import SentencePiece as _SentencePiece

if TYPE_CHECKING:
    from typing import Any, Self

    from .._typing import StrPath


class SentencePiece(_SentencePiece):
    """Texts to token ids and back: unigram and BPE models, with their rules of normalization.

    tokenizer = SentencePiece.from_file("tokenizer.model")
    ids = tokenizer.encode("Hello", add_bos=True)
    tokenizer.decode(ids)

    Raises an error for what is no model.

    >>> try:
    ...     kiln.models.SentencePiece(b"no model")
    ... except kiln.Error:
    ...     print("no model")
    no model
    """

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """The tokenizer of a file, or of a folder that holds `tokenizer.model`."""
        path = os.fspath(path)
        if os.path.isdir(path):
            path = os.path.join(path, "tokenizer.model")
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > 256 << 20:
                raise ValueError(f"SentencePiece: {path!r} is larger than 256 MiB")
            return cls(file.read())

    def decode(self, ids: Any) -> str:
        """The text of ids. Control tokens have none."""
        return self._decode(ids.tolist() if hasattr(ids, "tolist") else list(ids))
