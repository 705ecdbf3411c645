"""The frameworks of the contract, and the points that one of them cannot keep to."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from sessions import Turn

# The case -> the module that its framework is known by.
FRAMEWORKS = {
    "anthropic": "anthropic",
    "dicts": "recede",
    "http": "openai",
    "langchain": "langchain",
    "litellm": "litellm",
    "own": "recede",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "strands": "strands",
    "agent_framework": "agent_framework",
    "google_adk": "google.adk",
    "inspect_ai": "inspect_ai",
    "crewai": "crewai",
}
SUMMARY = "test_old_turns_become_a_summary_when_that_pays_in_what_is_sent_alone"
# (case, test) -> why a framework cannot keep to it.
LIMITS: dict[tuple[str, str], str] = {
    ("http", "test_what_is_not_masked_is_the_object_given_at_this_call"): "a client is given objects, and sends bytes",
    ("http", "test_a_copy_masks_as_the_first_does"): "an HTTP client has connections",
    ("http", "test_conversations_that_are_forgotten_are_said"): "bodies are masked without a memory",
    ("own", "test_a_copy_masks_as_the_first_does"): "its classes are those of a page",
    ("dicts", "test_what_has_an_image_is_recalled_with_it_or_with_words"): "a `Masker` gives texts",
    ("dicts", "test_each_type_of_content_of_the_framework_is_counted"): "there is no framework: see test_unknown_types",
    ("dicts", "test_a_result_of_each_type_of_content_is_masked_and_recalled"): "there is no framework",
    ("http", "test_each_type_of_content_of_the_framework_is_counted"): "a transport counts nothing for its user",
    ("http", "test_a_result_of_each_type_of_content_is_masked_and_recalled"): "a transport has no tools",
    ("http", "test_the_agent_recalls_a_masked_result"): "a transport has no tools: see `Masker`",
    ("http", "test_a_template_gets_the_handle_before_its_last_character"): "a transport has no tools",
    ("http", "test_what_has_an_image_is_recalled_with_it_or_with_words"): "a transport has no tools",
    ("http", "test_each_run_recalls_its_own_text_where_all_ids_are_equal"): "a transport has no tools",
    ("http", "test_a_handle_of_another_run_is_not_known"): "a transport has no tools",
    ("dicts", "test_the_name_of_a_model_says_whose_cache_and_prices_it_has"): "a `Masker` is given the provider",
    ("own", "test_the_name_of_a_model_says_whose_cache_and_prices_it_has"): "a `Masker` is given the provider",
    ("own", "test_each_type_of_content_of_the_framework_is_counted"): "a toy has a text and images",
    ("own", "test_a_result_of_each_type_of_content_is_masked_and_recalled"): "a toy has a text and images",
    ("http", SUMMARY): "see test_request_masker",
    ("own", "test_a_retry_sends_the_same"): "the toy retries nothing",
    ("agent_framework", "test_a_retry_sends_the_same"): "a retry is in the client, which gets the messages once",
    ("google_adk", "test_a_retry_sends_the_same"): "a retry is in the model, which gets the contents once",
    ("pydantic_ai", "test_a_retry_sends_the_same"): "a retry is in the model, which gets the messages once",
    ("openai_agents", "test_a_retry_sends_the_same"): "a retry is in the model, which gets the input once",
}

# An interceptor of CrewAI is given bytes, as a transport is.
LIMITS |= {("crewai", test): reason for (case, test), reason in LIMITS.items() if case == "http" and "copy" not in test}

ONLY = os.environ.get("RECEDE_INTEGRATION")


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is its parent
        return False


def installed() -> list[str]:
    return [name for name, module in FRAMEWORKS.items() if (ONLY is None or name == ONLY) and is_installed(module)]


def of_run(case: Any, masking: Any, turns: list[Turn], way: str = "sync") -> tuple[list[Any], list[Any]]:
    requests, stored = case.run(masking, turns, way)
    return [(case.calls(request), case.results(request)) for request in requests], case.results(stored)
