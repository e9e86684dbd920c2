"""Models of SentencePiece, beside the package (tests/fixtures/make_sentence_pieces.py)."""

import json
import pathlib
import random

import pytest

import kiln
from kiln.models import SentencePiece

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "tokenizers"
EXPECTED = json.loads((FOLDER / "sentence_pieces.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_ids_and_texts_equal_those_of_the_package(name):
    tokenizer = SentencePiece.from_file(FOLDER / f"{name}.model")
    for text, ids, decoded in EXPECTED[name]["rows"]:
        assert tokenizer.encode(text) == ids, text
        assert tokenizer.decode(ids) == decoded, text
    assert tokenizer.decode(EXPECTED[name]["some"]) == EXPECTED[name]["decoded"]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_random_texts_where_the_package_is_there(kind):
    """With the normalization that models have, NFKC; it takes 240 kB of a file."""
    import io

    package = pytest.importorskip("sentencepiece")
    pages = [path.read_text() for path in sorted(FOLDER.parents[2].glob("docs/m*.md"))]
    model = io.BytesIO()
    package.SentencePieceTrainer.train(
        sentence_iterator=(line for page in pages for line in page.splitlines()),
        model_writer=model, model_type=kind, vocab_size=500, minloglevel=2, byte_fallback=True,
        user_defined_symbols=["<a>", "<abc>", "models"],
    )  # fmt: skip
    theirs = package.SentencePieceProcessor(model_proto=model.getvalue())
    ours = SentencePiece(model.getvalue())
    rng = random.Random(0)
    text = "".join(pages)
    for _ in range(300):
        start = rng.randrange(len(text))
        letters = list(text[start : start + rng.randrange(60)])
        for _ in range(rng.randrange(6)):
            code = rng.choice([rng.randrange(0x300), rng.randrange(0xD800), 0xFB00 + rng.randrange(300)])
            letters.insert(rng.randrange(len(letters) + 1), rng.choice([chr(code), "<abc>", "  "]))
        given = "".join(letters)
        assert ours.encode(given) == theirs.encode(given), given
        ids = [rng.randrange(500) for _ in range(20)]
        assert ours.decode(ids) == theirs.decode(ids)


def test_control_pieces_and_names(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes((FOLDER / "unigram_bytes.model").read_bytes())
    tokenizer = SentencePiece.from_file(tmp_path)
    assert (tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id) == (0, 1, 2, 3)
    assert len(tokenizer) == 600
    ids = tokenizer.encode("tensors", add_bos=True, add_eos=True)
    assert ids[0] == 1 and ids[-1] == 2 and tokenizer.decode(kiln.tensor(ids)) == "tensors"
    assert tokenizer.id_to_token(1) == "<s>" and tokenizer.token_to_id("<tool>") == 4
    assert tokenizer.token_to_id("nothing of the kind") is None
    # Every text comes back where bytes stand for unknown letters and nothing is normalized.
    text = "any \u00fcnicode \U0001f600 text"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def piece(text, kind=1):
    return field(1, field(1, text) + field(3, kind))


UNKNOWN = piece(b"<unk>", 2)


@pytest.mark.parametrize(
    "model, message",
    [
        (b"", "holds no pieces"),
        (piece(b"a"), "no unknown piece"),
        (UNKNOWN + UNKNOWN, "occurs twice"),
        (UNKNOWN + piece(b"x", 2), "two unknown pieces"),
        (UNKNOWN + piece(b"", 1), "from 1 to 512 bytes; got 0"),
        (UNKNOWN + piece(b"a", 9), "unknown type 9"),
        (UNKNOWN + piece(b"<0xZZ>", 6), "stands for no byte"),
        (UNKNOWN[:-1], "ends within"),
        (UNKNOWN + b"\x0b", "unknown type"),
        (UNKNOWN + b"\x08" + b"\xff" * 11, "more than ten bytes"),
        (UNKNOWN + field(3, field(2, b"\xff\xff\xff\x7fabcd")), "map of letters is cut off"),
        (UNKNOWN + field(2, b"\x98\x02\x01"), "lacks pieces for some bytes"),
        (UNKNOWN + field(2, field(3, 3)), "models of type 3"),
    ],
)
def test_what_is_refused(model, message):
    with pytest.raises(kiln.errors.Error, match=message):
        SentencePiece(model)


def test_bad_calls(tmp_path):
    tokenizer = SentencePiece(UNKNOWN + piece(b"a"))
    assert tokenizer.encode("ab") == [0, 1, 0] and tokenizer.bos_id == -1
    with pytest.raises(ValueError, match="no piece for the beginning"):
        tokenizer.encode("a", add_bos=True)
    for wrong in (-1, 2):
        with pytest.raises(IndexError, match="there is no token"):
            tokenizer.decode([wrong])
    with pytest.raises(FileNotFoundError):
        SentencePiece.from_file(tmp_path / "none.model")


def test_damaged_files_are_refused_or_read():
    good = (FOLDER / "unigram.model").read_bytes()
    rng = random.Random(1)
    for _ in range(300):
        damaged = bytearray(good)
        for _ in range(rng.randrange(1, 5)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            tokenizer = SentencePiece(bytes(damaged[: rng.randrange(len(good))]))
        except kiln.errors.Error:
            continue
        tokenizer.decode(tokenizer.encode("\uff21 tensor \ufb01 <x>"))
