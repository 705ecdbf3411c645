"""Outline -> turns: runs of agent-made messages, numbered from 1."""

from __future__ import annotations

from oracle.outline import Outline


class Turns:
    """The runs of a history.

    Attributes:
        starts: for each run, its first message.
        begun: for each message, how many runs have begun when it ends; in a run, the number of that run.
        ends: for each message, the last message of its run; outside of runs, the message itself.
    """

    def __init__(self, outline: Outline) -> None:
        self.starts: list[int] = []
        self.begun: list[int] = []
        self.ends: list[int] = list(range(len(outline.messages)))
        in_run = False
        for message in outline.messages:
            if message.is_agent_made and not in_run:
                self.starts.append(message.index)
            in_run = message.is_agent_made
            self.begun.append(len(self.starts))
        for index in reversed(range(len(self.ends) - 1)):
            if outline.messages[index].is_agent_made and outline.messages[index + 1].is_agent_made:
                self.ends[index] = self.ends[index + 1]
