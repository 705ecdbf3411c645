"""Adapters for frameworks, one module for each, which imports the framework.

They change what is sent to the model, and nothing that the framework stores. What a module needs is an extra of the
package: ``pip install "recede[langchain]"`` for `recede.integrations.langchain`.
"""

__all__: list[str] = []


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(f"{__name__}.{name}")
    except ImportError as error:  # `hasattr` expects this one
        said = str(error)
        if error.name == f"{__name__}.{name}":
            from pkgutil import iter_modules

            from recede._errors import meant

            known = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
            is_langchain = name in ("langgraph", "deepagents")
            said += "; did you mean 'langchain'?" if is_langchain else meant(name, known)
        raise AttributeError(said) from error
