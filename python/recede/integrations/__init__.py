"""Adapters for frameworks: a module for each, which imports it.

They change what is sent to the model, and nothing that the framework stores. What a module needs is an extra of the
package: ``pip install "recede[langchain]"`` for `recede.integrations.langchain`.
"""

__all__: list[str] = []
