"""Adapters that get the name of a model alone find its address in the object that the framework has."""

from __future__ import annotations

import gc
import importlib
import logging
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import pytest
from frameworks import installed
from sessions import session

from recede import _serving

URL = "https://api.deepseek.com/v1"
HOST = "api.deepseek.com (DeepSeek)"

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is assumed of models, in lines of the log."""
    monkeypatch.setattr(_serving, "_said", set())
    caplog.set_level(logging.INFO, "recede")
    yield lambda: [line for line in caplog.messages if "a cached token costs" in line]
    gc.collect()  # what a framework has left open warns here, where that is no error


def case_of(name: str) -> Any:
    if name not in installed():
        pytest.skip(f"{name} is not installed, or another framework is tried")
    return importlib.import_module(f"case_{name}")


@pytest.mark.parametrize(("name", "way"), [("google_adk", "async"), ("google_adk", "stream"), ("inspect_ai", "async")])
def test_the_base_url_of_a_model_object_says_who_serves_it(name: str, way: str, said: Any) -> None:
    case = case_of(name)
    case.run(case.masking(keep=4), session(3), way, base_url=URL)
    assert said() and all(HOST in line for line in said())


@pytest.mark.parametrize("name", ["google_adk", "inspect_ai"])
def test_a_model_object_without_a_base_url_says_nothing_of_a_host(name: str, said: Any) -> None:
    case = case_of(name)
    case.run(case.masking(keep=4), session(3), "async")
    assert not any(HOST in line for line in said())


def test_an_agent_of_adk_inherits_the_address_of_the_model_of_its_parent(said: Any) -> None:
    case = case_of("google_adk")
    from recede.integrations import google_adk

    parent = SimpleNamespace(model=SimpleNamespace(base_url=URL), parent_agent=None)
    for agent, url in ((parent, URL), (SimpleNamespace(model="", parent_agent=parent), URL), (None, "")):
        context = SimpleNamespace(_invocation_context=SimpleNamespace(agent=agent))
        assert google_adk._url(context) == url
    assert google_adk._url(None) == "" and case.view(case.masking(), case.history(session(1)))


def test_the_api_base_of_adks_lite_llm_is_found() -> None:
    case_of("google_adk")
    lite_llm = pytest.importorskip("google.adk.models.lite_llm", reason="no litellm", exc_type=ImportError)
    from recede.integrations._shared import base_url

    assert base_url(lite_llm.LiteLlm(model="openai/deepseek-v4-pro", api_base=URL)) == URL
    assert base_url(lite_llm.LiteLlm(model="deepseek/deepseek-v4-pro")) == ""


def test_two_models_of_one_name_at_inspect_say_nothing_of_a_host() -> None:
    case = case_of("inspect_ai")
    from inspect_ai.model._model import init_active_model, init_model_roles

    from recede.integrations import inspect_ai

    def check() -> None:
        assert inspect_ai._url("recording/m") == ""  # outside of a task the hook gets a name alone
        init_active_model(case.recording(url=URL), case.GenerateConfig())
        init_model_roles({"grader": case.recording(url=URL)})
        assert (inspect_ai._url("recording/m"), inspect_ai._url("recording/other")) == (URL, "")
        init_model_roles({"grader": case.recording(url="https://api.z.ai/api/paas/v4")})
        assert inspect_ai._url("recording/m") == ""

    copy_context().run(check)
