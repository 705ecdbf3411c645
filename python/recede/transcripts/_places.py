"""Agents by their sessions: in which folders they are, and what starts the agent of a format."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

COMMANDS_OF_FORMATS = {  # of sessions
    "claude_code": "claude",
    "codex": "codex",
    "codex_exec": "codex",
    "gemini": "gemini",
    "gemini_stream": "gemini",
    "opencode": "opencode",
    "pi": "pi",
    "qwen_code": "qwen",
}
# Programs with a setting for the address of their provider.
PROGRAMS_OF_FORMATS = {
    "cline": "Cline",
    "copilot": "Copilot CLI",
    "openhands": "OpenHands",
    "openhands_v1": "OpenHands",
    "swe_agent": "SWE-agent",
    "mini_swe": "mini-SWE-agent",
}


class LogFolder(NamedTuple):
    """The folder in which an agent keeps its sessions, which may not exist, and the patterns of their files in it."""

    agent: str
    folder: Path
    patterns: tuple[str, ...]


def usual_places() -> list[LogFolder]:
    """The folders in which agents keep sessions, as their environment variables have them."""

    def folders(variable: str, *defaults: Path) -> list[Path]:
        given = [part.strip() for part in os.environ.get(variable, "").split(",") if part.strip()]
        return [Path(part).expanduser() for part in given] or list(defaults)

    home, lines = Path.home(), ("**/*.jsonl",)
    xdg = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    events = ("sessions/*/events", "users/*/conversations/*/events")
    codex, gemini = folders("CODEX_HOME", home / ".codex"), folders("GEMINI_CLI_HOME", home)
    places = [
        ("Claude Code", folders("CLAUDE_CONFIG_DIR", home / ".claude", xdg / "claude"), "projects", lines),
        ("Codex", codex, "sessions", lines),
        ("Codex", codex, "archived_sessions", lines),
        ("Gemini CLI", gemini, ".gemini/tmp", ("*/chats/*.json", "*/chats/*.jsonl")),
        ("Copilot CLI", folders("COPILOT_HOME", home / ".copilot"), "session-state", ("*/events.jsonl", "*.jsonl")),
        ("OpenHands", folders("FILE_STORE_PATH", home / ".openhands"), "", events),
        ("pi", folders("PI_CODING_AGENT_DIR", home / ".pi" / "agent"), "sessions", lines),
    ]
    return [LogFolder(agent, root / inner, patterns) for agent, roots, inner, patterns in places for root in roots]


def plan_of_claude() -> str | None:
    """The subscription that Claude Code says it is used with; None if it says nothing."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR", "").partition(",")[0].strip()
    path = (Path(folder).expanduser() if folder else Path.home()) / ".claude.json"
    try:
        account = json.loads(path.read_bytes()).get("oauthAccount")
        billing = account.get("billingType")
    except (OSError, ValueError, AttributeError):
        return None
    return billing if isinstance(billing, str) and "subscription" in billing else None
