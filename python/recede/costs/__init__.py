"""Costs of sessions: prices, replay of every request under several policies, and the best window.

The policies that a replay compares, each written ``name:key=value,key=value``:

- ``raw``: everything is sent.
- ``sliding:window=10``: all observations but the newest 10 are masked.
- ``stepped:window=10,chunk=5``: the same, but the boundary moves by 5 observations at once.
- ``break_even:window=10``: the boundary moves when that breaks even at these prices.
- ``high_water:window=10,chars=200000``: it moves when the view is larger than this.
- ``clear_tool_uses:trigger=100000,keep=3,at_least=0``: Anthropic's context editing. When the context has
  more tokens than ``trigger``, all results but the newest ``keep`` are cleared, if that clears at least
  ``at_least`` tokens.
- ``clip:chars=4000``: results are cut to this length from their first request on.
- ``keep_last:messages=20``: the system messages, the first user message, the last 20 messages and
  what pairs with them; the rest is dropped.
- ``summary:every=21,tail=10``: nothing is masked; at turns 31, 52, … all turns but the last 10 are
  summarized.
- ``hybrid:window=10,at=43,tail=10``: all observations but those of the last 10 turns are masked, and at
  turns 43, 86, … all turns but the last 10 are summarized. ``boundary`` and ``chunk`` decide when the
  boundary moves (``boundary=break_even``, ``boundary=stepped,chunk=5``).
- ``budget:tokens=20000,fill=0.5``: a `History` with ``max_input_tokens=20000``, or a limit of ``chars=80000``; its
  boundary breaks even at these prices.

The numbers of ``summary`` and ``hybrid`` can be omitted and default to the published values. With
``every=break_even`` or ``at=break_even`` a summary is made when that breaks even; with ``at=never`` none is
made, which leaves a mask whose window counts turns. With ``cache_breakpoint=boundary`` requests of a mask
have one more cache breakpoint, on the last masked result.
"""

from recede.costs._bill import Bill, SessionPrices, logged_bill, session_prices
from recede.costs._calibrate import calibrate
from recede.costs._calibration import Calibration
from recede.costs._check import BillCheck, check_bill, replay_transcript
from recede.costs._compare import PolicyCost, ReplayUsage, cheapest_policy
from recede.costs._misses import (
    CURVE_WINDOWS,
    WindowChoice,
    WindowCurve,
    curve_policies,
    misses,
    quoted_share,
    window_curve,
)
from recede.costs._models import MODELS, AssumedModel, ModelPrices, assumed_model, model_prices, read_prices
from recede.costs._policies import parse_policy, reads_texts, replay_policies
from recede.costs._prices import CACHES, PRESETS, Cache, Prices, Usage, cache_of_format
from recede.costs._quotations import Misses, Quotation
from recede.costs._replay import SYSTEM_CHARS, PolicyReplay, Replay, compare_costs, replay, replay_json
from recede.costs._turn import ReplayedTurn
from recede.reduction._policy import SUMMARY_CHARS

__all__ = [
    "CACHES",
    "CURVE_WINDOWS",
    "MODELS",
    "PRESETS",
    "SUMMARY_CHARS",
    "SYSTEM_CHARS",
    "AssumedModel",
    "Bill",
    "BillCheck",
    "Cache",
    "Calibration",
    "Misses",
    "ModelPrices",
    "PolicyCost",
    "PolicyReplay",
    "Prices",
    "Quotation",
    "Replay",
    "ReplayUsage",
    "ReplayedTurn",
    "SessionPrices",
    "Usage",
    "WindowChoice",
    "WindowCurve",
    "assumed_model",
    "cache_of_format",
    "calibrate",
    "cheapest_policy",
    "check_bill",
    "compare_costs",
    "curve_policies",
    "logged_bill",
    "misses",
    "model_prices",
    "parse_policy",
    "quoted_share",
    "read_prices",
    "reads_texts",
    "replay",
    "replay_json",
    "replay_policies",
    "replay_transcript",
    "session_prices",
    "window_curve",
]
