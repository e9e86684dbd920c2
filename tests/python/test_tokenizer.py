"""Tokenizers from files, beside the package tokenizers (tests/fixtures/make_tokenizers.py)."""

import json
import pathlib

import pytest

from kiln.models import Tokenizer

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "tokenizers"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_ids_and_texts_equal_those_of_the_package(name):
    tokenizer = Tokenizer.from_file(FOLDER / f"{name}.json")
    for text, ids, bare, decoded in EXPECTED[name]:
        assert list(tokenizer.encode(text)) == ids, text
        assert list(tokenizer.encode(text, add_special_tokens=False)) == bare, text
        assert tokenizer.decode(ids) == decoded


def test_bytes_come_back(tmp_path):
    (tmp_path / "tokenizer.json").write_text((FOLDER / "gpt2.json").read_text())
    tokenizer = Tokenizer.from_file(tmp_path)
    text = "any \u00fcnicode \U0001f600 text\n"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.id_to_token(tokenizer.token_to_id("<|end|>")) == "<|end|>"
    assert tokenizer.token_to_id("nothing of the kind") is None and len(tokenizer) == 500


def changed(**changes):
    values = json.loads((FOLDER / "gpt2.json").read_text())
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = values
        for folder in folders:
            place = place[folder]
        place[last] = value
    return values


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model": None}, "expected the values"),
        ({"model__vocab": {}}, "model.vocab must give"),
        ({"model__vocab": {"a": -1}}, "model.vocab must give"),
        ({"model__vocab": []}, "must have 'vocab'"),
        ({"model__merges": [["a"]]}, "merge 0 is no pair"),
        ({"model__merges": {}}, "must have 'merges'"),
        ({"model__type": "Unigram"}, "model.type must be BPE or WordPiece; got 'Unigram'"),
        ({"added_tokens": [{"id": 1}]}, "must have 'content'"),
        ({"pre_tokenizer": {"type": "Magic"}}, "pre_tokenizer must be one of .*; got 'Magic'"),
        ({"normalizer": {"type": "Magic"}}, "normalizer must be one of"),
        ({"post_processor": {"type": "Magic"}}, "post_processor must be one of"),
        (
            {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}},
            "a pattern cannot be read",
        ),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        Tokenizer(changed(**changes))


def test_bad_files(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        Tokenizer.from_file(path)
    path.write_text("[" * 100000)
    with pytest.raises(ValueError, match="is no JSON"):
        Tokenizer.from_file(path)
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_file(tmp_path / "none.json")
    tokenizer = Tokenizer.from_file(FOLDER / "gpt2.json")
    with pytest.raises(IndexError, match="no token 99999"):
        tokenizer.decode([99999])
