"""Thinking: its signature, who reads it, and the prefix to which it is bound.

A block says which blocks were shown before it. What comes back is valid if the blocks before it are an unbroken run of
these that ends with the same one: blocks may go from the start, and stay out once the model has thought without them.
"""

from __future__ import annotations

import hashlib
import re

from provider_rules.anthropic.request import THINKING, Block, Request
from provider_rules.base import RefusedError, check, demand
from provider_rules.signatures import UNBOUND, Prefix, Signed, read, signature_of, tools_in_order

CONTROLS = "thinking-binding-controls-2026-08-01"
_VERIFIES = {"fable": (5, 1), "mythos": (5, 1)}  # others from 5.5
_REFUSES_ALL = {"fable": (5, 2), "mythos": (5, 2)}
_NONCE = "x-anthropic-billing-header:"
_SHOWN = re.compile(r'"(thinking|signature|reasoning_content|encrypted_content|thoughtSignature)"\s*:|¶think:')


def verifies(request: Request) -> bool:
    return request.version >= _VERIFIES.get(request.family, (5, 5))


def reads(request: Request, maker: str) -> bool:
    """Whether a model may read what another thought: its own, older ones of its family; Fable also Opus."""
    if not verifies(request) or maker == request.model or "haiku-5-5" in maker:
        return True
    if not maker:
        return False
    made = Request({"model": maker, "max_tokens": 1, "messages": [{"role": "user", "content": "."}]})
    if made.family == request.family:
        return made.version <= request.version
    return made.family in {"fable": ("opus",), "mythos": ("fable", "opus")}.get(request.family, ())


def behavior(request: Request) -> str | None:
    """What a failed check does: "error", "drop_block", or None where it is only noted."""
    asked = ((request.body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior")
    if asked or request.account.is_new or "block_binding" in (request.body.get("thinking") or {}):
        return asked or "error"
    floor = _REFUSES_ALL.get(request.family)
    return "error" if floor and request.version >= floor else None


@check
def controls_need_their_beta(request: Request) -> None:
    has_controls = "block_binding" in (request.body.get("thinking") or {})
    is_allowed = request.betas is None or CONTROLS in request.betas
    demand(is_allowed or not has_controls, "thinking.block_binding: Extra inputs are not permitted")


@check
def signatures_are_ours(request: Request) -> None:
    for at, place, block in request.each:
        if block["type"] in THINKING:
            where = f"messages.{at}.content.{place}"
            demand(_said(block), f"{where}: Invalid `signature` in `{block['type']}` block")


@check
def unreadable_thinking_is_dropped(request: Request) -> None:
    """Of another model or account: unbilled, and valid again when the conversation returns."""
    for at, place, block in request.each:
        said = _said(block) if block["type"] in THINKING else None
        if said and said.account not in ("", request.account.name):
            _drop(request, at, place, "organization_binding_mismatch")
        elif said and not reads(request, said.model):
            _drop(request, at, place, "model_binding_mismatch")


@check
def thinking_is_bound_to_its_prefix(request: Request) -> None:
    if not (verifies(request) and request.thinks):
        return
    newest = newest_compaction(request)
    prefix, shown, does = _begun(request), list[str](), behavior(request)
    for at, message in enumerate(request.messages):
        if at == newest:
            prefix = _begun(request)
        before = prefix.hex()
        for place, block in enumerate(request.blocks[at]):
            if block["type"] == "fallback":
                shown = ["fallback"]
            if block["type"] not in THINKING:
                prefix.add(message["role"], block)
                continue
            if (at, place) in request.left_out or at < newest:
                continue
            said = _said(block) or UNBOUND
            fault = "" if said.prefix == before else _difference(request, said)
            if not fault and not _continues(said.before, shown):
                fault = "The thinking blocks before it differ from the ones this block was created with."
            if fault and does == "error":
                raise RefusedError(
                    f"messages.{at}.content.{place}: Invalid `signature` in `{block['type']}` block. The block is "
                    "bound to a different conversation. Remove the block, or set "
                    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the '
                    f"`{CONTROLS}` value in the `anthropic-beta` header. {fault}"
                )
            if fault and does == "drop_block":
                _drop(request, at, place, "prefix_binding_mismatch")
                continue
            if fault:
                where = f"messages.{at}.content.{place}"
                entry = {"type": "thinking_mismatch_allowed", "path": where, "reason": "prefix_binding_mismatch"}
                request.dropped.append(entry)
            shown.append(_key(block))


@check
def final_answers_do_not_end_with_thinking(request: Request) -> None:
    last = request.messages[-1]
    if last["role"] == "assistant" and request.blocks[-1]:
        is_thought = request.blocks[-1][-1]["type"] in THINKING
        words = "The final block in an assistant message cannot be `thinking`."
        demand(not is_thought, f"messages.{len(request.messages) - 1}: {words}")


@check
def reasoning_is_not_shown_as_text(request: Request) -> str | None:
    """The category of the refusal, which is an answer and is billed."""
    floor = (5, 0) if request.family in ("fable", "mythos", "opus") else (5, 5)
    texts = [block.get("text", "") for _, _, block in request.each if block["type"] == "text"]
    system = request.body.get("system") or ""
    texts += [system] if isinstance(system, str) else [block.get("text", "") for block in system]
    return "reasoning_extraction" if request.version >= floor and any(map(_SHOWN.search, texts)) else None


def sign(request: Request, blocks: list[Block]) -> list[Block]:
    """An answer to this request, its thinking signed."""
    if not any(block["type"] in THINKING for block in blocks):
        return blocks
    prefix, shown = _begun(request), list[str]()
    newest = newest_compaction(request)
    for at, message in enumerate(request.messages):
        if at == newest:
            prefix = _begun(request)
        for place, block in enumerate(request.blocks[at]):
            if block["type"] == "fallback":
                shown = ["fallback"]
            elif block["type"] in THINKING and at >= newest and (at, place) not in request.left_out:
                shown.append(_key(block))
            if block["type"] not in THINKING:
                prefix.add(message["role"], block)
    answer = []
    begun = _begun(request) if any(block["type"] == "compaction" for block in blocks) else prefix
    if begun is not prefix:
        shown = []
    for block in blocks:
        if block["type"] == "fallback":
            shown = ["fallback"]
        if block["type"] in THINKING and block.get("signature") != "":  # what was cut has none
            block = {**block, **_signature(request, block, begun.hex(), shown)}
            shown.append(_key(block))
        answer.append(block)
    return answer


def newest_compaction(request: Request) -> int:
    """The message of the newest compaction, before which nothing is shown; -1 if there is none."""
    found = [at for at, _, block in request.each if block["type"] == "compaction" and block.get("content")]
    return found[-1] if found else -1


def _signature(request: Request, block: Block, prefix: str, shown: list[str]) -> Block:
    said = UNBOUND
    if verifies(request):
        said = Signed(request.model, request.account.name, prefix, f"{len(shown)}.{shown[-1] if shown else ''}")
    if block["type"] == "redacted_thinking":
        return {"data": signature_of("redacted", said)}
    return {"signature": signature_of(block["thinking"], said)}


def _said(block: Block) -> Signed | None:
    if block["type"] == "redacted_thinking":
        return read(block.get("data"), "redacted")
    return read(block.get("signature"), str(block.get("thinking")))


def _key(block: Block) -> str:
    written = str(block.get("signature") or block.get("data"))
    return hashlib.blake2b(written.encode(), digest_size=6).hexdigest()


def _continues(before: str, shown: list[str]) -> bool:
    count, _, last = before.partition(".")
    return count.isdigit() and len(shown) <= int(count) and (not shown or shown[-1] == last)


def _begun(request: Request) -> Prefix:
    """The prefix before the first message: it begins with the system prompt and the tools."""
    system = request.body.get("system") or []
    system = [{"type": "text", "text": system}] if isinstance(system, str) else system
    prefix = Prefix()
    prefix.add([block for block in system if not str(block.get("text", "")).startswith(_NONCE)])
    prefix.add(tools_in_order(request.body.get("tools") or ()))
    return prefix


def _difference(request: Request, said: Signed) -> str:
    """The last sentence of the refusal."""
    if not said.prefix:
        return "The block carries no record of the conversation it was created in."
    return "The messages before it differ from the ones this block was created with."


def _drop(request: Request, at: int, place: int, reason: str) -> None:
    request.left_out.add((at, place))
    path = f"messages.{at}.content.{place}"
    request.dropped.append({"type": "thinking_dropped", "path": path, "reason": reason})
