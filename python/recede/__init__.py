"""recede replaces old tool outputs in the history of an LLM agent with a one-line placeholder.

Three of the four doors are here: `reduce` for a list, a request or its JSON, `History` for a loop of your own, `wrap`
for a client; the fourth is the command ``recede proxy``. Everything else is in the package of its noun:
`recede.masker`, `recede.proxy`, `recede.integrations`, `recede.store`, `recede.agent`, `recede.turns`, `recede.costs`,
`recede.transcripts`, `recede.arrow`, `recede.summarizers`, `recede.types`, `recede.testing`. The names of published
designs are in `recede.designs`.
"""

import sys

from recede._engine import __version__

__all__ = [
    "History",
    "Provider",
    "RecedeError",
    "Reduction",
    "StoreError",
    "TranscriptError",
    "__version__",
    "check_pairs",
    "count_chars",
    "reduce",
    "repair_pairs",
    "wrap",
]


# Imported on first use, so that `import recede` stays fast; the rest of the names is in `recede.reduction`.
_LATER = {
    "History": "session",
    "Provider": "providers",
    "RecedeError": "_errors",
    "Reduction": "_report",
    "StoreError": "_errors",
    "TranscriptError": "_errors",
    "wrap": "clients",
}
_MODULES = (
    "agent",
    "arrow",
    "clients",
    "costs",
    "designs",
    "integrations",
    "masker",
    "providers",
    "proxy",
    "reduction",
    "session",
    "store",
    "summarizers",
    "transcripts",
    "turns",
    "types",
)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"recede.{name}")
    if name in __all__:
        value = globals()[name] = getattr(import_module(f"recede.{_LATER.get(name, 'reduction')}"), name)
        return value
    said, is_import = f"module {__name__!r} has no attribute {name!r}", False
    for module in () if name.startswith("_") else ("designs", *_MODULES):
        if name in getattr(import_module(f"recede.{module}"), "__all__", ()):
            what = "a name of a published design, " if module == "designs" else ""
            said += f": it is {what}recede.{module}.{name}"
            # `from recede import ...` drops the text of an AttributeError.
            is_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"
            break
    else:
        from recede._errors import meant

        said += meant(name, [*__all__, *_MODULES])
        if name.startswith("Recede"):
            said += ": adapters are in recede.integrations, such as recede.integrations.langchain.RecedeMiddleware"
    raise (ImportError if is_import else AttributeError)(said)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
