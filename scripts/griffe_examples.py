"""For the site: griffe reads a section `Examples:`, and the docstrings of recede have one `Example:`."""

import griffe


class Examples(griffe.Extension):
    """Renames the heading, so that the lines become a code block and not prose."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
