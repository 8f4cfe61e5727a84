"""Every example in README.md and docs/ runs, every link leads somewhere, and an example that lies is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.tree import ROOT, files, python

PAGES = [path for path in files() if path.suffix == ".md" and (path.parts[0] == "docs" or path.name in ("README.md", "CHANGELOG.md"))]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
PROGRAM = Path(__file__).with_name("snippets.py")
#: Pages whose examples use a server: the fixture that gives its URL, which is their EVENTLOG_URL.
SERVED = {"postgresql.md": "postgres_url"}


def run(page: Path, folder: Path, **environment: str) -> tuple[int, str]:
    done = python("-W", "error", PROGRAM, page, ROOT / "Makefile", cwd=folder, **environment)
    return done.returncode, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_examples_of_a_page_run(page, tmp_path, request):
    server = {"EVENTLOG_URL": request.getfixturevalue(SERVED[page.name])} if page.name in SERVED else {}
    code, output = run(ROOT / page, tmp_path, **server)
    assert 0 == code, output


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_links_of_a_page_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    assert [] == [target for target in LINK.findall(text) if not (ROOT / page.parent / target).exists()]


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts[0] == "docs" and page.name != "index.md"], ids=str)
def test_the_first_page_leads_to_every_page(page):
    index = ROOT / "docs" / "index.md"
    assert f"({page.relative_to('docs')})" in index.read_text("utf-8")


@pytest.mark.parametrize("decision", [page for page in PAGES if page.parent.name == "decisions"], ids=str)
def test_a_decision_says_where_it_stands(decision):
    assert re.search(r"^Status: (proposed|accepted|superseded by \[)", (ROOT / decision).read_text("utf-8"), re.MULTILINE)


TRUE = {
    "blocks share names in order": "```python\na = 1\n```\n\n```python\nassert a == 1\n```\n",
    "a file is written and imported": "```python\n# shop.py\nprice = 3\n```\n\n```python\nimport shop\nassert shop.price == price\n```\n",
    "another file is written": '```json\n# order.json\n{"id": 1}\n```\n\n```console\n$ python -c "import json; json.load(open(\'order.json\'))"\n```\n',
    "an exit code may be announced": '```console\n$ python -c "raise SystemExit(3)"  # exit 3\n```\n',
    "what runs for ever is interrupted": '```console\n$ python -c "import time; time.sleep(99)"  # until ^C\n```\n',
    "a command goes on over lines": '```console\n$ python -c \\\n    "pass"\noutput is not compared\n```\n',
    "a target is looked up": "```console\n$ make test\n```\n",
    "a list may hold an example": "* so:\n\n  ```python\n  b = 2\n  ```\n",
}
FALSE = {
    "an example that raises": ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
    "a command that fails": ('```console\n$ python -c "raise SystemExit(1)"\n```\n', "page.md:2: python -c"),
    "another exit code than announced": ("```console\n$ python -c pass  # exit 2\n```\n", "exit code 0, expected 2"),
    "a target that is not there": ("```console\n$ make coffee\n```\n", "no target coffee"),
    "an example that opted out": ("```python no-run\n1\n```\n", "not 'python no-run'"),
    "a block without a language": ("```\n1\n```\n", "not ''"),
    "a command nobody checks": ("```console\n$ curl example.org\n```\n", "'curl' is neither run"),
}


@pytest.mark.parametrize("case", TRUE)
def test_an_example_that_holds_is_taken(case, tmp_path):
    (tmp_path / "page.md").write_text(TRUE[case])
    assert (0, "") == run(tmp_path / "page.md", tmp_path)


@pytest.mark.parametrize("case", FALSE)
def test_an_example_that_lies_is_found(case, tmp_path):
    text, fault = FALSE[case]
    (tmp_path / "page.md").write_text(text)
    code, output = run(tmp_path / "page.md", tmp_path)
    assert (1, True) == (code, fault in output), output
