"""What the agent's commands print, and how they end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from agent import errors as agent_errors
from agent.summary import Summary, lines
from ledger import errors as ledger_errors

INTERRUPTED = 130
NOT_CLEAN = 7
UNREACHABLE = 6
USAGE = 2


def print_summary(summary: Summary, *, as_json: bool) -> None:
    """Print the numbers of a run as columns or as JSON."""
    if as_json:
        typer.echo(json.dumps(summary.to_mapping(), ensure_ascii=False, indent=2))
        return
    for line in ["", *lines(summary)]:
        typer.echo(line)


def print_why(library: str, experience: str, url: str) -> None:
    """Show one `why` in full, by the command that anyone can use."""
    typer.echo(f"\nwhy {experience}\n")
    sys.stdout.flush()
    command = ["why", library, experience, "--server", url]
    subprocess.run([sys.executable, "-c", "from ledger.command import main; main()", *command], check=False)  # noqa: S603


def print_audit(summary: Summary) -> None:
    """Print whether the log verifies and re-derives."""
    verified, rederived = summary.verified, summary.rederived
    typer.echo("")
    if verified.ok:
        typer.echo(f"verify:   clean, {verified.events} events, head {verified.head}")
    else:
        typer.echo(f"verify:   NOT clean at sequence {verified.bad_sequence}: {verified.reason}")
    if rederived.first_difference is None:
        typer.echo(f"rederive: clean, {rederived.compared} derived events equal the recorded ones")
    else:
        typer.echo(f"rederive: NOT clean from sequence {rederived.first_difference.sequence} on")


def command_name() -> str:
    """How this reader can type `sagebook`: the name where it is on the path, else the path of the script."""
    script = Path(sys.argv[0])
    if shutil.which("sagebook") is not None or script.name != "sagebook":
        return "sagebook"
    near = os.path.relpath(script)
    return str(script) if near.startswith("..") else near


def print_further(library: str, experience: str | None, where: str, seed: int) -> None:
    """Print the commands to look further with."""
    command = command_name()
    typer.echo("\nto look further:")
    typer.echo(f"  {command} state {library}{where}")
    if experience is not None:
        typer.echo(f"  {command} why {library} {experience}{where}")
    typer.echo(f"  {command} events {library}{where}")
    typer.echo(f"  {command} rederive {library} --policy value-memory{where}")
    typer.echo(f"  {command} run --library {library} --seed {seed + 1}{where}    # again, with what was learnt")


@contextmanager
def reported() -> Iterator[None]:
    """Turn what can happen into a line and an exit code; what nobody expected keeps its traceback."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            "\nsagebook: interrupted. Everything up to the last round is in the ledger; "
            "run the same command again (without --fresh) to continue.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    except (agent_errors.ConfigurationError, agent_errors.ScriptError, ledger_errors.PolicyError) as error:
        _fail(error, USAGE)
    except (agent_errors.LedgerUnavailableError, agent_errors.ModelUnavailableError) as error:
        _fail(error, UNREACHABLE)
    except (agent_errors.AgentError, ledger_errors.LedgerError) as error:
        _fail(error, 1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(error: Exception, code: int) -> NoReturn:
    typer.echo(f"sagebook: {error}", err=True)
    raise typer.Exit(code) from None
