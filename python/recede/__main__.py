"""Makes `python -m recede` run the command line."""

from recede.cli import main

main()
