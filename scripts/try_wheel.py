"""Pastes README.md, and runs the notebooks and the chat, with the installed wheel: `try_wheel.py CHECKOUT`.

All but the README runs in an empty folder, to which the examples are copied.
"""

import contextlib
import json
import platform
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import recede

repository = Path(sys.argv[1])
assert repository not in Path(recede.__file__).parents, f"imported from the checkout: {recede.__file__}"

pasted = runpy.run_path(str(repository / "scripts" / "pasted.py"))["pasted"]
tried = pasted((repository / "README.md").read_text(encoding="utf-8"))
assert tried, "README.md has no block of Python"

script = runpy.run_path(str(repository / "scripts" / "notebooks.py"))
missing, played = script["missing"], script["played"]
with tempfile.TemporaryDirectory() as folder:
    examples = Path(folder, "examples")
    shutil.copytree(repository / "examples", examples)
    notebooks = {
        path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(examples.glob("notebooks/*.ipynb"))
    }
    notebooks = {path: notebook for path, notebook in notebooks.items() if not missing(notebook)}
    for path, notebook in notebooks.items():
        with contextlib.redirect_stdout(sys.stderr):
            assert played(notebook, path.parent) == notebook, f"{path.name} prints something else"
    command = [sys.executable, "-I", str(examples / "chat.py")]
    chat = subprocess.run(command, input=b"40\n/stats\n/quit\n", capture_output=True, cwd=folder)
    assert (chat.returncode, chat.stderr) == (0, b"") and b"outputs masked]" in chat.stdout, chat.stderr.decode()

print(
    f"Python {platform.python_version()}: recede {recede.__version__}, {tried} lines of README.md, "
    f"{len(notebooks)} notebooks, the chat"
)
