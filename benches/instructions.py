"""Instructions of whole calls at two commits: `python benches/instructions.py BEFORE NOW`.

Each is the folder `python` of a checkout, or one in which a wheel was unpacked, or a Python that has recede; built as a
wheel is (`make release`). Callgrind counts a process with N calls and one with 2N: their difference, divided by N, has
neither the start of Python nor what is done once. A commit from before the one set of options is called in its words.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

KEEP = 10
CALLS = {
    "reduce of dicts": 5,
    "reduce of bytes": 5,
    "a turn of a History": 50,
    "a Masker's view of known messages": 50,
    "a turn of a Masker": 50,
}
"""Each with its N."""


def prepared(name: str, messages: list[Any], known: int) -> Callable[[], Any]:
    """The call, on the known messages; a turn appends two of the others."""
    import recede
    from recede.masker import Masker

    options: dict[str, Any] = {"keep": KEEP}
    reduce: Any = partial(recede.reduce, **options)
    begun, ends = messages[:known], iter(range(known + 2, len(messages), 2))
    if name == "reduce of dicts":
        return lambda: reduce(begun)
    if name == "reduce of bytes":
        data = json.dumps(begun, ensure_ascii=False, separators=(",", ":")).encode()
        return lambda: reduce(data)
    if name == "a turn of a History":
        history = recede.History(**options)
        history.extend(begun)

        def turn() -> Any:
            end = next(ends)
            history.append(messages[end - 2])
            history.append(messages[end - 1])
            return history.view()

        return turn
    masker = Masker(**options)
    masker.view(begun)
    return (lambda: masker.view(begun)) if "known" in name else lambda: masker.view(messages[: next(ends)])


def child(name: str, path: str, known: str, calls: str) -> None:
    """A process that is counted."""
    call = prepared(name, json.loads(Path(path).read_bytes()), int(known))
    gc.disable()
    for _ in range(1 + int(calls)):
        call()


def instructions(side: Path, name: str, path: str, known: int) -> int:
    """Those of one call."""
    import measuring

    python, folder = (str(side), "") if side.is_file() else (sys.executable, str(side))
    environment = {"PYTHONPATH": folder, "PYTHONHASHSEED": "0"}
    once, twice = (
        measuring.collected([python, __file__, "--child", name, path, str(known), str(calls)], environment)[0]
        for calls in (CALLS[name], 2 * CALLS[name])
    )
    return (twice - once) // CALLS[name]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sides", nargs="*", type=Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, default=600)
    parser.add_argument("--shape", default="openai")
    parser.add_argument("--only", nargs="+", choices=CALLS, default=list(CALLS))
    arguments = parser.parse_args()
    if arguments.child:
        return child(*arguments.child)
    import formatting
    import histories

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.json")
        more = 2 * (2 + 2 * max(CALLS.values()))
        path.write_bytes(histories.serialized(arguments.messages + more, shape=arguments.shape))
        for name in arguments.only:
            before, now = (instructions(side, name, str(path), arguments.messages) for side in arguments.sides)
            rows.append([name, f"{before:,}", f"{now:,}", f"{now / before:.3f}"])
            print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    print(formatting.markdown([f"{arguments.messages} messages", "before", "now", "now / before"], rows))


if __name__ == "__main__":
    main()
