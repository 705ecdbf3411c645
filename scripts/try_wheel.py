"""Runs the README's first example with the installed wheel; the argument is the path of the checkout."""

import doctest
import platform
import sys
from pathlib import Path

import recede

repository = Path(sys.argv[1])
assert repository not in Path(recede.__file__).parents, f"imported from the checkout: {recede.__file__}"

readme = (repository / "README.md").read_text(encoding="utf-8")
example = readme.split("```python\n")[1].split("```")[0]
failed, tried = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(example, {}, "README.md", None, 0))
assert tried and not failed, "the first example of README.md does not give what it says"
print(f"Python {platform.python_version()}: recede {recede.__version__}, {tried} lines of README.md")
