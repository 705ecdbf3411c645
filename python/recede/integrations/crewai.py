"""CrewAI: an interceptor, which masks the requests of its classes for OpenAI and Anthropic."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from recede.integrations._shared import missing
from recede.integrations.http import Requests
from recede.proxy import RequestMasker
from recede.reduction._options import OPTIONS
from recede.reduction._signature import takes

try:
    import httpx
    from crewai.llms.hooks import BaseInterceptor
except ImportError as error:
    raise missing("crewai", "crewai 1.15 or newer") from error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede.types import Options, Summarizer

__all__ = ["RecedeInterceptor"]


class RecedeInterceptor(BaseInterceptor[httpx.Request, httpx.Response]):
    """Masks old tool results in what is sent to the model; the messages of the agents keep all of them.

    Args:
        masker: the `recede.proxy.RequestMasker` to use; by default one with these options.
        summarizer: as for `recede.integrations.http.recede_client`; one that is async is for `akickoff`.
        **options: as for `reduce`. No message is ever dropped.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, out of range, or given beside a masker.

    One object serves any number of models, agents and crews.

    Example::

        llm = LLM(model="openai/gpt-5", interceptor=RecedeInterceptor(keep=10))
    """

    @takes(OPTIONS)
    def __init__(
        self, masker: RequestMasker | None = None, *, summarizer: Summarizer | None = None, **options: Unpack[Options]
    ) -> None:
        """Take the options of every door, or a masker that has them."""
        self._given: dict[str, Any] = {"masker": masker, "summarizer": summarizer, **options}
        self._requests = Requests(masker, summarizer, {**options}, "call akickoff()")

    def __reduce__(self) -> Any:
        """A copy has the options, and the masker that was given."""
        return partial(type(self), **self._given), ()

    def on_outbound(self, message: httpx.Request) -> httpx.Request:
        """Mask a request."""
        return self._requests.masked(message)  # type: ignore[no-any-return]

    def on_inbound(self, message: httpx.Response) -> httpx.Response:
        """Leave an answer as it is."""
        return message

    async def aon_outbound(self, message: httpx.Request) -> httpx.Request:
        """Mask a request of an async client."""
        return await self._requests.amasked(message)  # type: ignore[no-any-return]

    async def aon_inbound(self, message: httpx.Response) -> httpx.Response:
        """Leave an answer as it is."""
        return message
