"""`python -m lantm` is `lantm`."""

from lantm.cli import start

start()
