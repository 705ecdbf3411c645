"""What masks and summaries cost at the makers of models, by the rules of their caches: `python benches/providers.py`.

The first table replays the long recorded sessions at the price of a cached token; the second plays sessions of equal
turns through a `RequestMasker`, in chat form and in Anthropic's without marks. `--table` prints the first table of
docs/providers.md, `--table turns` the second.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
from economy import CORPUS, long_sessions
from figures import NOT_HERE

from claims import FULL, Claim, Plan, Section
from formatting import markdown
from recede.costs import Cache, Prices, compare_costs, replay
from recede.proxy import RequestMasker

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from played_sessions import Row, Turn, blocks, bodies_of, chat, of_rule, paid

SYSTEM_CHARS = 12_000
POLICIES = ["break_even:window=10", "hybrid:window=10,at=break_even,boundary=break_even"]
PREFIX, ENTRIES = Cache("prefix", math.inf), Cache("entries", math.inf, lookback_blocks=1 << 20, shares_prefixes=True)
# Of a token where input costs 1: read from the cache, output; the cache; and the most of raw for both policies.
PRICED = {
    "Grok": (0.25, 3.0, PREFIX, (0.48, 0.25)),
    "Kimi K2.7, GLM, MiniMax": (0.2, 4.0, PREFIX, (0.49, 0.27)),
    "GPT to 5.5, Kimi K3, Mistral": (0.1, 5.0, PREFIX, (0.53, 0.36)),
    "DeepSeek V4 Pro, if it served prefixes": (0.033, 3.0, PREFIX, (0.68, 0.62)),
    "DeepSeek V4 Pro": (0.033, 3.0, ENTRIES, (0.72, 0.69)),
    "DeepSeek V4 Flash, if it served prefixes": (0.02, 4.0, PREFIX, (0.81, 0.81)),
    "DeepSeek V4 Flash": (0.02, 4.0, ENTRIES, (0.87, 0.86)),
}
PLAYED = {
    "DeepSeek V4 Flash": of_rule("deepseek", 0.02),
    "DeepSeek V4 Pro": of_rule("deepseek", 0.033),
    "Qwen4-Max": of_rule("alibaba", 0.05),
    "Kimi K3.1": of_rule("moonshot", 0.1),
    "Mistral": of_rule("mistral", 0.1),
    "GLM 5.3": of_rule("zai", 0.186),
    "MiniMax M3": of_rule("minimax", 0.2),
    "Grok 4.7": of_rule("xai", 0.25),
    "Groq": of_rule("groq", 0.5),
    "GPT-5.6": of_rule("openai since GPT-5.6", 0.1, 1.25),
    "GPT-5.4": of_rule("openai", 0.1),
}
FORMS = {"chat": ("/v1/chat/completions", chat), "Anthropic": ("/v1/messages", blocks)}
TURNS = (60, 120, 240)
MOST = 1.1


def providers(_: Plan) -> Section:
    """Line 13: what masks and summaries cost by the rules of every provider's cache; no moment over 1.10 of raw."""
    claims = []
    for name, figures, most in recorded():
        figure = ", ".join(f"{of_raw:.2f}" for of_raw, _ in figures)
        is_met = all(of_raw <= limit and worst <= MOST for (of_raw, worst), limit in zip(figures, most, strict=True))
        target = f"at most {most[0]:.2f}, {most[1]:.2f}, no moment over {MOST:.2f}"
        claims.append(Claim("13", f"{name}: masks and summaries of long sessions / raw", figure, target, is_met))
    for name, row in PLAYED.items():
        found = {form: played(name, form) for form in _forms(row)}
        figure = "; ".join(
            f"{form} " + ", ".join(f"{cost:.2f} ({worst:.2f})" for cost, worst in found[form]) for form in found
        )
        both = zip(found["chat"], found.get("Anthropic", found["chat"]), strict=True)
        is_met = all(worst <= MOST for cells in found.values() for _, worst in cells)
        is_met = is_met and all(other <= cost + 0.02 for (cost, _), (other, _) in both)
        turns = ", ".join(map(str, TURNS))
        claims.append(
            Claim("13", f"{name}: {turns} turns of 4,000 characters / raw", figure, "no moment over 1.10", is_met)
        )
    return Section(claims, "")


def recorded() -> Iterator[tuple[str, list[tuple[float, float]], tuple[float, float]]]:
    """Of each price what both policies cost of raw, and the worst moment; and the most that they may."""
    if not CORPUS.is_dir():
        return
    sessions = list(long_sessions())
    for name, (read, output, kept, most) in PRICED.items():
        prices = Prices(input=1, cached=read, write=1, output=0, min_cached_tokens=0)
        asked = prices._replace(output=output)
        replays = [
            replay(one, POLICIES, prices=prices, cache=kept, system_chars=SYSTEM_CHARS, summary_prices=asked)
            for one in sessions
        ]
        yield name, [(cost.of_raw, cost.worst_moment) for cost in compare_costs(replays)[1:]], most


def played(name: str, form: str) -> list[tuple[float, float]]:
    """What a session costs of raw after so many turns each, and its worst moment until then."""
    row, (path, make) = PLAYED[name], FORMS[form]
    turns: list[Turn] = [(200, [4_000], 10.0)] * max(TURNS)
    now = [0.0]
    masker = RequestMasker(provider=row.provider, clock=lambda: now[0])
    bodies = bodies_of(make(turns, SYSTEM_CHARS))
    seconds = [10.0 * place for place in range(len(bodies))]
    views = []
    for body, now[0] in zip(bodies, seconds, strict=True):
        views.append(orjson.loads(masker.mask("POST", path, {}, orjson.dumps(body)).body))
    shares = [one / raw for one, raw in zip(paid(row, views, seconds), paid(row, bodies, seconds), strict=True)]
    return [(shares[count], max(shares[: count + 1])) for count in TURNS]


def _forms(row: Row) -> list[str]:
    """OpenAI's models have no door of Anthropic's form."""
    return ["chat"] if row.provider.name.startswith("openai") else list(FORMS)


def table() -> str:
    """What masks and summaries cost of raw, by maker: the rows of docs/providers.md."""
    own = ((name, figures) for name, figures, _ in recorded() if ", if" not in name)
    rows = [[name, *(f"{100 * of_raw:.0f} %" for of_raw, _ in figures)] for name, figures in own]
    return markdown(["maker", "masks", "masks and summaries"], rows)


def table_of_turns() -> str:
    """What equal turns cost of raw, by maker, in the form that costs more: the second table of docs/providers.md."""
    rows = []
    for name, row in PLAYED.items():
        forms = [played(name, form) for form in _forms(row)]
        dearest = [max(cells) for cells in zip(*forms, strict=True)]
        worst = max(worst for cells in forms for _, worst in cells)
        rows.append([name, *(f"{100 * cost:.0f} %" for cost, _ in dearest), f"{100 * worst:.0f} %"])
    return markdown(["maker", *(f"{count} turns" for count in TURNS), "worst moment"], rows)


def main() -> None:
    """Print a table of docs/providers.md, or the claims."""
    if sys.argv[1:] == ["--table", "turns"]:
        print(table_of_turns())
        return
    if "--table" in sys.argv:
        if not CORPUS.is_dir():
            sys.exit(NOT_HERE)
        print(table())
        return
    rows = [[one.what, one.figure, one.target, "" if one.is_met else "**missed**"] for one in providers(FULL).claims]
    print(markdown(["", "of raw (worst moment)", "", ""], rows))


if __name__ == "__main__":
    main()
