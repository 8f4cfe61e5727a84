"""``eventlog diff``: what changed in a stream's state between two places of its history. Reads only."""

from __future__ import annotations

from typing import Any

import click

from ..eventlog.console import FOUND, OK, app_option, json_option, stream_argument
from ..eventlog.printing import one_line, print_json, say, styled, width
from .cli_options import path_argument, place_argument
from .sources import reading_source, source_option


@click.command()
@stream_argument
@place_argument("a", "A")
@place_argument("b", "B")
@path_argument(required=False)
@click.option("--most", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="Show at most N changes; --json has them all.")
@source_option
@app_option
@json_option
def diff(stream: str, a: Any, b: Any, path: Any, most: int, url: str, app: str | None, as_json: bool) -> int:
    """Show what changed in STREAM's state from A to B: versions (17), positions (@1234) or moments.

    With PATH only that part: open_orders, run.intents['5f0c']. Bytes are shown as size and digest. Exits with 1 when
    anything differs.

    \b
    eventlog diff accounts-acct-42 4 now
    eventlog diff accounts-acct-42 4 9 run.intents
    """
    from .change_lines import change_lines, change_tree
    from .differing import differing
    from .users_code import load_app

    known = load_app(app)
    with reading_source(url) as log:
        found = differing(log, known, stream, a, b, path)
    if as_json:
        print_json({"stream": stream, "a": found.a, "b": found.b, "changes": [change_tree(each) for each in found.changes]})
    else:
        what = f"{len(found.changes):,} change{'' if len(found.changes) == 1 else 's'}" if found.changes else "no difference"
        say(styled(f"{one_line(stream)} from version {found.a} to {found.b}: {what}", bold=True))
        for line in change_lines(found.changes, width=width(), most=most):
            say(line)
    return FOUND if found.changes else OK
