"""Reads `tokenizer.json`, the format of Hugging Face's tokenizers: byte-level BPE, as GPT-2 and
Llama 3 have it, and WordPiece, as BERT has it."""

from __future__ import annotations

import functools
import json
import os
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from .._typing import StrPath

_MAX_BYTES = 256 << 20


class Tokenizer:
    """Texts to token ids and back.

    tokenizer = Tokenizer.from_file("tokenizer.json")
    ids = tokenizer.encode("Hello")
    tokenizer.decode(ids)

    >>> model = {"type": "WordPiece", "vocab": {"[UNK]": 0, "hi": 1, "you": 2}, "unk_token": "[UNK]"}
    >>> tokenizer = kiln.models.Tokenizer({"model": model, "pre_tokenizer": {"type": "BertPreTokenizer"}})
    >>> tokenizer.encode("hi you")
    [1, 2]
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        if not isinstance(values, dict) or not isinstance(values.get("model"), dict):
            raise ValueError("Tokenizer: expected the values of a tokenizer.json")
        model = values["model"]
        vocab = _member(model, "vocab", dict, "model")
        if not vocab or not all(type(i) is int and i >= 0 for i in vocab.values()):
            raise ValueError("Tokenizer: model.vocab must give each token an id of at least 0")
        self._ids = dict(vocab)
        self._added: dict[str, int] = {}
        self._special: set[Any] = set()
        for token in values.get("added_tokens") or []:
            content, number = _member(token, "content", str, "added_tokens"), token.get("id")
            if not content or type(number) is not int or number < 0:
                raise ValueError("Tokenizer: an added token needs a content and an id")
            self._added[content] = number
            if token.get("special"):
                self._special.add(number)
        self._tokens = {i: token for token, i in {**self._ids, **self._added}.items()}
        kind = model.get("type", "BPE" if "merges" in model else "WordPiece")
        if kind == "BPE":
            self._split_word: Any = _BPE(model, self._ids)
        elif kind == "WordPiece":
            self._split_word = _WordPiece(model, self._ids)
        else:
            raise NotImplementedError(
                f"Tokenizer: model.type must be BPE or WordPiece; got {kind!r}"
            )
        self._normalize = _normalizer(values.get("normalizer"))
        self._pre_split = _pre_tokenizer(values.get("pre_tokenizer"))
        self._wrap = _post_processor(values.get("post_processor"))
        decoder = values.get("decoder") or {}
        self._decoder, self._clean = decoder.get("type"), decoder.get("cleanup", True)
        self._joined_prefix = decoder.get("prefix") or "##"
        self._pattern = None
        if self._added:
            longest = sorted(self._added, key=len, reverse=True)
            self._pattern = re.compile("(" + "|".join(map(re.escape, longest)) + ")")

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """The tokenizer of a `tokenizer.json`, or of a folder that holds one."""
        path = os.fspath(path)
        if os.path.isdir(path):
            path = os.path.join(path, "tokenizer.json")
        if os.path.getsize(path) > _MAX_BYTES:
            raise ValueError(f"Tokenizer: {path!r} is larger than {_MAX_BYTES} bytes")
        with open(path, encoding="utf-8") as file:
            try:
                return cls(json.load(file))
            except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ValueError(f"Tokenizer: {path!r} is no JSON: {error}") from None

    def __len__(self) -> int:
        return len(self._tokens)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        return self._added.get(token, self._ids.get(token))

    def id_to_token(self, number: int) -> str | None:
        """The token of an id, or None."""
        return self._tokens.get(number)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text; with what the model wants around it unless told otherwise."""
        ids = []
        for i, part in enumerate(self._pattern.split(text) if self._pattern else [text]):
            if i % 2:
                ids.append(self._added[part])
            elif part:
                for word in self._pre_split(self._normalize(part)):
                    ids.extend(self._split_word(word))
        return self._wrap(ids) if add_special_tokens else ids

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        """The text of ids."""
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        out: list[str] = []
        plain: list[Any] = []

        def flush():
            if plain:
                out.append(self._join(plain))
                plain.clear()

        for number in ids:
            token = self._tokens.get(number)
            if token is None:
                raise IndexError(f"Tokenizer: there is no token {number}")
            if number in self._special and skip_special_tokens:
                continue
            if token in self._added and token not in self._ids and self._decoder == "ByteLevel":
                flush()
                out.append(token)
            else:
                plain.append(token)
        flush()
        return "".join(out)

    def _join(self, tokens):
        if self._decoder == "WordPiece":
            first, *rest = tokens
            prefix = self._joined_prefix
            words = [t.removeprefix(prefix) if t.startswith(prefix) else " " + t for t in rest]
            words.insert(0, first)
            return "".join(map(_cleaned_up, words) if self._clean else words)
        if self._decoder == "ByteLevel":
            back = _bytes_of_letters()
            raw = bytearray()
            for letter in "".join(tokens):
                raw += bytes([back[letter]]) if letter in back else letter.encode()
            return raw.decode("utf-8", errors="replace")
        return " ".join(tokens)


def _cleaned_up(token):
    """A token without the space before it, which some marks have not."""
    for text in (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " do not", " 's", " 've", " 're"):
        token = token.replace(text, " don't" if text == " do not" else text.strip())
    return token


def _member(values, name, kind, where):
    value = values.get(name) if isinstance(values, dict) else None
    if not isinstance(value, kind):
        raise ValueError(f"Tokenizer: {where} must have {name!r}, a {kind.__name__}")
    return value


class _BPE:
    """Joins the pair of neighbours learned first, again and again (Sennrich et al., 2016)."""

    def __init__(self, model, ids):
        self.ids = ids
        self.ranks = {}
        for rank, merge in enumerate(_member(model, "merges", list, "model")):
            pair = tuple(merge.split(" ") if isinstance(merge, str) else merge)
            if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
                raise ValueError(f"Tokenizer: merge {rank} is no pair of tokens; got {merge!r}")
            self.ranks.setdefault(pair, rank)
        self.unknown = model.get("unk_token")
        self.whole = bool(model.get("ignore_merges"))
        self.split = functools.lru_cache(maxsize=1 << 16)(self._split)

    def __call__(self, word):
        return self.split(word)

    def _split(self, word):
        if self.whole and word in self.ids:
            return (self.ids[word],)
        parts = list(word)
        while len(parts) > 1:
            never = len(self.ranks)
            ranks = [self.ranks.get(pair, never) for pair in zip(parts, parts[1:])]
            best = min(ranks)
            if best == never:
                break
            joined, i = [], 0
            while i < len(parts):
                if i < len(ranks) and ranks[i] == best:
                    joined.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    joined.append(parts[i])
                    i += 1
            parts = joined
        return tuple(i for part in parts for i in self._id(part))

    def _id(self, part):
        if part in self.ids:
            return (self.ids[part],)
        return (self.ids[self.unknown],) if self.unknown in self.ids else ()


class _WordPiece:
    """The longest token that begins the word, then the longest that goes on, and so forth."""

    def __init__(self, model, ids):
        self.ids = ids
        self.unknown = model.get("unk_token", "[UNK]")
        self.prefix = model.get("continuing_subword_prefix", "##")
        self.longest = model.get("max_input_chars_per_word", 100)
        if self.unknown not in ids:
            raise ValueError(f"Tokenizer: model.vocab lacks the unknown token {self.unknown!r}")

    def __call__(self, word):
        if len(word) > self.longest:
            return [self.ids[self.unknown]]
        out, start = [], 0
        while start < len(word):
            prefix = self.prefix if start else ""
            for end in range(len(word), start, -1):
                if prefix + word[start:end] in self.ids:
                    break
            else:
                return [self.ids[self.unknown]]
            out.append(self.ids[prefix + word[start:end]])
            start = end
        return out


def _unknown_part(what, kind, known):
    raise NotImplementedError(f"Tokenizer: {what} must be one of {', '.join(known)}; got {kind!r}")


def _normalizer(values):
    kind = (values or {}).get("type")
    if kind is None:
        return lambda text: text
    if kind == "Sequence":
        steps = [_normalizer(step) for step in _member(values, "normalizers", list, kind)]
        return lambda text: functools.reduce(lambda t, step: step(t), steps, text)
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return functools.partial(unicodedata.normalize, kind)
    if kind == "Lowercase":
        return lambda text: "".join(map(str.lower, text))
    if kind == "BertNormalizer":
        return functools.partial(_bert_normalized, values)
    _unknown_part(
        "normalizer",
        kind,
        ["Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "BertNormalizer"],
    )


def _bert_normalized(values, text):
    if values.get("clean_text", True):
        kept = []
        for letter in text:
            category = unicodedata.category(letter)
            if letter in "\t\n\r" or category[0] == "Z":
                kept.append(" ")
            elif letter not in "\0\ufffd" and category not in ("Cc", "Cf", "Co"):
                kept.append(letter)  # also what this version of Unicode does not know
        text = "".join(kept)
    if values.get("handle_chinese_chars", True):
        text = "".join(f" {x} " if _is_chinese(ord(x)) else x for x in text)
    lower = values.get("lowercase", True)
    strip = values.get("strip_accents")
    if lower if strip is None else strip:
        text = unicodedata.normalize("NFD", text)
        text = "".join(x for x in text if unicodedata.category(x) != "Mn")
    # Letter by letter: a sigma at the end of a word is one like any other.
    return "".join(map(str.lower, text)) if lower else text


def _is_chinese(code):
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F))
    blocks += ((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(low <= code <= high for low, high in blocks)


# How GPT-2 splits a text into words.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _pre_tokenizer(values):
    kind = (values or {}).get("type")
    if kind is None:
        return lambda text: [text]
    if kind == "Sequence":
        steps = [_pre_tokenizer(step) for step in _member(values, "pretokenizers", list, kind)]
        return lambda text: functools.reduce(
            lambda words, step: [part for word in words for part in step(word)], steps, [text]
        )
    if kind == "ByteLevel":
        return functools.partial(_byte_level, values, _compiled(_GPT2))
    if kind == "Split":
        pattern = _member(values, "pattern", dict, kind)
        if "Regex" in pattern:
            expression = _compiled(_member(pattern, "Regex", str, kind))
        else:
            expression = re.compile(re.escape(_member(pattern, "String", str, kind)))
        behaviour, invert = values.get("behavior"), bool(values.get("invert"))
        if behaviour not in ("Isolated", "Removed"):
            _unknown_part("behavior of Split", behaviour, ["Isolated", "Removed"])
        return functools.partial(_split, expression, behaviour == "Removed", invert)
    if kind == "BertPreTokenizer":
        return _bert_words
    _unknown_part("pre_tokenizer", kind, ["Sequence", "ByteLevel", "Split", "BertPreTokenizer"])


def _split(expression, removed, invert, text):
    """The matches and what lies between them; `removed` leaves out the matches, with invert the
    rest."""
    out, last = [], 0
    for match in expression.finditer(text):
        if match.start() > last and not (removed and invert):
            out.append(text[last : match.start()])
        if match.group() and not (removed and not invert):
            out.append(match.group())
        last = match.end()
    if last < len(text) and not (removed and invert):
        out.append(text[last:])
    return out


def _byte_level(values, expression, text):
    if values.get("add_prefix_space", True) and not text.startswith(" "):
        text = " " + text
    words = _split(expression, False, False, text) if values.get("use_regex", True) else [text]
    letters = _letters_of_bytes()
    return ["".join(letters[byte] for byte in word.encode()) for word in words]


def _bert_words(text):
    out, word = [], ""
    for letter in text:
        mark = _is_punctuation(letter)
        if mark or letter.isspace():
            if word:
                out.append(word)
            word = ""
            if mark:
                out.append(letter)
        else:
            word += letter
    return [*out, word] if word else out


def _is_punctuation(letter):
    ascii_mark = letter.isascii() and letter.isprintable() and not letter.isalnum()
    return (ascii_mark and letter != " ") or unicodedata.category(letter)[0] == "P"


@functools.lru_cache(maxsize=None)
def _letters_of_bytes():
    """A printable letter for each byte: itself where it is one, otherwise one from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain}
    letters.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return letters


@functools.lru_cache(maxsize=None)
def _bytes_of_letters():
    return {letter: byte for byte, letter in _letters_of_bytes().items()}


@functools.lru_cache(maxsize=None)
def _ranges(category):
    """The letters of a Unicode category, as the inside of a character class."""
    out, first = [], None
    for code in range(0x110001):
        inside = code < 0x110000 and unicodedata.category(chr(code)).startswith(category)
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            out.append(f"\\U{first:08x}-\\U{code - 1:08x}")
            first = None
    return "".join(out)


@functools.lru_cache(maxsize=64)
def _compiled(pattern):
    """The pattern, with \\p{L} and the like written out."""
    out, i, inside = [], 0, False
    while i < len(pattern):
        match = re.match(r"\\p\{(\w{1,2})\}", pattern[i:])
        if match:
            letters = _ranges(match.group(1))
            out.append(letters if inside else f"[{letters}]")
            i += match.end()
            continue
        if pattern[i] == "\\":
            out.append(pattern[i : i + 2])
            i += 2
            continue
        inside = pattern[i] != "]" if inside else pattern[i] == "["
        out.append(pattern[i])
        i += 1
    try:
        return re.compile("".join(out))
    except re.error as error:
        raise ValueError(f"Tokenizer: a pattern cannot be read: {error}") from None


def _post_processor(values):
    kind = (values or {}).get("type")
    if kind is None or kind == "ByteLevel":
        return lambda ids: ids
    if kind == "Sequence":
        steps = [_post_processor(step) for step in _member(values, "processors", list, kind)]
        return lambda ids: functools.reduce(lambda x, step: step(x), steps, ids)
    if kind in ("BertProcessing", "RobertaProcessing"):
        before, after = _member(values, "cls", list, kind)[1], _member(values, "sep", list, kind)[1]
        return lambda ids: [before, *ids, after]
    if kind == "TemplateProcessing":
        special = _member(values, "special_tokens", dict, kind)
        parts = []
        for part in _member(values, "single", list, kind):
            if "SpecialToken" in part:
                parts.append(list(special[part["SpecialToken"]["id"]]["ids"]))
            else:
                parts.append(None)
        return lambda ids: [i for part in parts for i in (ids if part is None else part)]
    known = ["Sequence", "ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing"]
    _unknown_part("post_processor", kind, known)
