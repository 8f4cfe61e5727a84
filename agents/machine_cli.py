"""``eventlog machine``: a state machine drawn, with live counts when a log is given."""

from __future__ import annotations

import click

from ..eventlog.console import OK, json_option, reading
from ..eventlog.printing import print_json, say


@click.command()
@click.argument("app", metavar="APP")
@click.argument("agent", metavar="AGENT")
@click.option("--mermaid", is_flag=True, help="Print a Mermaid state diagram.")
@click.option("--log", "url", metavar="URL", help="Count the keys in each state of this log.")
@json_option
def machine(app: str, agent: str, mermaid: bool, url: str | None, as_json: bool) -> int:
    """Draw the state machine of an agent's aggregate, or of a plain one by its category.

    \b
    eventlog machine shop:app orders
    eventlog machine shop:app orders --mermaid --log sqlite:///eventlog.db
    """
    from .loading import load_app
    from .machine_drawing import as_object, counts, found_in, mermaid_lines, text_lines

    loaded = load_app(app)
    drawn = found_in(loaded, agent)
    keys = None
    if url is not None:
        with reading(url) as log:
            keys = counts(log, loaded, drawn)
    if as_json:
        print_json(as_object(drawn, keys))
    else:
        for line in mermaid_lines(drawn, keys) if mermaid else text_lines(drawn, keys):
            say(line)
    return OK
