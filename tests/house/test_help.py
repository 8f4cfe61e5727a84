"""Every command's help has an example of it, with options that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command, the parts of groups among them, by what is typed."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from commands(found, (*words, name))
    else:
        yield " ".join(words), command


COMMANDS = dict(commands(group))


def examples(name: str) -> list[list[str]]:
    """The words behind ``eventlog NAME`` in the examples of its help, each of which stands on a line of its own."""
    _, _, text = CliRunner().invoke(group, [*name.split(), "--help"], prog_name="eventlog", env={"COLUMNS": "200"}).stdout.partition("\n")
    lines = re.findall(rf"^ +(?:[^\n|]*\| )?eventlog {name}((?: [^\n]*)?)$", text, re.MULTILINE)
    return [shlex.split(line.partition("   ")[0]) for line in lines]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_whose_options_it_takes(name):
    found = examples(name)
    assert found, f"eventlog {name} --help shows no example"
    known = {option for parameter in COMMANDS[name].params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.partition("=")[0] for words in found for word in words if re.match("--?[a-z]", word)}
    assert set() == used - known


def test_there_are_commands_to_look_at():
    assert {"state", "streams", "tail", "init", "intents list"} <= COMMANDS.keys()
