"""The command line: ``crenel demo``, ``crenel params``, ``crenel workload``, ``crenel bench``, ..."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; errors of the library become one line and exit status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    from crenel.errors import CrenelError

    try:
        from crenel.cli.app import app

        app(args=arguments, prog_name="crenel")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has seen enough
        return 0
    except (CrenelError, ImportError, OSError, MemoryError) as error:
        if debug:
            raise
        print(f"crenel: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
