"""The switch that turns masking off without a change of code."""

import os

_ON = frozenset({"", "0", "false", "no", "off"})


def is_off() -> bool:
    """Whether ``RECEDE_OFF`` is set to anything but 0, false, no or off: then nothing is masked."""
    return os.environ.get("RECEDE_OFF", "").strip().lower() not in _ON
