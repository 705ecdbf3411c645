"""Every public name says what it is, and its examples run with both engines."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from typing import Any

import pytest

import recede
from support import built_engines, using

MODULES = ("reduction", "session", "turns", "agent", "costs", "store", "summarizers", "testing", "transcripts", "types")
PUBLIC = {f"recede.{name}": getattr(recede, name) for name in recede.__all__}
for _module in [import_module(f"recede.{name}") for name in MODULES]:
    for _name in _module.__all__:
        if getattr(recede, _name, None) is not getattr(_module, _name):
            PUBLIC[f"{_module.__name__}.{_name}"] = getattr(_module, _name)
DOCUMENTED = {name: value for name, value in PUBLIC.items() if inspect.isclass(value) or inspect.isfunction(value)}

# What a function gives or takes is shown by the example of that function.
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.REPORT_NDIFF


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_has_a_docstring_with_an_example(name: str) -> None:
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    assert text[:1].isupper() or text.startswith("`")
    assert "\n" not in text.split("\n\n")[0], "the first line stands alone"
    assert ">>> " in text, f"{name} has no example"


NEEDS_THE_CORE = {"recede.StoreError", "recede.store.StoreReport", "recede.store.StoreStats", "recede.TurnStore"}


@pytest.mark.parametrize("engine_name", built_engines())
@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str, engine_name: str) -> None:
    if engine_name == "python" and name in NEEDS_THE_CORE:
        pytest.skip("the mirror has no store")
    value: Any = DOCUMENTED[name]
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    written: list[str] = []
    with using(engine_name):
        for example in doctest.DocTestFinder().find(value, name, globs={}):
            runner.run(example, out=written.append)
    assert runner.failures == 0, "".join(written)


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isclass(value)])
def test_public_classes_say_that_they_are_of_recede(name: str) -> None:
    value = PUBLIC[name]
    assert value.__name__ == name.rsplit(".", 1)[1]
    if issubclass(value, BaseException):
        assert value.__module__ == "recede"


def test_all_is_sorted_and_true() -> None:
    for module in (recede, *(import_module(f"recede.{name}") for name in MODULES)):
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
    public = {name for name in vars(recede) if not name.startswith("_") and not inspect.ismodule(getattr(recede, name))}
    assert public | {"__version__"} == set(recede.__all__)


def test_public_functions_name_their_parameters_and_errors() -> None:
    for name, value in DOCUMENTED.items():
        if inspect.isfunction(value):
            text = inspect.getdoc(value) or ""
            if name.endswith("_json"):
                continue  # they refer to their twin
            parameters = inspect.signature(value).parameters
            for parameter in parameters:
                assert f"{parameter}:" in text, f"{name} does not document {parameter}"
            assert ("Args:" in text and "Raises:" in text) or not parameters, name
