"""Every public name says what it is, and its examples run with both engines."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from typing import Any, is_typeddict

import pytest

import recede
from recede.designs import HistoryReducer
from recede.reduction._options import DESIGN_OPTIONS, OPTIONS

MODULES = (*recede._MODULES, "testing")
PUBLIC = {f"recede.{name}": getattr(recede, name) for name in recede.__all__}
for _module in [import_module(f"recede.{name}") for name in MODULES]:
    for _name in _module.__all__:
        if getattr(recede, _name, None) is not getattr(_module, _name):
            PUBLIC[f"{_module.__name__}.{_name}"] = getattr(_module, _name)
DOCUMENTED = {name: value for name, value in PUBLIC.items() if inspect.isclass(value) or inspect.isfunction(value)}

# What a function gives or takes is shown by the example of that function.
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.REPORT_NDIFF


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_has_a_docstring_with_an_example(name: str) -> None:
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    assert text[:1].isupper() or text.startswith("`")
    assert "\n" not in text.split("\n\n")[0], "the first line stands alone"
    assert ">>> " in text, f"{name} has no example"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str) -> None:
    if name.startswith("recede.arrow."):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    value: Any = DOCUMENTED[name]
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    written: list[str] = []
    bases = value.__mro__ if inspect.isclass(value) else (value,)
    for part in (base for base in bases if base.__module__.startswith("recede")):
        for example in doctest.DocTestFinder().find(part, name, globs={}):
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


_RAISE_NOTHING = {
    f"recede.costs.{name}" for name in ("cache_of_format", "logged_bill", "model_prices", "session_prices")
}


def test_public_functions_name_their_parameters_and_errors() -> None:
    for name, value in DOCUMENTED.items():
        if inspect.isfunction(value):
            text = inspect.getdoc(value) or ""
            if name.endswith(("_json", "_async")):
                continue  # they refer to their twin
            parameters = inspect.signature(value).parameters
            for parameter in parameters:
                elsewhere = parameter in {**OPTIONS, **DESIGN_OPTIONS} and "**options" in text
                assert elsewhere or f"{parameter}:" in text, f"{name} does not document {parameter}"
            has_errors = "Raises:" in text or name in _RAISE_NOTHING
            assert ("Args:" in text and has_errors) or not parameters, name


def callables() -> list[tuple[str, Any]]:
    """Every public function, constructor and method of a public class."""
    found = []
    for name, value in DOCUMENTED.items():
        if not is_typeddict(value) and not getattr(value, "_is_protocol", False):
            found.append((name, value))
        if inspect.isclass(value):
            methods = [key for key in sorted(vars(value)) if not key.startswith("_") and callable(getattr(value, key))]
            found += [(f"{name}.{key}", getattr(value, key)) for key in methods]
    return found


# Keywords that go on to a client's request, whose names are the client's; and a base class that is never made.
_REQUESTS = {
    "recede.designs.Conversation",
    "recede.RecedeError",
    "recede.designs.auto_continue",
    "recede.designs.auto_continue_async",
    "recede.summarizers.anthropic",
    "recede.summarizers.gemini",
    "recede.summarizers.openai",
}


@pytest.mark.parametrize(("name", "value"), [pair for pair in callables() if pair[0] not in _REQUESTS])
def test_every_parameter_is_spelled_out(name: str, value: Any) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(value).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds, f"{name} takes keywords that its signature does not show"


@pytest.mark.parametrize(
    ("goal", "run"),
    [
        ("reduce", lambda **options: HistoryReducer(**{"max_input_chars": 9, **options}).reduce([])),
        ("mask", lambda **options: recede.designs.mask_observations([], **{"keep_results": 4, **options})),
        ("summarize", lambda **options: recede.designs.summarize_history([], **options)),
        ("truncate", lambda **options: recede.designs.truncate_history([], **options)),
        ("block", lambda **options: recede.designs.mask_old_observations([], **options)),
    ],
)
def test_each_function_takes_its_options_and_no_other(goal: str, run: Any) -> None:
    for name, option in DESIGN_OPTIONS.items():
        if goal not in option.goals:
            with pytest.raises(TypeError, match=f"there is no option {name!r}"):
                run(**{name: option.default})
        elif name not in ("max_input_tokens", "keep_results"):
            value = 9 if name == "max_input_chars" else option.default
            assert run(**{name: value}) == run()
