"""Adapters for frameworks, one module for each, which imports the framework.

They change what is sent to the model, and nothing that the framework stores. What a module needs is an extra of the
package: ``pip install "recede[langchain]"`` for `recede.integrations.langchain`.
"""

__all__: list[str] = []
