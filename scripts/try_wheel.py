"""Runs the README's first example, the notebooks and the chat with the installed wheel, given the path of the checkout.

All but the README runs in an empty folder, to which the examples are copied.
"""

import contextlib
import doctest
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

readme = (repository / "README.md").read_text(encoding="utf-8")
example = readme.split("```python\n")[1].split("```")[0]
failed, tried = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(example, {}, "README.md", None, 0))
assert tried and not failed, "the first example of README.md does not give what it says"

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
