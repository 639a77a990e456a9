"""The command line: ``altnorm``.

Exit status 0: done. 1: a verdict that says no, with ``--strict``. 2: bad input, told in one
sentence. 3: an error in altnorm itself.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(
            "Error: the command line needs the extra `cli`: pip install 'altnorm[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from altnorm.cli._run import run

    sys.exit(run(sys.argv[1:]))
