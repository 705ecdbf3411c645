"""What the real clients answer with goes into a history as it is, and comes out as the provider takes it back."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from openai.types.responses import Response

import recede
from provider_server import Answer, call, calls, serving, text, thought
from recede import History
from support import result, tool_result, user

SAID = [thought("hm\n é"), {"type": "text", "text": "I look."}, call("run", {"path": "é"}, id="toolu_1")]


def test_messages_of_anthropic() -> None:
    history = History(keep=3)
    history.append(user("Go."))
    with serving(Answer(SAID, "tool_use"), text("Done.")) as server:
        with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
            request: dict[str, Any] = {"model": "m", "max_tokens": 9}
            response = client.messages.create(messages=history.view(), **request)
            history.append(response)
            history.append(user([tool_result("toolu_1", "x")]))
            again = client.messages.create(messages=history.view(), **request)
            # The form of Anthropic's own examples.
            history.append({"role": "assistant", "content": again.content})
            # And what streams give.
            server.script += [text("Well.")]
            history.append(user("And?"))
            with client.messages.stream(messages=history.view(), **request) as stream:
                history.append(stream.get_final_message())
        assert server.refusals == []
    assert history[1] == {"role": "assistant", "content": SAID}
    assert history[3] == {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    assert history[5]["content"][0]["text"] == "Well."
    assert history.recall("toolu_1") == "x"
    assert history.view() == history.messages == json.loads(history.view_json())


def test_messages_of_openai() -> None:
    history = History(keep=3)
    history.append(user("Go."))
    with serving(calls(call("run", id="1")), text("Done.")) as server:
        with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
            history.append(client.chat.completions.create(model="m", messages=history.view()))
            history.append(result("1", "x"))
            completion = client.chat.completions.create(model="m", messages=history.view())
            history.append(completion.choices[0].message)
            history.append(user("And?"))
            server.script.append(text("Well."))
            client.chat.completions.create(model="m", messages=history.view())
        assert server.refusals == []
    assert history[1]["content"] is None
    assert history[1]["tool_calls"][0]["function"] == {"name": "run", "arguments": "{}"}
    assert history[3]["content"] == "Done."
    assert recede.check_pairs(history.messages).is_whole


def test_items_of_a_response() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "1",
            "name": "run",
            "arguments": "{}",
            "status": "completed",
        },
    ]
    response = Response.model_construct(object="response", output=items)
    for give in (lambda history: history.append(response), lambda history: history.extend(response.output)):
        history = History()
        give(history)
        history.append({"type": "function_call_output", "call_id": "1", "output": "x"})
        assert history[:2] == items
        assert recede.check_pairs(history.messages).is_whole


def test_what_json_has_no_form_for_is_refused_and_named() -> None:
    history = History()
    with pytest.raises(TypeError, match="a message holds a set"):
        history.append({"role": "user", "content": {1}})
    with pytest.raises(TypeError, match="a message holds a object"):
        history.append(user([object()]))
    assert len(history) == 0
