"""Which values of RECEDE_OFF switch masking off."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from recede._off import is_off

MASKS = ("", "0", "false", "False", "no", "NO", "off", "Off", " 0 ")
RAW = ("1", "true", "TRUE", "yes", "on", "On", "2", "y", "raw", "-1")


def test_every_value_but_those_that_say_no_switches_off(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for value in (*MASKS, *RAW):
        monkeypatch.setenv("RECEDE_OFF", value)
        found[value] = is_off()
    assert found == dict.fromkeys(MASKS, False) | dict.fromkeys(RAW, True)
    monkeypatch.delenv("RECEDE_OFF")
    assert not is_off()


@pytest.mark.parametrize(("value", "expected"), [("yes", "True"), ("TRUE", "True"), ("2", "True"), ("Off", "False")])
def test_what_is_read_at_import_is_the_same(value: str, expected: str) -> None:
    code = "from recede.reduction._policy import IS_OFF; print(IS_OFF)"
    env = {**os.environ, "RECEDE_OFF": value}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
