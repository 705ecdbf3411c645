"""The output of `recede --version`: a bug report needs the scanner as well."""

from __future__ import annotations

import sys

from recede import __version__
from recede.reduction import scanner

ABOUT = f"recede {__version__} ({scanner()}), Python {sys.version.split()[0]}"
