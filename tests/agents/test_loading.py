"""Whatever an app's module does while it is imported, the command says that the import failed."""

from __future__ import annotations

import pytest

from intentlog.eventlog import open_log
from tests.cli.conftest import child

WAYS = {
    "it exits as if all were well": ("raise SystemExit(0)", "importing lame failed with SystemExit: 0"),
    "it exits silently": ("import sys; sys.exit()", "importing lame failed with SystemExit ("),
    "it exits with a difference": ("import sys; sys.exit(1)", "importing lame failed with SystemExit: 1"),
    "it exits with a text": ("import sys; sys.exit('no key')", "importing lame failed with SystemExit: no key"),
    "it interrupts": ("raise KeyboardInterrupt", "importing lame failed with KeyboardInterrupt ("),
    "it closes a generator": ("raise GeneratorExit", "importing lame failed with GeneratorExit ("),
    "it raises a base of its own": ("class Odd(BaseException): pass\nraise Odd('so')", "importing lame failed with Odd: so"),
    "its error has no text": (
        "class Mute(Exception):\n    def __str__(self): raise ValueError('x')\nraise Mute",
        "failed with Mute: (its text cannot be had: ValueError)",
    ),
    "its error exits": (
        "class Mute(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Mute",
        "failed with Mute: (its text cannot be had: SystemExit)",
    ),
    "its attributes exit": ("def __getattr__(name):\n    if name == 'app': raise SystemExit(0)\n    raise AttributeError(name)", "failed with SystemExit: 0"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_module_that_ends_its_import_is_no_success(tmp_path, monkeypatch, way):
    monkeypatch.chdir(tmp_path)
    text, told = WAYS[way]
    (tmp_path / "lame.py").write_text(text)
    open_log("sqlite:///eventlog.db").close()
    done = child("replay", "--all", "--app", "lame:app")
    assert (3, "", True, False) == (done.returncode, done.stdout, told in done.stderr, "Traceback" in done.stderr), done.stderr


@pytest.mark.parametrize("command", [("run",), ("worker",), ("send", "a", "b", "1", "--app"), ("verify", "--app")])
def test_every_command_that_loads_an_app_says_so(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lame.py").write_text("import sys; sys.exit(0)")
    done = child(*command, "lame:app")
    assert (3, True) == (done.returncode, "SystemExit: 0" in done.stderr)
