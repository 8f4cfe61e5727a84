"""``eventlog why``: the event that made a part of a state what it is, and what led to it. Reads only."""

from __future__ import annotations

from typing import Any

import click

from ..eventlog.console import OK, app_option, json_option, stream_argument
from ..eventlog.printing import print_json, say
from .cli_options import at_option, line_width, path_argument
from .sources import reading_source, source_option


@click.command()
@stream_argument
@path_argument(required=True)
@at_option()
@click.option("--most", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Tell of the last N changes.")
@source_option
@app_option
@json_option
def why(stream: str, path: Any, at: Any, most: int, url: str, app: str | None, as_json: bool) -> int:
    """Say why PATH in STREAM's state is as it is.

    Names the last event that changed it and the ones before, and what led to the last: outcomes, effects, what the
    model was asked and answered, up to the input. A PATH is one into the aggregate, or begins with `run`.

    \b
    eventlog why accounts-acct-42 refunded_cents
    eventlog why accounts-acct-42 "orders['o-1']" --at 9
    """
    from .users_code import load_app
    from .why import why as explained
    from .why_lines import why_lines, why_tree

    known = load_app(app)
    with reading_source(url) as log:
        found = explained(log, known, stream, path, at, most=most)
    if as_json:
        print_json(why_tree(found, known.codec))
    else:
        for line in why_lines(found, known.codec, width=line_width()):
            say(line)
    return OK
