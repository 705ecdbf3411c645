"""Several interpreters in one process, as mod_wsgi has them: the core serves the first that imports it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# `other` makes another interpreter that shares our lock, as a web server does, and `run` runs code in it.
INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def other(shares_lock=True):
    if sys.version_info >= (3, 13):
        return interpreters.create("legacy" if shares_lock else "isolated")
    return interpreters.create(isolated=not shares_lock)

def run(where, code):
    failed = interpreters.run_string(where, code)
    assert failed is None, failed
    sys.stdout.flush()

FORGET = '''
import sys
for name in [name for name in sys.modules if name.startswith("recede")]:
    del sys.modules[name]
'''
USE = '''
import sys
try:
    import recede
except ImportError as error:
    print("refused:", error)
else:
    messages = [{"role": "tool", "tool_call_id": "1", "content": "x" * 999}] * 9 + [{"role": "assistant"}]
    print("masked", recede.reduce(messages, keep=1, boundary="sliding").masked_count)
    try:
        recede.reduce(b"[5]", max_input_tokens=1)
    except recede.TranscriptError as error:
        print("caught", error.kind)
sys.stdout.flush()
'''
"""
USED = ["masked 8", "caught message"]
REFUSED = (
    "refused: recede's Rust core serves one interpreter of a process, the first that imports it, and this is another "
    "one. Under mod_wsgi, `WSGIApplicationGroup %{GLOBAL}` runs the program in the main one."
)


def lines_of(code: str) -> list[str]:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", INTERPRETERS + code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "code",
    [
        "exec(USE); run(other(), USE)",
        "run(other(), USE); exec(USE)",
        "run(other(), USE); run(other(), USE)",
        "first = other(); run(first, USE); interpreters.destroy(first); exec(USE)",
        "first = other(); run(first, USE); interpreters.destroy(first); run(other(), USE)",
        "exec(USE); run(other(shares_lock=False), USE)",
    ],
)
def test_the_core_refuses_a_second_interpreter_with_words(code: str) -> None:
    assert lines_of(code) == [*USED, REFUSED]


@pytest.mark.parametrize("where", ["exec(USE)", "run(first, USE)"])
def test_the_first_interpreter_may_import_it_again(where: str) -> None:
    again = where.replace("USE", "FORGET + USE")
    code = f"first = other(); {where}; run(other(), USE); {where}; {again}"
    assert lines_of(code) == [*USED, REFUSED, *USED, *USED]
