"""The table in docs/kit.md of how far off four characters a token are: it is that of the recorded sessions."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from shared_data import CORPUS, corpus_files, need

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import tokens

# Of bpe-openai, which opens its own files in a way that is old.
pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")


def test_the_table_is_what_the_command_prints(record_property: Any) -> None:
    need(CORPUS)
    formats = tokens.counted(corpus_files())
    assert tokens.table(formats) in (ROOT / "docs" / "kit.md").read_text()
    for name in formats:
        record_property(f"read: tokens of {name}", 1)


def test_the_counter_is_a_real_one() -> None:
    count = tokens.counter()
    assert (count("hello world"), count("")) == (2, 0)
    assert count("<|endoftext|>") > 1  # what a log quotes is text like any other
    assert count("\ud83d") == 1
