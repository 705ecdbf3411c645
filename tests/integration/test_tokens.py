"""What counts the tokens of docs/measured.md."""

from __future__ import annotations

import sys

import pytest

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import tokens

# Of bpe-openai, which opens its own files in a way that is old.
pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")


def test_the_counter_is_a_real_one() -> None:
    count = tokens.counter()
    assert (count("hello world"), count("")) == (2, 0)
    assert count("<|endoftext|>") > 1  # what a log quotes is text like any other
    assert count("\ud83d") == 1
