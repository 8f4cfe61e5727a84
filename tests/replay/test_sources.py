"""Every command that looks at one history takes a bundle for a log, and the others say which those are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group
from intentlog.eventlog.errors import InvalidUrl, StoreSchemaError
from intentlog.eventlog.opening import READ_BUNDLES
from intentlog.replay.bundles import write_bundle
from intentlog.replay.errors import BrokenBundle
from intentlog.replay.shell.through import SOURCE
from intentlog.replay.sources import open_source, reading_source
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundled")
    world, app = World(f"sqlite:///{folder}/eventlog.db"), app_of(paying)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    world.log.close()
    (folder / "refunds.py").write_text(
        "from tests.replay.world import app_of, paying, unanswered, lookup, refund, RefundAsked, RefundPaid\napp = app_of(paying, unanswered())\n"
    )
    return folder


def eventlog(folder: Path, *arguments: str) -> tuple[int, str, str]:
    command = [str(Path(sys.executable).parent / "eventlog"), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_bundle_is_named_by_its_suffix_or_by_its_scheme(folder, tmp_path):
    with open_log_of(folder) as log:
        write_bundle(log, [STREAM], tmp_path / "case.bundle")
        write_bundle(log, [STREAM], tmp_path / "case")
    for name in (f"{tmp_path}/case.bundle", f"bundle:{tmp_path}/case", f"bundle://{tmp_path}/case"):
        assert [STREAM] == list(open_source(name).streams())
    with pytest.raises(InvalidUrl):
        open_source(f"{tmp_path}/case")
    with pytest.raises(StoreSchemaError):
        open_source(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(BrokenBundle):
        open_source(f"{tmp_path}/none.bundle")


def open_log_of(folder: Path):
    return reading_source(f"sqlite:///{folder}/eventlog.db")


def comparing(printed: tuple[int, str, str]) -> tuple[int, list[str], str]:
    """Without the line about what the state was compared with: a bundle has more of that."""
    return printed[0], [line for line in printed[1].splitlines() if not line.startswith("state compared in ")], printed[2]


def test_the_commands_print_of_a_bundle_what_they_print_of_its_log(folder):
    code, out, err = eventlog(folder, "bundle", STREAM, "-o", "case.bundle", "--app", "refunds:app")
    assert (0, "case.bundle: 1 stream, 22 events\n", "") == (code, out, err)
    for command in (
        ("show", STREAM),
        ("show", STREAM, "--json"),
        ("state", STREAM, "--at", "7", "--app", "refunds:app"),
        ("replay", "--all", "--app", "refunds:app"),
        ("verify", "--app", "refunds:app"),
        ("raw", STREAM),
    ):
        assert comparing(eventlog(folder, *command)) == comparing(eventlog(folder, *command, "--log", "case.bundle"))
    (folder / "case.bundle").unlink()


def test_bundle_says_what_it_did_and_what_it_needs(folder):
    code, out, err = eventlog(folder, "bundle", "--all", "-o", "case", "--redact", "refund.asked:order_id", "--json")
    assert (0, {"file": "case", "streams": [STREAM], "events": 22, "redacted_events": 4}, "") == (code, json.loads(out), err)
    code, _, err = eventlog(folder, "bundle", STREAM, "-o", "case")
    assert (3, True) == (code, "there already" in err)
    (folder / "case").unlink()
    code, _, err = eventlog(folder, "bundle", STREAM, "-o", "case", "--redact", "refund.asked:nothing")
    assert (3, True, False) == (code, "nothing would be redacted" in err, (folder / "case").exists())
    code, _, err = eventlog(folder, "bundle", "-o", "case")
    assert (2, True) == (code, "Name what to bundle" in err)


def test_a_broken_bundle_is_told_in_one_line(folder):
    (folder / "broken.bundle").write_bytes(b"PK\x03\x04 and so on")
    code, out, err = eventlog(folder, "show", STREAM, "--log", "broken.bundle")
    assert (3, "", 1) == (code, out, len(err.splitlines()))
    assert "broken.bundle is no bundle" in err


def commands() -> dict[str, click.Command]:
    """Every command and every part of a group that takes --log, by what is typed."""
    found: dict[str, click.Command] = {}
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        parts = {f"{name} {part}": each for part, each in command.commands.items()} if isinstance(command, click.Group) else {name: command}
        found |= {said: each for said, each in parts.items() if any(option.name == "url" for option in each.params)}
    return found


def test_what_is_said_to_read_bundles_does_and_nothing_else():
    taking = {name for name, each in commands().items() if any(option.name == "url" and option.metavar == SOURCE for option in each.params)}
    assert taking == set(READ_BUNDLES.split(", "))
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    said = page.partition("The commands that look at one history take the file")[2].partition(". Those")[0]
    assert taking == set(re.findall("`([a-z]+)`", said))


@pytest.mark.parametrize("source", ["case.bundle", "bundle:case"])
@pytest.mark.parametrize("words", ["streams", "stats", "tail", "projections list", "intents list", "approvals list", "dead-letters list"])
def test_what_looks_after_a_log_says_what_reads_a_bundle(words, source):
    done = CliRunner().invoke(group, [*words.split(), "--log", source], prog_name="eventlog")
    assert (2, "") == (done.exit_code, done.stdout)
    assert f"'{source}' is a bundle, and this reads logs only. What reads bundles: show, state, diff" in done.stderr
