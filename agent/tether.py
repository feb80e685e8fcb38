"""Runs a command that ends when the process that started it does: `python -m agent.tether PARENT COMMAND …`.

A ledger that a run starts must not outlive the run, also where the run is killed and can stop nothing any more.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask the kernel for a signal at the parent's end, then become the command. Does not return."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it was gone before it could be asked for
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - becoming the command is the point


if __name__ == "__main__":
    main(sys.argv[1:])
