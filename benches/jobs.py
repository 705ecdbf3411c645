"""What `benches/table.py` measures, each in a process of its own: `python benches/jobs.py '{"job": …}'` prints JSON."""

from __future__ import annotations

import json
import statistics
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import maskers
import orjson

import contenders
import histories
import measuring
import recede
import rivals
import stores
from contenders import Case, make_case, oracle
from histories import Shape, Style
from recede.reduction._policy import own_policy

HOSTILE_TOKENS = 25
SMALL_SEED = 1_527  # of the first 3,000, the one whose 20 messages come nearest to 20 KB
# How messages, calls and results stand in what `histories.serialized` writes as compact OpenAI chat.
_CALL, _RESULT = b'"type":"function"', b'{"role":"tool"'


def from_bytes(messages: int, shape: Shape, style: Style, seconds: float, names: list[str] | None) -> dict[str, Any]:
    """Times from bytes to bytes; `names` takes some contenders only."""
    case = make_case(messages, shape, style)
    contenders.compare_answers(case)
    racing = contenders.bytes_contenders(case)
    if names is not None:
        racing = {name: racing[name] for name in names}
    return {"bytes": len(case.data), "times": measuring.best_times(racing, seconds)}


def from_dicts(messages: int, shape: Shape, seconds: float) -> dict[str, Any]:
    """Times from dicts to dicts."""
    case = make_case(messages, shape)
    contenders.compare_answers(case)
    times = measuring.best_times(contenders.dict_contenders(case), seconds)
    return {"bytes": len(case.data), "times": times}


def untouched(messages: int, seconds: float) -> dict[str, Any]:
    """Times where nothing is masked; the answer must be the input itself."""
    data, dicts, _ = make_case(messages)
    nothing_old: dict[str, Any] = {**contenders.OPTIONS, "keep": messages}
    if recede.reduce(data, **nothing_old).json is not data or recede.reduce(dicts, **nothing_old).messages is not dicts:
        raise SystemExit("another object comes back than came in")
    racing = {
        "bytes": partial(recede.reduce, data, **nothing_old),
        "dicts": partial(recede.reduce, dicts, **nothing_old),
        contenders.REDUCE: lambda: contenders.reduced(data),
        contenders.WARM_COPY: rivals.warm_copy(data),
    }
    return {"bytes": len(data), "times": measuring.best_times(racing, seconds)}


def two_threads(messages: int, seconds: float) -> dict[str, Any]:
    """Seconds for the same work, on two inputs, of one thread and of two; for recede and for orjson."""
    cases = [make_case(messages, seed=seed) for seed in (0, 1)]

    def ours(case: Case) -> None:
        contenders.reduced(case.data)

    def theirs(case: Case) -> None:
        rivals.orjson_tuned(case.data)

    times: dict[str, list[float]] = {}
    for name, reduce in (("recede", ours), ("orjson", theirs)):
        start = perf_counter()
        reduce(cases[0])
        # Long enough that the start of a thread does not count.
        repeats = max(1, int(0.05 / (perf_counter() - start)))
        best = [float("inf")] * 2
        end = perf_counter() + seconds / 2
        while perf_counter() < end:
            for index, run in enumerate((_in_turn, _at_once)):
                best[index] = min(best[index], run(reduce, cases, repeats) / repeats)
        times[name] = best
    return {"bytes": sum(len(case.data) for case in cases), "times": times}


def _in_turn(reduce: Callable[[Case], None], cases: list[Case], repeats: int) -> float:
    start = perf_counter()
    for case in cases:
        for _ in range(repeats):
            reduce(case)
    return perf_counter() - start


def _at_once(reduce: Callable[[Case], None], cases: list[Case], repeats: int) -> float:
    barrier = threading.Barrier(len(cases) + 1)

    def work(case: Case) -> None:
        barrier.wait()
        for _ in range(repeats):
            reduce(case)

    threads = [threading.Thread(target=work, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    start = perf_counter()  # before they are let go: this thread may not run again at once
    barrier.wait()
    for thread in threads:
        thread.join()
    return perf_counter() - start


def write_history(path: str, pieces: int, messages: int, style: Style) -> dict[str, int]:
    """Write a file of so many pieces, one after the other, each of so many messages; say what it holds."""
    records = 0
    with Path(path).open("wb") as file:
        for piece in range(pieces):
            data = histories.serialized(messages, seed=piece % 5, style=style)
            compact = data.replace(b'": ', b'":') if style == "ascii" else data
            records += messages + compact.count(_CALL) + compact.count(_RESULT)
            file.write((b"," if piece else b"[") + data[1:-1])
        file.write(b"]")
    return {"records": records}


def peak_memory(path: str, form: str) -> dict[str, int]:
    """Bytes of the input object, of its UTF-8 form, of the output, and of the peak above what was there before."""
    contenders.reduced(histories.serialized(20))  # what is made once is there before
    before = measuring.resident()
    data: Any = Path(path).read_bytes()
    utf8 = len(data)
    if form == "str":
        data = data.decode()
    elif form == "bytearray":
        data = bytearray(data)
    # A form other than bytes is made from bytes that are gone now, but not from the peak.
    measuring.forget_peak()
    view = contenders.reduced(data).json
    peak = measuring.peak() - before
    if len(view) >= utf8:
        raise SystemExit("nothing was masked")
    return {"input": sys.getsizeof(data), "utf8": utf8, "output": len(view), "peak": peak}


def write_messages(path: str, messages: int) -> dict[str, int]:
    """Write a file of messages, one a line; say how many bytes they have."""
    size = 0
    with Path(path).open("wb") as file:
        for piece, start in enumerate(range(0, messages, 10_000)):
            for message in orjson.loads(histories.serialized(min(10_000, messages - start), seed=piece)):
                size += file.write(orjson.dumps(message) + b"\n") - 1
    return {"bytes": size}


def session_memory(path: str) -> dict[str, int]:
    """Bytes that the process holds above what was there before, with the messages of a file in a `History`."""
    before = measuring.resident()
    session = recede.History()
    view: list[bytes] = []
    with Path(path).open("rb") as file:
        for line in file:
            session.append_json(line)
            view = session.view_chunks()
    return {"held": measuring.resident() - before, "view": sum(map(len, view)), "messages": len(session)}


def stored_history(path: str, turns: int) -> dict[str, int]:
    """The same of a `History` with a store."""
    measuring.forget_peak()
    before = measuring.resident()
    with recede.store.TurnStore(path, sync_every=1_000) as store:
        history = recede.History(store=store)
        for number in range(1, turns + 1):
            call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
            history.append({"role": "assistant", "content": "I must look at it again.", "tool_calls": [call]})
            content = f"line {number} of the log\n" * 40
            history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": content})
    with recede.store.TurnStore(path) as store:
        history = recede.History(store=store)
        assert history.stats().turns == turns
        for number in range(1, turns + 1, turns // 1_000):
            assert history.recall(number).startswith(f"line {number} of the log")
            assert history.recall(f"call_{number}").startswith(f"line {number} of the log")
    return {"peak": measuring.peak() - before, "file": Path(path).stat().st_size}


def against_copies(messages: int, seconds: float) -> dict[str, Any]:
    """Times of a reduction and of plain copies of the same size."""
    data = histories.serialized(messages)
    racing = {
        contenders.REDUCE: lambda: contenders.reduced(data),
        contenders.WARM_COPY: rivals.warm_copy(data),
        contenders.FRESH_COPY: lambda: rivals.fresh_copy(data),
    }
    return {"bytes": len(data), "times": measuring.best_times(racing, seconds)}


def hostile(scale: float, seconds: float) -> dict[str, Any]:
    """Times of the shapes that make careless code slow; the mix, for the mean, is the first."""
    million = int(1_000_000 * scale)
    size = int(16_000_000 * scale)
    calls = int(100_000 * scale)
    deep = histories.deep_nesting(1_000)[1:-1]
    lists = {
        "a million empty messages": histories.empty_messages(million),
        "100,000 parallel calls": histories.parallel_calls(calls),
        "100,000 calls, none answered": histories.open_calls(calls),
        "all ids equal, in turns": histories.one_id(calls),
        "all ids equal, in one message": histories.one_id_parallel(calls),
        "no ids": histories.no_ids(calls),
    }
    shapes = {
        "the mix": histories.serialized(int(9_400 * max(scale, 0.1))),
        "one message of 16 MB": histories.one_message(size),
        **{name: histories.encoded(messages) for name, messages in lists.items()},
        "only escapes": histories.only_escapes(size),
        r"only \u escapes": histories.only_unicode_escapes(size),
        "only backslashes": histories.only_backslashes(size),
        "only CJK": histories.only_cjk(size),
        "deep nesting": b"[" + b",".join([deep] * (size // len(deep))) + b"]",
    }
    mask = partial(recede.reduce, **{**contenders.OPTIONS, "keep": 1})
    rows = {}
    for name, data in shapes.items():
        answer = mask(data)
        if name in lists or name in ("the mix", "deep nesting"):
            # Where the oracle takes minutes, a plain reader at least must agree that this is a history.
            messages = orjson.loads(data)
            contenders.agree(name, recede.count_chars(messages), answer.chars_before)
            records = len(messages) + sum(tool.observations for tool in answer.tools.values())
            records += sum(len(message.get("tool_calls") or ()) for message in messages)
        else:
            records = 9  # two pairs and four more messages around the one
        racing = {
            "mask": partial(mask, data),
            "stages": partial(recede.reduce, data, max_input_tokens=HOSTILE_TOKENS),
        }
        times = measuring.best_times(racing, seconds)
        rows[name] = {"bytes": len(data), "records": records, **times}
    return rows


def small(seconds: float) -> dict[str, Any]:
    """Times of a history as short as most are."""
    case = make_case(20, seed=SMALL_SEED)
    contenders.compare_answers(case)
    racing = {
        name: contender
        for name, contender in contenders.bytes_contenders(case).items()
        if name in (contenders.REDUCE, contenders.ORJSON_TUNED, contenders.ORJSON_SIMPLEST)
    }
    racing |= {
        f"dicts: {name}": contender
        for name, contender in contenders.dict_contenders(case).items()
        if name in (contenders.REDUCE, contenders.TUNED)
    }
    return {"bytes": len(case.data), "times": measuring.best_times(racing, seconds)}


def break_even(messages: int, seconds: float) -> dict[str, Any]:
    """Times of a boundary that pays for itself, also with a mark at it, beside one that slides."""
    slides: dict[str, Any] = {"keep": 10, "boundary": "sliding"}
    pays: dict[str, Any] = {"keep": 10, "provider": "ideal"}
    pinned = {**pays, "provider": "anthropic"}
    data, dicts, _ = make_case(messages)
    marked = orjson.loads(histories.serialized(messages, shape="anthropic"))
    blocks = [block for message in marked if isinstance(message["content"], list) for block in message["content"]]
    blocks[-1]["cache_control"] = {"type": "ephemeral"}  # as the client of each request does
    racing: dict[str, Any] = {}
    ratios: dict[str, float] = {}
    for rule, options, raw, given in (
        ("break-even", pays, data, dicts),
        ("pinned", pinned, orjson.dumps(marked), marked),
    ):
        found = recede.reduce(raw, **options)
        contenders.agree(rule, json.loads(found.json), recede.reduce(given, **options).messages)
        if not found.boundary_moves:
            raise SystemExit("the boundary never moved")
        if rule == "pinned" and found.json.count(b"cache_control") != 2:
            raise SystemExit("the boundary is not marked")
        for form, history in (("bytes", raw), ("dicts", given)):
            name = f"{form}, {rule}"
            racing[name] = partial(recede.reduce, history, **options)
            racing[f"{name}: sliding"] = partial(recede.reduce, history, **slides)
            ratios[name] = measuring.cpu_ratio(racing[name], racing[f"{name}: sliding"], seconds / 4)
    return {"bytes": len(data), "times": measuring.best_times(racing, seconds), "ratios": ratios}


def turns(marks: list[int], oracle_until: int) -> dict[str, Any]:
    """Seconds of a turn of a `History` (two messages appended, a view taken) at these turns, and of reducing anew."""
    raw = [orjson.dumps(message) for message in orjson.loads(histories.serialized(2 * max(marks)))]
    found: dict[str, Any] = {}
    samples: list[float] = []  # of the oracle, at each 200th turn of the first 2,000
    for mode in ("bytes", "dicts"):
        session, messages = recede.History(), raw if mode == "bytes" else [orjson.loads(one) for one in raw]
        append: Any = session.append_json if mode == "bytes" else session.append
        view: Any = session.view_chunks if mode == "bytes" else session.view
        times: list[tuple[float, float]] = []
        for turn in range(max(marks)):
            start = perf_counter()
            append(messages[2 * turn])
            append(messages[2 * turn + 1])
            middle = perf_counter()
            view()
            times.append((middle - start, perf_counter() - middle))
            if turn + 1 in marks:
                found[f"{mode} {turn + 1}"] = anew(session, raw[: 2 * turn + 2], mode, turn + 1 <= oracle_until)
            if mode == "bytes" and (turn + 1) % 200 == 0 and turn < 2 * oracle_until:
                samples.append(oracle_seconds(b"[" + b",".join(raw[: 2 * turn + 2]) + b"]"))
        for mark in marks:
            last = times[max(0, mark - 100) : mark]
            found[f"{mode} {mark}"] |= {
                "append": statistics.median(one for one, _ in last),
                "view": statistics.median(other for _, other in last),
            }
        found[f"{mode} whole"] = sum(map(sum, times[:2_000]))
    found["oracle whole"] = 200 * sum(samples)
    return found


def anew(session: Any, raw: list[bytes], mode: str, with_oracle: bool) -> dict[str, float]:
    """Seconds of reducing the whole history again, whose views must be the session's."""
    data = b"[" + b",".join(raw) + b"]"
    contenders.agree("History", session.view_json(), recede.reduce(data).json)
    given: Any = data if mode == "bytes" else session.messages
    again: dict[str, Any] = {"core": lambda: recede.reduce(given)}
    seconds = {name: measuring.best_times({name: run}, 0.3)[name] for name, run in again.items()}
    if with_oracle and mode == "bytes":
        seconds["oracle"] = oracle_seconds(data)
    return seconds


def oracle_seconds(data: bytes) -> float:
    """Seconds of masking a history with the oracle, as a `History` does."""
    policy = own_policy(oracle, {}, reduces=False)
    return measuring.best_times({"m": lambda: oracle.reduce_json(data, False, policy)}, 0.1)["m"]


def contexts(turns: int, rounds: int) -> dict[str, float]:
    """Seconds of adding a turn and of a context of all of them, by whom, and of joining the parts of that context."""
    # The research's mix: 84 % observations, 16 % reasoning and actions.
    texts = [(f"Thought {n}. " * 15, f"do {n} --now " * 5, f"a line of the log {n}\n" * 65) for n in range(turns)]
    prompts = "You are careful.", "Find the bug."
    makers: dict[str, Callable[[], Any]] = {
        "manager": recede.designs.ObservationMaskingContextManager,
        "hybrid": lambda: recede.designs.HybridContextManager(recede.summarizers.builtin(), 10, turns + 1),
        "loop": lambda: rivals.NaiveContexts(10),
    }
    spent: dict[str, float] = {}
    seen: dict[str, str] = {}
    for name, make in makers.items():
        adding = []
        for _ in range(rounds):
            manager, start = make(), process_time()
            for turn in texts:
                manager.add_turn(*turn)
            adding.append((process_time() - start) / turns)
        shown = manager.get_context if name == "hybrid" else manager.get_masked_context
        seen[name] = shown(*prompts)
        spent[f"{name}, a turn"] = min(adding)
        spent[f"{name}, a context"] = measuring.best_times({"c": partial(shown, *prompts)}, 0.2)["c"]
    contenders.agree("loop", seen["loop"], seen["manager"])
    first, *rest = seen["manager"].split("\n\nTurn ")
    parts = [first, *(f"\n\nTurn {text}" for text in rest)]
    spent["a join"] = measuring.best_times({"j": lambda: "".join(parts)}, 0.2)["j"]
    return spent


def start_times(codes: list[str], rounds: int) -> list[float]:
    """Seconds of the fastest of many Pythons that run each code and end."""
    return measuring.start_times(codes, rounds)


def core_times(binary: str, path: str, seconds: float) -> dict[str, float]:
    """Seconds of each thing that the core does with this history, without Python."""
    return measuring.core_times(Path(binary), Path(path), seconds)


JOBS: dict[str, Callable[..., Any]] = {
    job.__name__: job
    for job in (
        from_bytes,
        from_dicts,
        untouched,
        two_threads,
        write_history,
        peak_memory,
        write_messages,
        session_memory,
        stored_history,
        against_copies,
        hostile,
        small,
        break_even,
        turns,
        contexts,
        start_times,
        core_times,
        maskers.masker_calls,
        maskers.masker_memory,
        stores.store_appends,
        stores.store_reads,
        stores.store_growth,
    )
}


def main() -> None:
    """Do what the argument says, and print the answer."""
    told = json.loads(sys.argv[1])
    if told["is_pinned"]:
        measuring.pin()
    print(json.dumps(JOBS[told["job"]](**told["arguments"])))


if __name__ == "__main__":
    main()
