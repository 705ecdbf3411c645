"""`recede.summarizers.gemini` with Google's client, against a server on this machine that answers as Gemini does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

genai = pytest.importorskip("google.genai", reason="google-genai is not installed")

import recede
from provider_rules import fault
from recede._question import UnfinishedError
from support import SUMMARY

HIDDEN = [{"role": "model", "parts": [{"text": "I look at a.py."}]}]


@contextmanager
def answering(answer: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({**body, "path": self.path})
            words = fault("gemini", body)
            data = json.dumps({"error": {"message": words}} if words else answer).encode()
            self.send_response(400 if words else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("text", [SUMMARY, ""])
def test_the_model_is_asked_for_the_summary(monkeypatch: pytest.MonkeyPatch, is_async: bool, text: str) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")  # which this client reads even if it is empty
    parts = [{"text": text}] if text else []
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    with answering({"candidates": [candidate]}) as (url, asked):
        client = genai.Client(api_key="none", http_options={"base_url": url})
        summarizer: Any = recede.summarizers.gemini(
            client.aio if is_async else client, "gemini-2.5-flash", max_tokens=99
        )

        def answer() -> Any:
            answer = summarizer(HIDDEN, "It began.")
            return asyncio.run(answer) if is_async else answer

        if text:
            assert answer() == text
        else:
            with pytest.raises(UnfinishedError, match="has no text"):
                answer()
    (request,) = asked
    assert request["path"].endswith("models/gemini-2.5-flash:generateContent")
    assert request["systemInstruction"]["parts"] == [{"text": recede.summarizers.PROMPT}]
    assert request["generationConfig"]["maxOutputTokens"] == 6_099
    told = request["contents"][0]["parts"][0]["text"]
    assert told == "The summary so far:\n\nIt began.\n\n[assistant] I look at a.py."
