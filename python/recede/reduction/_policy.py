"""The Policy of each door and function: an engine's parameters, of options that are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from recede._errors import meant
from recede._off import is_off
from recede._recall import PLACEHOLDER, with_handle
from recede.providers import (
    Provider,
    model_keeps_reasoning,
    model_verifies,
    policy_cache,
    provider_of_model,
    tokenizers,
)
from recede.reduction._kinds import BOUNDARIES, CEILING, CHARS_PER_TOKEN, MIN_KEEP, whole_number
from recede.reduction._options import DESIGN_OPTIONS, OPTIONS, SESSION_DEFAULTS
from recede.reduction._share import has_limits, in_tokens

if TYPE_CHECKING:
    from recede.providers import Tokenizer, Tokenizers

IS_OFF = is_off()
"""Whether everything is sent raw: ``RECEDE_OFF`` was set at import."""

MARKS_ELSEWHERE = 2
"""Cache marks that a list of messages is assumed to have around it: on the system prompt and on the tools."""

LEAST_REMOVED = 64
"""Characters that masking a result removes at least, at recede's own doors: so no message ever grows."""

SUMMARY_CHARS = 4_000
"""Characters that a summary by a model counts at most, at recede's own doors: about 1,000 tokens."""

SUMMARY_PROMPT_CHARS = 1_200
"""About the characters of the prompt of `recede.summarizers`, besides the turns."""

_MILLION = 1_000_000
_WINDOW = ("keep_messages", "keep_turns", "keep_results")
_BOUNDARY_NUMBERS = dict.fromkeys(number for numbers in BOUNDARIES.values() for number in numbers)
_FUNCTIONS = frozenset({"summarizer", "token_counter"})
_PLAIN = frozenset({str, int, float, bool, type(None), Provider})

# The providers of the shapes that name one. A list of chat messages names nobody: it is planned by Anthropic's rule,
# which costs little where another serves it; without marks of ours, which its provider may refuse.
_NAMED = {
    "anthropic": "anthropic",
    "converse": "bedrock",
    "gemini": "gemini",
    "interactions": "gemini",
    "responses": "openai",
}
_UNNAMED = "anthropic"
_MARKED = "anthropic"  # the shape whose messages take marks

# Words that people type for an option, and what they mean.
MEANT = {
    "budget": "max_input_tokens",
    "limit": "max_input_tokens",
    "keep_results": "keep",
    "keep_last": "keep",
    "window": "keep",
    "n": "keep",
    "m": "keep",
    "mask_chunk": "boundary=N",
    "max_observation_chars": "max_result_chars",
}

# Two options that mean the same at different doors.
_TWINS = {"summaries": "summarizer", "summarizer": "summaries"}

# The options of a few doors, which the others do not take.
DOORS = {
    "adapter": ("masker.Masker",),
    "calibrate": ("History", "masker.Masker", "wrap"),
    "check": ("masker.Masker",),
    "clock": ("proxy.RequestMasker",),
    "max_bytes": ("masker.Masker",),
    "most": ("masker.Masker",),
    "on_move": ("History", "masker.Masker", "wrap"),
    "recall": ("History", "masker.Masker", "wrap"),
    "state": ("proxy.RequestMasker",),
    "store": ("History",),
    "summaries": ("proxy.RequestMasker",),
    "summarizer": ("reduce", "History", "masker.Masker", "wrap"),
    "upstream": ("proxy.RequestMasker",),
}


def own_policy(
    engine: Any,
    options: Mapping[str, Any],
    *,
    reduces: bool,
    summarizer: Any = None,
    recall: bool = False,
    static: int = 0,
    model: Any = None,
    off: bool = False,
    **parameters: Any,
) -> Any:
    """The Policy of a door, which drops messages over its limit if it `reduces`, and else only masks and cuts.

    `static` is what system prompt and tools take of the limit and of the trigger, in quarter tokens. `model` is the one
    that a request names, whose facts are taken unless the options name a provider; whether it verifies reasoning counts
    in any case. With `off` nothing is masked. `parameters` are added to those of the options.
    """
    summarizes, options = summarizer is not None, in_tokens(options, model)
    if summarizes:
        DESIGN_OPTIONS["summarizer"].check("summarizer", summarizer)
    verifies, named = model_verifies(model), model
    if model is None or options.get("provider", "auto") != "auto" or provider_of_model(model) is None:
        model = None
    parameters |= {"recall": recall, "static": static, "model": model, "model_verifies": verifies, "off": off}
    if has_limits(options) and options.get("token_counter") is None:
        parameters["counted_as"] = named if isinstance(named, str) else ""
    return _once(_own_policy, (engine, reduces, summarizes), options, parameters)


def _own_policy(
    engine: Any,
    reduces: bool,
    summarizes: bool,
    options: Mapping[str, Any],
    *,
    recall: bool,
    static: int,
    model: str | None,
    model_verifies: bool,
    off: bool,
    counted_as: str | None = None,
    **parameters: Any,
) -> Any:
    refuse_unknown(options)
    own = {name: one.check(name, options[name]) if name in options else one.parameter for name, one in OPTIONS.items()}
    keep, boundary, provider = own.pop("keep"), own.pop("boundary"), own.pop("provider")
    trigger, limit, _ = own.pop("trigger_tokens"), own.pop("max_input_tokens"), own.pop("token_counter")
    if limit is not None and trigger > limit:
        raise ValueError(f"trigger_tokens must be at most max_input_tokens, which is {limit}, not {trigger}")
    rule = (boundary, 0.0, 0.0) if isinstance(boundary, str) else ("stepped", float(boundary), 0.0)
    verifies = True if model_verifies else None
    counted = None if counted_as is None else tokenizers(provider, counted_as)
    own |= _terms(rule, provider, keep if summarizes else None, model, static, verifies=verifies, counted=counted)
    own |= {"keep_results": keep, "ask_summary": summarizes, "least_removed": LEAST_REMOVED}
    if own["placeholder"] is None:
        own["placeholder"] = OPTIONS["placeholder"].check("placeholder", PLACEHOLDER)
    own["counts_reasoning"] = (bool(trigger) or limit is not None) and model_keeps_reasoning(model)
    if trigger:
        own["trigger"] = max(0, _budget(None, trigger) - static)
    if limit is not None:
        own |= {"max_cost": max(0, _budget(None, limit) - static), "is_limit": True}
        own["clip_results"] = int(SESSION_DEFAULTS["clip_results"])
        if reduces:
            own |= {"goal": "reduce", "fill_millionths": round(SESSION_DEFAULTS["fill"] * _MILLION)}
    if summarizes:
        own["summary_max_chars"] = SUMMARY_CHARS
    return _made(engine, {**own, **parameters}, recall=recall, off=off)


def refuse_unknown(options: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> None:
    """Raise TypeError for an option that no door has; `more` are those that this one has besides."""
    for name in options:
        if name not in OPTIONS:
            word, twin = MEANT.get(name), _TWINS.get(name)
            if name == "max_input_chars":
                hint = ": the limit is max_input_tokens, of about four characters each"
            elif word:
                hint = f": did you mean {word!r}?"
            elif name in DOORS or name in DESIGN_OPTIONS:
                doors = DOORS.get(name, ("designs.HistoryReducer",))
                hint = " here: it is one of " + ", ".join(f"recede.{door}" for door in doors)
                hint += f"; did you mean {twin!r}?" if twin in (more or ()) else ""
            else:
                hint = meant(name, [*OPTIONS, *(more or ())])
            raise TypeError(f"there is no option {name!r}{hint}")


def compiled(engine: Any, goal: str, options: Mapping[str, Any], *, recall: bool = False, **parameters: Any) -> Any:
    """The engine's Policy for options of designs; with `recall` placeholders name the handle.

    `parameters` are added to those of the options.
    """
    return _once(_policy, (engine, goal), options, {"recall": recall, **parameters})


def _once(
    make: Callable[..., Any], first: tuple[Any, ...], options: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Any:
    """The Policy that `make` gives, cached for plain values.

    It only knows whether there is a function. The cache has no objects of the caller, which it would keep alive.
    """
    plain = {}
    for name, value in options.items():
        if name in _FUNCTIONS and callable(value):
            plain[name] = callable
        elif type(value) in _PLAIN:
            plain[name] = value
        else:
            return make(*first, options, **parameters)
    return _cached(make, first, tuple(parameters.items()), **plain)


@lru_cache(maxsize=256, typed=True)  # True is not 1
def _cached(
    make: Callable[..., Any], first: tuple[Any, ...], parameters: tuple[tuple[str, Any], ...], /, **options: Any
) -> Any:
    return make(*first, options, **dict(parameters))


def _policy(engine: Any, goal: str, options: Mapping[str, Any], recall: bool = False, **parameters: Any) -> Any:
    """The Policy of a design; `parameters` are added to those of the options."""
    return _made(engine, {**_parameters(goal, _checked(goal, options)), **parameters}, recall=recall)


def _made(engine: Any, parameters: dict[str, Any], *, recall: bool, off: bool = False) -> Any:
    if recall:
        parameters["placeholder"] = with_handle(parameters["placeholder"])
    return engine.Policy(_raw(parameters) if off or IS_OFF else parameters)


def _raw(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters with which a history is sent as it is: of all results none leaves the window."""
    window = {"keep_results": CEILING, "keep_by_tool": (), "boundary": ("sliding", 0.0, 0.0), "clip_results": None}
    nothing = {"max_cost": None, "max_result_chars": None, "summaries": None, "markers": (), "stubs": ()}
    nothing["terms_by_shape"] = ()
    return {**parameters, **window, **nothing, "is_off": True, "is_limit": False, "trigger": 0}


def _checked(goal: str, options: Mapping[str, Any]) -> dict[str, Any]:
    allowed = [name for name, option in DESIGN_OPTIONS.items() if goal in option.goals]
    for name in options:
        if name not in allowed:
            raise TypeError(f"there is no option {name!r}{_instead(name, goal, allowed)}")
    return {
        name: option.check(name, options[name]) if name in options else option.parameter
        for name, option in DESIGN_OPTIONS.items()
    }


def _instead(name: str, goal: str, allowed: list[str]) -> str:
    """The end of an error: the window has other names elsewhere."""
    if goal == "block" and name in _WINDOW:
        return " here: the window is keep, a number of results"
    if name == "keep":
        return " here: give keep_messages, keep_turns or keep_results"
    return meant(name, allowed)


def _parameters(goal: str, option: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a design: a few options are combined, the others keep their names."""
    budget = option.pop("max_input_chars"), option.pop("max_input_tokens")
    recent, keep = option.pop("preserve_recent_raw_turns"), option.pop("keep")
    functions = option.pop("summarizer"), option.pop("token_counter")
    fill, provider = option.pop("fill"), option.pop("provider")
    option.update(_terms(_boundary(option), provider))
    option["is_off"], option["skips_masks"] = not option.pop("enabled"), not option.pop("observation_masking")
    option["least_removed"] = None  # it is enough that the text gets shorter
    option["ask_summary"] = functions != (None, None)
    # What no request has shown stays, but in the published designs: a budget, the block masker, single stages.
    is_published = {"reduce": fill is None, "block": option["boundary"][0] != "break_even"}
    option["masks_unseen"] = is_published.get(goal, True)
    option["keeps_dispatch"] = goal != "block"  # those of the reducer and its stages
    option["goal"] = goal
    # An integer, so that both engines compute the same shares.
    option["fill_millionths"] = round(fill * _MILLION) if fill is not None and goal == "reduce" else None
    if goal == "reduce":
        option["max_cost"] = _budget(*budget)
    if goal == "block":
        option.update(goal="mask", keep_messages=None, keep_results=keep, lines_form=True)
    elif goal != "mask":
        option["keep_messages"] = max(option["keep_messages"] or 0, recent)
    elif all(option[name] is None for name in _WINDOW):
        raise ValueError("a window is required: give keep_messages, keep_turns or keep_results")
    option["keep_results"] = option["keep_results"] or 0
    return option


def _terms(
    rule: tuple[str, float, float],
    provider: Provider | str,
    tail: int | None = None,
    model: str | None = None,
    static: int = 0,
    *,
    verifies: bool | None = False,
    counted: Tokenizers | None = None,
) -> dict[str, Any]:
    """The terms of the assumed cache: of any history, and of one whose shape names another provider or takes marks.

    With a `tail`, summaries of turns that are older than it are made when they pay, by the model of the conversation.
    `counted` are the tokenizers where tokens are asked. A `model` that is known says more than the shape. Where
    `verifies` is None, each provider says whether it verifies
    reasoning; designs send all of it back, as published.
    """

    def of(one: Provider) -> tuple[Any, ...]:
        read, write = float(one.read), float(one.write)
        by_model = None, (read, write, 1.0, float(one.output)), tail, (SUMMARY_CHARS, SUMMARY_PROMPT_CHARS)
        boundary = (rule[0], read, write) if rule[0] == "break_even" else rule
        return one.name, boundary, policy_cache(one, static), None if tail is None else by_model

    def verifies_as(one: Provider) -> bool:
        return one.verifies_reasoning if verifies is None else verifies

    def assumed(name: str) -> Provider:
        if isinstance(provider, Provider):
            return provider
        return provider_of_model(model, name) or Provider.of(name)

    by_shape = []
    for shape, name in _NAMED.items():
        one = assumed(name)
        pins = shape == _MARKED and one.cache == "marks"
        if pins or counted is not None or not isinstance(provider, Provider):
            tokens = None if counted is None else _scaled(counted[1][shape])
            by_shape.append((shape, (*of(one), pins, verifies_as(one), tokens)))
    names = ("provider", "boundary", "cache", "summaries")
    unnamed = assumed(_UNNAMED)
    terms = dict(zip(names, of(unnamed), strict=True))
    terms["tokens"] = None if counted is None else _scaled(counted[0])
    return {**terms, "verifies_reasoning": verifies_as(unnamed), "terms_by_shape": by_shape}


def _scaled(tokenizer: Tokenizer) -> tuple[int, int]:
    """A tokenizer as the engine has it: thousandths of its scale, and quarter tokens of a call."""
    return round(1_000 * tokenizer.scale), CHARS_PER_TOKEN * tokenizer.call


def _boundary(option: dict[str, Any]) -> tuple[str, float, float]:
    """The rule of the boundary, with its numbers; `mask_chunk` alone means stepped."""
    name, numbers = option.pop("boundary"), {number: option.pop(number) for number in _BOUNDARY_NUMBERS}
    if name == "sliding" and numbers["mask_chunk"] is not None:
        name = "stepped"
    for number, value in numbers.items():
        if number in BOUNDARIES[name] and value is None:
            raise ValueError(f"boundary={name!r} needs {number}: {DESIGN_OPTIONS[number].help}")
        if number not in BOUNDARIES[name] and value is not None and DESIGN_OPTIONS[number].default is None:
            raise ValueError(f"give {number} or boundary={name!r}, not both")
    first, second, *_ = *(float(numbers[number]) for number in BOUNDARIES[name]), 0.0, 0.0
    return name, first, second


def _budget(chars: int | None, tokens: int | None) -> int:
    if chars is None and tokens is None:
        raise ValueError("a budget is required: give max_input_chars or max_input_tokens")
    if chars is not None and tokens is not None:
        raise ValueError("give max_input_chars or max_input_tokens, not both")
    if chars is not None:
        return chars
    return min(CHARS_PER_TOKEN * (tokens or 0), CEILING)  # tokens_of(chars) <= tokens


def image_chars_of(options: Mapping[str, Any]) -> int:
    option = DESIGN_OPTIONS["image_chars"]
    return int(option.check("image_chars", options.get("image_chars", option.default)))


def replay_policy(
    engine: Any,
    goal: str,
    options: Mapping[str, Any],
    boundary: tuple[str, float, float] | None = None,
    summaries: tuple[Any, ...] | None = None,
    **parameters: Any,
) -> Any:
    """The Policy of a replay, which has additional boundaries, summaries and `parameters`, and one provider."""
    chosen = {} if boundary is None else {"boundary": boundary}
    replayed = {"summaries": summaries, "terms_by_shape": (), "keeps_dispatch": False, **chosen, **parameters}
    return engine.Policy({**_parameters(goal, _checked(goal, options)), **replayed})  # nothing is sent


def block_policy(
    engine: Any,
    keep: int,
    mask_chunk: int | None,
    options: Mapping[str, Any],
    max_tokens: int | None = None,
    least: int = MIN_KEEP,
    **parameters: Any,
) -> Any:
    """The Policy of the block masker: the newest `keep` observations, the `lines` placeholder.

    A view of more than `max_tokens` is masked up to the window, whatever the boundary. At least `least` results stay.
    `parameters` are added to those of the options.
    """
    options = {**options, "mask_chunk": mask_chunk}
    if max_tokens is None and least == MIN_KEEP and not parameters:
        return compiled(engine, "block", {**options, "keep": keep})
    return _policy(
        engine,
        "block",
        options,
        **parameters,
        keep_results=whole_number(least)("keep", keep),
        max_cost=None if max_tokens is None else _budget(None, max_tokens),
    )
