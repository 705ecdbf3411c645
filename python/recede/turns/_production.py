"""The hybrid manager with an agent loop and efficiency reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recede._steps import AsyncFunctionError, Call, drive, drive_async
from recede.reduction._kinds import whole_number
from recede.turns._hybrid import HybridContextManager
from recede.turns._manager import preset
from recede.turns._records import AgentRun, EfficiencyReport, Turn

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Self

    from recede.store._turn_store import TurnStore
    from recede.turns._hybrid import TurnSummarizer
    from recede.turns._records import ContextReport

_DEFAULTS = {"masking_window": 10, "summarize_at": 43, "tail_window": 10, "max_trajectory_length": 250}
_RECALL = re.compile(r"\s*recall\s+(\d{1,18})\s*", re.ASCII | re.IGNORECASE)
_NO_EXECUTE = "execute is missing: give execute=, a function action -> observation, or override _execute in a subclass"


class ProductionHybridContextManager(HybridContextManager):
    """`HybridContextManager` with an agent loop and reports.

    Args:
        agent_llm: a callable, or an object with ``.generate``, from the context to ``(reasoning, action)``.
        summarizer_llm: as for `HybridContextManager`.
        config: ``masking_window`` (10), ``summarize_at`` (43), ``tail_window`` (10), ``max_trajectory_length`` (250
            turns, after which the agent is stopped).
        execute: ``action -> observation``. An exception becomes the observation.
        is_complete: ``reasoning -> bool``, whether the agent is done; by default it runs up to the limit.
        system_prompt: the beginning of each context.
        price_per_token: the price for the costs in reports.
        store, recall: as for `HybridContextManager`. With `recall` the action ``recall 7`` is not executed: the
            observation of turn 7 is its observation.

    Any of the functions may be async; then use `arun_agent`.

    A subclass may override the methods ``_execute(action)``, ``_is_complete(reasoning)``, ``_get_system_prompt()``
    and ``_calculate_efficiency_score()``; other hooks of the published class are a `TypeError` in a subclass. An
    override is what runs; the inherited method calls what the constructor was given, so that an override may wrap
    `execute` by ``super()._execute(action)``.

    Example:
        >>> import recede
        >>> answers = iter([("I must look.", "ls"), ("Done.", "stop")])
        >>> agent = recede.designs.ProductionHybridContextManager(
        ...     lambda context: next(answers), recede.summarizers.builtin(),
        ...     execute=lambda action: f"ran {action}", is_complete=lambda reasoning: reasoning == "Done.")
        >>> run = agent.run_agent("Find the bug.")
        >>> run["completed"], run["turns"], run["trajectory"][0].observation
        (True, 2, 'ran ls')
    """

    def __init__(
        self,
        agent_llm: Any,
        summarizer_llm: TurnSummarizer,
        config: Mapping[str, int] | None = None,
        *,
        execute: Callable[[str], Any] | None = None,
        is_complete: Callable[[str], Any] | None = None,
        system_prompt: str = "",
        price_per_token: float = 0.00001,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> None:
        values = {**_DEFAULTS, **(config or {})}
        unknown = values.keys() - _DEFAULTS.keys()
        if unknown:
            raise ValueError(f"config has no {sorted(unknown)[0]!r}; it takes {', '.join(map(repr, _DEFAULTS))}")
        whole_number()("max_trajectory_length", values["max_trajectory_length"])
        self._config = values
        self._set_agent(agent_llm, "agent_llm")
        for name, function in {"execute": execute, "is_complete": is_complete}.items():
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        if execute is None and type(self)._execute is ProductionHybridContextManager._execute:
            raise TypeError(_NO_EXECUTE)
        numbers = values["masking_window"], values["summarize_at"], values["tail_window"]
        super().__init__(summarizer_llm, *numbers, store=store, recall=recall)
        self._given_execute, self._given_is_complete = execute, is_complete
        self._system_prompt, self._price = system_prompt, price_per_token

    @classmethod
    def from_preset(  # type: ignore[override]  # its constructor takes the agent first
        cls,
        name: Literal["swe-agent", "openhands"],
        agent_llm: Any,
        summarizer_llm: TurnSummarizer,
        config: Mapping[str, int] | None = None,
        *,
        execute: Callable[[str], Any] | None = None,
        is_complete: Callable[[str], Any] | None = None,
        system_prompt: str = "",
        price_per_token: float = 0.00001,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> Self:
        """Create an agent with the published values: 10 / 43 / 10, or 58 / 80 / 58; `config` overrides them."""
        window, at, tail = preset(name)
        values = {"masking_window": window, "summarize_at": at, "tail_window": tail, **(config or {})}
        return cls(
            agent_llm,
            summarizer_llm,
            values,
            execute=execute,
            is_complete=is_complete,
            system_prompt=system_prompt,
            price_per_token=price_per_token,
            store=store,
            recall=recall,
        )

    # Settings

    @property
    def config(self) -> dict[str, int]:
        """The configuration with its defaults, as a new dict."""
        return dict(self._config)

    @property
    def agent(self) -> Any:
        """The agent's model, as it was given; another may be assigned."""
        return self._agent

    @agent.setter
    def agent(self, agent: Any) -> None:
        self._set_agent(agent, "agent")

    @property
    def agent_llm(self) -> Any:
        """`agent` under its published name."""
        return self._agent

    @agent_llm.setter
    def agent_llm(self, agent_llm: Any) -> None:
        self._set_agent(agent_llm, "agent_llm")

    def _set_agent(self, agent: Any, name: str) -> None:
        generate = getattr(agent, "generate", agent)
        if not callable(generate):
            raise TypeError(f"{name} must be callable, or have .generate(context), not {type(agent).__name__}")
        self._agent, self._generate = agent, generate

    # What a subclass may override

    def _execute(self, action: str) -> Any:
        if self._given_execute is None:
            raise TypeError(_NO_EXECUTE)
        return self._given_execute(action)

    def _is_complete(self, reasoning: str) -> Any:
        return self._given_is_complete is not None and self._given_is_complete(reasoning)

    def _get_system_prompt(self) -> str:
        return self._system_prompt

    def _calculate_efficiency_score(self) -> float:
        return self.report().efficiency_score

    # The loop

    def run_agent(
        self, task: str, max_turns: int | None = None, *, on_turn: Callable[[Turn], object] | None = None
    ) -> AgentRun:
        """Run the agent until it is complete or `max_turns` is reached, continuing from the existing turns.

        Args:
            task: the user's prompt.
            max_turns: the limit of this run; by default, and at most, what remains of ``max_trajectory_length``.
            on_turn: called with each added turn.

        An interrupt (Ctrl-C) during an action is recorded as its observation and raised again; `run_agent` can be
        called again to continue.

        Raises:
            TypeError: a function is async: use `arun_agent`.
        """
        self._refuse_async("arun_agent")
        return drive(self._running(task, max_turns, on_turn))

    async def arun_agent(
        self, task: str, max_turns: int | None = None, *, on_turn: Callable[[Turn], object] | None = None
    ) -> AgentRun:
        """`run_agent` for functions that may be async."""
        return await drive_async(self._running(task, max_turns, on_turn))

    def _running(
        self, task: str, max_turns: int | None, on_turn: Callable[[Turn], object] | None
    ) -> Generator[Call, Any, AgentRun]:
        completed, turns = False, 0
        left = max(0, self._config["max_trajectory_length"] - len(self))
        if max_turns is not None:
            left = min(left, whole_number()("max_turns", max_turns))
        for _ in range(left):
            context = self.get_context(self._get_system_prompt(), task)
            reasoning, action = _pair((yield Call("agent_llm", self._generate, (context,), "arun_agent")))
            try:
                observation = self._recalled(action)
                if observation is None:
                    observation = yield Call("execute", self._execute, (action,), "arun_agent")
            except AsyncFunctionError:
                raise
            except Exception as error:
                observation = _failed(error)
            except BaseException as interrupt:
                self._add(reasoning, action, _failed(interrupt))
                raise
            turn = self._add(reasoning, action, observation if isinstance(observation, str) else str(observation))
            turns += 1
            yield from self._summarizing()
            if on_turn is not None:
                yield Call("on_turn", on_turn, (turn,), "arun_agent")
            completed = bool((yield Call("is_complete", self._is_complete, (reasoning,), "arun_agent")))
            if completed:
                break
        return {
            "completed": completed,
            "hit_limit": not completed,
            "turns": turns,
            "trajectory": self.trajectory,
            "report": self.get_efficiency_report(),
        }

    def _recalled(self, action: object) -> str | None:
        """The observation that an action asks for; None if it is another action."""
        asked = _RECALL.fullmatch(action) if self._recalls and isinstance(action, str) else None
        return None if asked is None else self.recall(int(asked[1]))

    # Reports

    @property
    def metrics(self) -> dict[str, int]:
        """The number of turns in each phase, summaries made, and tokens saved over all requests."""
        with self._lock:
            report = self.report()
            return {
                "masking_turns": report.masking_turns,
                "summarizing_turns": len(self) - report.masking_turns,
                "summaries_created": len(self._made),
                "tokens_saved": report.saved_tokens,
            }

    def report(self, price_per_token: float | None = None) -> ContextReport:
        """Report tokens and savings as the other managers do, with the `price_per_token` of this one by default."""
        return super().report(self._price if price_per_token is None else price_per_token)

    def get_efficiency_report(self) -> EfficiencyReport:
        """Report turns by phase, summaries and their frequency, and tokens saved over all requests, also as a share."""
        metrics = self.metrics
        count, saved = metrics["summaries_created"], metrics["tokens_saved"]
        return {
            "phases": {"masking": metrics["masking_turns"], "summarizing": metrics["summarizing_turns"]},
            "summaries": {"count": count, "frequency": len(self) / max(1, count)},
            "savings": {"tokens": saved, "estimated_cost": saved * self._price},
            "efficiency_score": self._calculate_efficiency_score(),
        }


def _failed(error: BaseException) -> str:
    return f"[{type(error).__name__}: {error}]" if str(error) else f"[{type(error).__name__}]"


def _pair(answer: Any) -> tuple[str, str]:
    if isinstance(answer, str) or not isinstance(answer, Sequence) or len(answer) != 2:
        raise TypeError(f"agent_llm must return (reasoning, action), not {type(answer).__name__}")
    return answer[0], answer[1]
