"""`recede models`: what is assumed of a model at a host, and why."""

from __future__ import annotations

import json

import pytest
from children import recede_command

from recede.costs import MODELS, assumed_model


def test_one_model_is_told_in_words() -> None:
    done = recede_command("models", "claude-opus-4-8", "--host", "api.deepseek.com", "--form", "anthropic")
    line, dollars, *_ = done.stdout.decode().splitlines()
    assert line == (
        "'claude-opus-4-8' at api.deepseek.com (DeepSeek): a cached token costs 0.033, cache of whole entries, "
        "never cold (by the host)"
    )
    assert dollars.startswith("A million tokens cost $") and "api-docs.deepseek.com" in dollars


def test_a_model_that_nobody_knows_has_no_dollars() -> None:
    done = recede_command("models", "of-tomorrow", "--host", "https://llm.example.com/v1")
    assert "never cold (neither host nor model is known; with a smaller price" in done.stdout.decode()
    assert done.stdout.decode().splitlines()[1:] == ["Its prices in dollars are not known."]


def test_without_a_name_there_is_a_row_for_each_model() -> None:
    lines = recede_command("models", columns=200).stdout.decode().splitlines()
    assert {line.split()[0] for line in lines if line.split()} >= MODELS.keys()
    found = json.loads(recede_command("models", "--json").stdout)
    assert found.keys() == MODELS.keys() and found["glm-5.3"]["provider"]["ttl_seconds"] is None


def test_a_form_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no form 'converse'"):
        assumed_model("kimi-k3", form="converse")
