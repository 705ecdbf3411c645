"""Tasks for `does_it_hurt_my_tasks.ipynb`: find a code in a log, with a played model. Put your own in their place.

RECEDE_OFF=1 inspect eval played_tasks.py --log-dir raw
inspect eval played_tasks.py --log-dir masked
"""

import hashlib
import random
import re
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, tool

from recede.integrations.inspect_ai import RecedeHooks

RecedeHooks(keep=10, provider="ideal").register()  # with RECEDE_OFF=1 it changes nothing

PAGES = re.compile(r"Read (\d+) pages .* page (\d+)\.")
CODE = re.compile(r"the code is (\w+)")


def code_of(page: int, pages: int) -> str:
    return hashlib.sha256(f"{page} of {pages}".encode()).hexdigest()[:8]


@tool
def read_page() -> Tool:
    async def execute(page: int, pages: int) -> str:
        """Read a page of the log.

        Args:
            page: The number of the page.
            pages: How many pages the log has.
        """
        return f"page {page}: the code is {code_of(page, pages)}\n" + f"{page}: a line of the log\n" * 250

    return execute


@solver
def attempts() -> Solver:
    """The attempt is part of the prompt, so that the played model does not do the same in each epoch."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages.append(ChatMessageUser(content=f"This is attempt {state.epoch}."))
        state.tools = [read_page()]
        return await generate(state)

    return solve


class PlayedModel:
    """Reads every page, and then needs the code of one of them.

    Where a placeholder hides that page, it reads it again in four of five cases, and guesses in the others. It errs in
    a tenth of its answers in any case. Its cache serves whatever prefix it has seen before.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def usage(self, messages: list[Any], answer: str) -> ModelUsage:
        digest, sizes, read = hashlib.sha256(), [len(message.text) // 4 + 10 for message in messages], 0
        for message, size in zip(messages, sizes, strict=True):
            digest.update(f"{message.role} {message.text}".encode())
            read += size if digest.hexdigest() in self.seen else 0
            self.seen.add(digest.hexdigest())
        return ModelUsage(
            input_tokens=0,
            input_tokens_cache_read=read,
            input_tokens_cache_write=sum(sizes) - read,
            output_tokens=len(answer) // 4 + 10,
        )

    def __call__(self, messages: list[Any], *_: Any) -> ModelOutput:
        pages, wanted = (int(number) for number in PAGES.search(messages[0].text).groups())  # type: ignore[union-attr]
        asked = [call.arguments["page"] for message in messages for call in getattr(message, "tool_calls", None) or ()]
        shown = [message.text for message in messages if message.role == "tool"]
        chance = random.Random("".join(message.text for message in messages))
        if len(asked) < pages:
            output = self.read(len(asked) + 1, pages)
        else:
            seen = [CODE.search(text) for page, text in zip(asked, shown, strict=True) if page == wanted]
            if not any(seen) and asked.count(wanted) == 1 and chance.random() < 0.8:
                output = self.read(wanted, pages)
            else:
                is_right = any(seen) and chance.random() < 0.9
                output = ModelOutput.from_content("played", code_of(wanted, pages) if is_right else "I do not know.")
        output.usage = self.usage(messages, output.completion)
        return output

    def read(self, page: int, pages: int) -> ModelOutput:
        return ModelOutput.for_tool_call("played", "read_page", {"page": page, "pages": pages})


@task
def find_a_code() -> Task:
    samples = [
        Sample(
            id=f"page {wanted} of {pages}",
            input=f"Read {pages} pages of the log. Give the code of page {wanted}.",
            target=code_of(wanted, pages),
        )
        for pages in (30, 45, 60)
        for wanted in (4, pages // 2, pages - 4, pages)
    ]
    return Task(
        dataset=samples,
        solver=attempts(),
        scorer=includes(),
        model=get_model("mockllm/played", custom_outputs=PlayedModel()),
        message_limit=200,
    )
