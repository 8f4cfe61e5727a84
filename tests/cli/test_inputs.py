"""Files of inputs: JSON lines, plain or gzip, good and bad."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from intentlog.agents import App, Complete, Input, agent
from intentlog.effector import inputs
from intentlog.effector.inputs import InputFile


@agent("notes")
async def notes(ctx, text: str) -> Complete:
    return Complete(text)


app = App(agents=[notes])


def line(key: str, payload: object = "x", **changes: object) -> str:
    return json.dumps({"agent": "notes", "key": key, "payload": payload, "id": f"id-{key}"} | changes)


def take(path: Path, used: App = app) -> tuple[list[str], list[str], InputFile]:
    """(streams, what was reported, the file) after reading ``path`` to its end."""
    told: list[str] = []
    file = InputFile(str(path), used, told.append)
    found: list[str] = []
    while helping := file.helping():
        found += [each.stream for each in helping]
    file.close()
    return found, [each.removeprefix(str(path)) for each in told], file


def test_lines_become_inputs_in_order(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(line(f"k{n}") for n in range(1000)) + "\n")
    found, told, file = take(path)
    assert ([f"notes-k{n}" for n in range(1000)], [], True) == (found, told, file.ended)


@pytest.mark.parametrize("name", ["in.jsonl.gz", "in.jsonl"])
def test_gzip_is_known_by_its_content(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(line("k").encode()))
    assert ["notes-k"] == take(path)[0]


def test_blank_lines_a_mark_at_the_front_and_windows_line_ends_do_no_harm(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line("a").encode() + b"\r\n\r\n\n" + line("b").encode())
    assert (["notes-a", "notes-b"], []) == take(path)[:2]


BAD = {
    "not JSON": ("{", "not JSON"),
    "no object": ("[1]", "Expected `object`"),
    "a field is missing": ('{"agent": "notes", "key": "k", "payload": 1}', "`id`"),
    "a field of another type": (line("k", id=7), "Expected `str`"),
    "an empty key": (line(""), "Invalid key"),
    "a key with a control character": (line("a\nb"), "control character"),
    "an unknown agent": (line("k", agent="nobody"), "no agent 'nobody'"),
    "an unknown type": (line("k", type="no.such"), "no event type 'no.such'"),
    "a payload that does not fit": (line("k", 7), "takes str"),
    "a blank id": (line("k", id=" "), "Invalid input id"),
    "a lone surrogate": ('{"agent": "notes", "key": "\\ud800", "payload": "x", "id": "i"}', "not JSON"),
    "too deep": ('{"agent": "notes", "key": "k", "id": "i", "payload": ' + "[" * 50_000 + "]" * 50_000 + "}", "nested too deep"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_line_is_told_with_its_place_and_the_others_go_on(tmp_path, case):
    text, why = BAD[case]
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join([line("a"), text, line("b")]))
    found, told, file = take(path)
    assert (["notes-a", "notes-b"], 1, 1) == (found, file.refused, len(told))
    assert told[0].startswith(":2: ") and why in told[0]


def test_a_line_that_is_not_utf8_is_told(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"agent": "notes", "key": "\xff", "payload": "x", "id": "i"}\n' + line("b").encode())
    found, told, _ = take(path)
    assert (["notes-b"], 1) == (found, len(told))


def test_a_line_that_is_too_long_is_told_and_stepped_over(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LONGEST_LINE", 100)
    path = tmp_path / "in.jsonl"
    fits = line("k", "y" * (99 - len(line("k", ""))))
    path.write_text("\n".join([line("a"), "z" * 350, fits, "z" * 100, line("b")]))
    found, told, _ = take(path)
    assert (["notes-a", "notes-k", "notes-b"], [":2: longer", ":4: longer"]) == (found, [each[:10] for each in told])


def test_a_gzip_file_that_was_cut_off_gives_what_is_whole(tmp_path):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(line(f"k{n}", "y" * 50) for n in range(5000)).encode())[:-2000])
    found, told, file = take(path)
    assert found
    assert (1, 1, True) == (file.refused, len(told), "Is it whole?" in told[0])


def test_the_app_may_take_lines_of_its_own_form(tmp_path):
    def intake(given: dict) -> Input | None:
        if given["n"] == 2:
            return None
        return Input("notes", f"k{given['n']}", 7 if given["n"] == 3 else "x", f"i{10 // given['n']}")

    path = tmp_path / "in.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n{"n": 0}\n[]\n{"n": 3}\n{"n": 4}\n{}\n')
    found, told, file = take(path, App(agents=[notes], intake=intake))
    assert (["notes-k1", "notes-k4"], 1, 4) == (found, file.skipped, file.refused)
    assert [True] * 4 == [why in text for why, text in zip(("ZeroDivisionError", "JSON object", "takes str", "KeyError"), told, strict=True)]


def test_an_intake_that_returns_something_else_is_told(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("{}\n")
    told = take(path, App(agents=[notes], intake=lambda given: "nonsense"))[1]  # type: ignore[arg-type,return-value]
    assert "must return an Input or None, not str" in told[0]


def test_a_large_file_is_read_in_little_memory(tmp_path):
    path = tmp_path / "in.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1) as out:
        for n in range(2_000):
            out.write(line(f"k{n}", "y" * 20_000) + "\n")
    file = InputFile(str(path), app, lambda text: None)
    tracemalloc.start()
    count = 0
    while helping := file.helping():
        count += len(helping)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    file.close()
    assert 2_000 == count
    assert peak < 25_000_000


def test_how_far_it_is_read_is_known_in_bytes_of_the_file(tmp_path):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(line("k").encode()))
    file = InputFile(str(path), app, lambda text: None)
    assert path.stat().st_size == file.size
    while file.helping():
        pass
    assert file.size == file.read
    file.close()


STRANGE = {"bytes": bytes(range(128, 256)) * 3 + b"\n", "UTF-16": "{}\n".encode("utf-16-le"), "prose": b"once upon a time\n"}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_file_of_something_else_is_told_once_and_left(tmp_path, kind):
    path = tmp_path / "in.jsonl"
    path.write_bytes(STRANGE[kind] * 500)
    found, told, file = take(path)
    assert ([], 21, 21, True) == (found, len(told), file.refused, file.ended)
    assert "no file of JSON lines in UTF-8" in told[-1]


def test_one_line_that_is_json_makes_a_file_worth_reading(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(line("a") + "\n" + "nonsense\n" * 50 + line("b"))
    found, told, _ = take(path)
    assert (["notes-a", "notes-b"], 50) == (found, len(told))
