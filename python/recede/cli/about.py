"""What `recede --version` prints: a bug report needs the engine and the scanner as well."""

from __future__ import annotations

import sys

from recede import __version__
from recede.reduction import ENGINE, scanner

ABOUT = f"recede {__version__} ({', '.join(filter(None, [ENGINE, scanner()]))}), Python {sys.version.split()[0]}"
