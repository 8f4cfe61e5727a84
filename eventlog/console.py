"""The command's ground rules: options, exit codes, errors in words, opening a log. Every room's sub-commands stand on it.

Exit codes: 0 ok, 1 found a difference, 2 usage, 3 could not, 130 interrupted, 141 nobody reads the output any more.
How things look is in ``printing``; finding an app is in ``agents.loading``. A module named in the entry point group
``intentlog.commands`` imports click, this one and ``printing`` at its top and everything else where it is used, so that
``eventlog --help`` stays fast. A command returns its exit code, or ``None`` for 0.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from . import interrupts
from .printing import Unprinted, note, one_line, printing, to_nowhere

if TYPE_CHECKING:
    from .log import EventLog

F = TypeVar("F", bound=Callable[..., Any])

OK: Final = 0
FOUND: Final = 1
"""A difference, a divergence, a finding: what the command was asked to look for."""
USAGE: Final = 2
COULD_NOT: Final = 3
INTERRUPTED: Final = 130
UNREAD: Final = 141

MOST: Final = 2**63 - 1
"""The largest number an option takes: versions and positions are no larger."""

_SENTENCE: Final = 2_000
_READ: Final = "intentlog.read"
"""Where a command's context keeps how the log that was read is opened again."""

DEFAULT_URL: Final = "sqlite:///eventlog.db"

_CODES: Final = {
    "InvalidName": USAGE,
    "InvalidUrl": USAGE,
    "RegistrationError": USAGE,
    "DefinitionError": USAGE,
    "InputRefused": USAGE,
    "LogError": COULD_NOT,
    "AgentError": COULD_NOT,
}
"""Class name → exit code, looked up along an error's bases: names, because this room does not import the others."""

_CREDENTIALS: Final = (
    (re.compile(r"(://[^\s:]*):\S*@"), r"\1:***@"),
    (re.compile(r"\b(password|passwd|token|secret|api_key|sslpassword)=[^&\s]*[^&\s'\"]", re.IGNORECASE), r"\1=***"),
)


class CouldNot(click.ClickException):
    """The command did not do what it was asked for; the message says why and what to do next."""

    exit_code = COULD_NOT


def masked(text: str) -> str:
    """``text`` with passwords in URLs replaced.

    >>> masked("postgresql://me:hunter2@db/log?sslpassword=x")
    'postgresql://me:***@db/log?sslpassword=***'
    """
    for pattern, shown in _CREDENTIALS:
        text = pattern.sub(shown, text)
    return text


# ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def log_option(command: F) -> F:
    """``--log URL`` as the parameter ``url``."""
    text = "The log: sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database."
    return click.option("--log", "url", metavar="URL", envvar="EVENTLOG_URL", default=DEFAULT_URL, show_default=True, show_envvar=True, help=text)(command)


def app_option(command: F) -> F:
    """``--app module:attribute`` as the parameter ``app``; give it to ``agents.loading.load_app``."""
    text = "The app: the module (found from the current folder) and the name of the App in it."
    return click.option("--app", "app", metavar="MODULE:ATTRIBUTE", envvar="EVENTLOG_APP", show_envvar=True, help=text)(command)


def app_argument(command: F) -> F:
    """``APP`` or ``--app`` as the parameter ``app``; neither is a usage error."""

    def chosen(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
        found = value or ctx.params.get("app_option")
        ctx.params.pop("app_option", None)
        if not found:
            raise click.UsageError("No app given. Name it as module:attribute, for example refunds:app, or set EVENTLOG_APP.", ctx)
        return str(found)

    text = "The same as APP."
    # Eager, so that it is there when the argument looks for it.
    option = click.option("--app", "app_option", metavar="MODULE:ATTRIBUTE", envvar="EVENTLOG_APP", show_envvar=True, is_eager=True, help=text)
    return option(click.argument("app", metavar="APP", required=False, callback=chosen)(command))


def json_option(command: F) -> F:
    """``--json`` as the parameter ``as_json``: one object for a single result, a line an item for a list."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON: one object, or one line an item.")(command)


def stream_argument(command: F) -> F:
    """``STREAM`` as the parameter ``stream``, completed from the log."""

    def checked(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        from .names import check_stream

        return check_stream(value)

    return click.argument("stream", metavar="STREAM", shell_complete=complete_streams, callback=checked)(command)


def complete_streams(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of streams for the shell; reads only, and has nothing to say when the log cannot be read."""
    try:
        with _opened(str(ctx.params.get("url") or os.environ.get("EVENTLOG_URL") or DEFAULT_URL)) as log:
            return [name for name, _ in zip(log.streams(incomplete), range(100), strict=False)]
    except Exception:  # a completion that prints an error spoils the line being typed
        return []


# ── the log ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def reading(url: str) -> Iterator[EventLog]:
    """The log that is there, for reading only; it is never made. Raises ``StoreSchemaError`` with the way to make one.

    What is committed and cannot be shown yet is told of on stderr, in one line: an answer that lacks it would look whole.
    """
    from .held_back import held_back

    with _opened(url) as log:
        if held := held_back(log):
            note(f"eventlog: {one_line(masked(held), _SENTENCE)}")
        note_read(partial(_opened, url))
        yield log


def note_read(again: Callable[[], AbstractContextManager[EventLog]]) -> None:
    """What the command reads, so that it can be looked at once more when something unexpected happens."""
    if (ctx := click.get_current_context(silent=True)) is not None:
        ctx.meta[_READ] = again


@contextmanager
def _opened(url: str) -> Iterator[EventLog]:
    from .opening import open_log

    check_kept(url)
    log = open_log(url, create=False, read_only=True)
    try:
        yield log
    finally:
        log.close()


def check_kept(url: str) -> None:
    """Raises a usage error for a log that nobody would find again."""
    if url.startswith("memory://"):
        raise click.UsageError(f"{url} ends with the process that opened it, so nothing would come of this. Name a log on disk, for example {DEFAULT_URL}.")


@contextmanager
def writing(url: str, *, create: bool) -> Iterator[EventLog]:
    """The log for writing. With ``create`` it is made when it is not there; without, a slip in the URL makes no second log."""
    from .opening import open_log

    if not create:
        check_kept(url)
    log = open_log(url, create=create)
    try:
        yield log
    finally:
        log.close()


@contextmanager
def answering(done: str) -> Iterator[None]:
    """Around what prints the answer of a command that wrote: when it cannot be printed, ``done`` says what is so all the same."""
    try:
        yield
        if sys.stdout is not None:
            with printing():
                sys.stdout.flush()
    except Unprinted as problem:
        raise CouldNot(f"{done}. Only printing it failed: {problem.strerror}.") from problem


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def exit_code_of(problem: BaseException) -> int:
    """The exit code an error ends the command with."""
    if isinstance(problem, click.ClickException):
        return problem.exit_code
    return next((_CODES[base.__name__] for base in type(problem).__mro__ if base.__name__ in _CODES), COULD_NOT)


def explain(problem: BaseException) -> str:
    """An error in words, with the next step and without credentials."""
    if isinstance(problem, click.UsageError):
        hint = f" Try: {problem.ctx.command_path} --help" if problem.ctx is not None else ""
        return masked(problem.format_message() + hint)
    if isinstance(problem, click.ClickException):
        return masked(problem.format_message())
    if _is_expected(problem):
        return masked(f"{type(problem).__name__}: {problem}" if "\n" in str(problem) else str(problem))
    if isinstance(problem, OSError) and not isinstance(problem, Unprinted) and _in_echo(problem):  # click's own: help, version
        return masked(f"printing to stdout failed: {problem.strerror or problem}.")
    if isinstance(problem, Unprinted):
        return masked(f"{problem.strerror}. The command itself is done; only its answer was not printed.")
    if isinstance(problem, OSError):
        return masked(f"{problem.strerror or problem}: {problem.filename}" if problem.filename else str(problem))
    return masked(f"unexpected {type(problem).__name__}: {problem}\nWhere it came from: the same command with EVENTLOG_DEBUG=1")


def _is_expected(problem: BaseException) -> bool:
    return any(base.__name__ in _CODES for base in type(problem).__mro__)


def _in_echo(problem: BaseException) -> bool:
    frames = traceback.extract_tb(problem.__traceback__)
    return bool(frames) and frames[-1].name == "echo"


class Commands(click.Group):
    """A group that turns every error into a short message on stderr and the right exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The same; no words at all ask for the help, and a command's option before its name is told where it goes."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            with printing():
                click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            if problem.option_name in ("--log", "--app", "--json"):
                raise click.UsageError(f"{problem.option_name} goes behind the command: {ctx.command_path} COMMAND … {problem.option_name} …", ctx) from problem
            raise

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, complete_var: str | None = None, standalone_mode: bool = True, **extra: Any
    ) -> NoReturn:
        """Run the command line and exit."""
        code: object
        try:
            interrupts.over()
            _all_there()
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            if sys.stdout is not None:
                with printing():
                    sys.stdout.flush()
        except BrokenPipeError:
            code = _nobody_reads()
        except (KeyboardInterrupt, click.Abort):
            code = INTERRUPTED
        except click.exceptions.Exit as stop:
            code = stop.exit_code
        except Exception as problem:
            code = _fail(problem, debug=bool(os.environ.get("EVENTLOG_DEBUG")) or "--debug" in (sys.argv[1:] if args is None else args))
        if code == COULD_NOT and sys.stdout is not None:
            _let_go()
        sys.exit(code if isinstance(code, int) else OK)

    def invoke(self, ctx: click.Context) -> Any:
        """The same; click itself would print a line for ^C and take a closed pipe for a difference."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except SystemExit as stop:  # no command raises it: it is the app's code, and its 0 is no success of the command
            raise CouldNot(f"the app's code ended the process ({stop!r}) before the command was done. EVENTLOG_DEBUG=1 shows where.") from stop
        except OSError as problem:
            if problem.errno == errno.EPIPE:
                raise click.exceptions.Exit(_nobody_reads()) from None
            raise
        except click.NoSuchOption as problem:
            if problem.option_name == "--debug":
                raise click.UsageError(f"--debug goes before the command: {ctx.find_root().command_path} --debug COMMAND …", ctx) from problem
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as problem:
            if not _is_expected(problem) and (hand := _blamed(ctx.meta.get(_READ))) is not None:
                raise hand from problem
            raise


def _blamed(again: Callable[[], AbstractContextManager[EventLog]] | None) -> Exception | None:
    """``blamed`` for the log that was read, which is closed by now."""
    if again is None:
        return None
    try:
        with again() as log:
            return blamed(log)
    except Exception:  # what failed first is what is to be told
        return None


def blamed(log: EventLog) -> Exception | None:
    """What a hand has put into ``log``, which explains what nobody expected; ``None`` when there is no such thing.

    No reader pays for a look at the type of every cell; once something has failed, they are looked at.
    """
    from .errors import LogError, StoreSchemaError
    from .inspecting import odd_cells_of

    try:
        odd = next(odd_cells_of(log), None)
    except LogError:
        return None
    return StoreSchemaError(odd.text) if odd is not None else None


def _let_go() -> None:
    """Take what stdout would not take off the interpreter's last flush, which would tell of it a second time."""
    try:
        sys.stdout.flush()
    except OSError:
        _nobody_reads()


def _fail(problem: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(problem)
    note("\n".join(one_line(line) for line in f"eventlog: {explain(problem)}".split("\n")))
    return exit_code_of(problem)


def _nobody_reads() -> int:
    to_nowhere(sys.stdout)
    return UNREAD


def _all_there() -> None:
    """Take up what is closed of stdin, stdout and stderr: the next file opened would get its number, and what is printed there.

    An empty stdin, and a stderr that goes nowhere; that stdout is closed is told, for there would be the answer.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free, which is this one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as long as the process lasts, like the one below
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
