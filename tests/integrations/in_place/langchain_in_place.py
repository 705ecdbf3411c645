"""A plugin of pytest: in LangChain's tests of context editing, the middleware is that of recede."""

from typing import Any

from langchain.agents.middleware import context_editing

from recede.integrations.langchain import RecedeMiddleware


def _in_place(*, edits: Any, **_: Any) -> RecedeMiddleware:
    (edit,) = edits
    return RecedeMiddleware(
        keep=edit.keep, boundary="sliding", exclude_tools=edit.exclude_tools, placeholder=edit.placeholder
    )


context_editing.ContextEditingMiddleware = _in_place  # type: ignore[assignment,misc]
