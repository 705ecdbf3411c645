"""Makes `python -m recede.cli` run the command line."""

from recede.cli import main

main()
