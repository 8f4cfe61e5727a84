"""What tests/conftest.py promises: no silent skip in CI, and quiet around the tests that need it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.house.tree import ROOT, python

SKIPS = "import pytest\n\n\ndef test_nothing():\n    pytest.skip('no broker')\n"
RECORDS = """
import time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(8))
def test_something(number):
    began = time.monotonic()
    time.sleep(0.05)
    with Path("{log}").open("a") as log:
        log.write(f"{kind} {{began}} {{time.monotonic()}}\\n")
"""

# No other plugins than these: loading Hypothesis takes five times as long as what is looked at here.
PLUGINS = ("-p", "no:cacheprovider", "-p", "xdist.plugin", "-p", "pytest_timeout")
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_XDIST_WORKER": ""}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "acceptance").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(suite: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    done = python("-m", "pytest", "-q", *PLUGINS, *arguments, "tests", cwd=suite, **ALONE, **environment)
    return done.returncode, done.stdout


def test_a_missing_service_skips_on_a_laptop(suite):
    (suite / "tests" / "test_skips.py").write_text(SKIPS)
    code, output = run(suite, CI="")
    assert (0, True) == (code, "1 skipped" in output), output


def test_a_missing_service_fails_in_ci(suite):
    (suite / "tests" / "test_skips.py").write_text(SKIPS)
    code, output = run(suite, CI="true")
    assert (1, True, True) == (code, "1 failed" in output, "no broker" in output), output


def test_absent_input_skips_and_in_ci_fails(suite):
    (suite / "tests" / "test_input.py").write_text("def test_input(shared_data):\n    assert shared_data.is_file()\n")
    assert "1 skipped" in run(suite, CI="")[1]
    assert "1 error" in run(suite, CI="true")[1]


def test_tests_that_kill_share_no_moment_with_each_other_and_those_that_look_at_the_clock_with_nobody(suite):
    log = suite / "log"
    alone = "import pytest\npytestmark = pytest.mark.alone\n" + RECORDS
    for name, kind in (("acceptance/test_a", "kills"), ("acceptance/test_b", "kills"), ("test_c", "plain"), ("test_d", "plain"), ("test_e", "alone")):
        (suite / "tests" / f"{name}.py").write_text((alone if kind == "alone" else RECORDS).format(log=log, kind=kind))
    code, output = run(suite, "-n", "3", "--dist", "loadfile", CI="")
    assert (0, True) == (code, "40 passed" in output), output
    spans = sorted((float(began), float(ended), kind) for kind, began, ended in (line.split() for line in log.read_text().splitlines()))
    shared = {(one[2], two[2]) for number, one in enumerate(spans) for two in spans[number + 1 :] if two[0] < one[1]}
    assert [] == [pair for pair in shared if "alone" in pair]
    assert ("kills", "kills") not in shared
    assert {("kills", "plain"), ("plain", "kills")} & shared, "ordinary tests run beside those that kill"


def test_programs_in_virtual_time_run_beside_each_other(suite):
    log = suite / "log"
    (suite / "tests" / "acceptance" / "programs").mkdir()
    for name in ("test_a", "test_b"):
        (suite / "tests" / "acceptance" / "programs" / f"{name}.py").write_text(RECORDS.format(log=log, kind=name))
    assert 0 == run(suite, "-n", "2", "--dist", "loadfile", CI="")[0]
    spans = [line.split() for line in log.read_text().splitlines()]
    first, second = ([(float(began), float(ended)) for name, began, ended in spans if name == each] for each in ("test_a", "test_b"))
    assert any(one[0] < two[1] and two[0] < one[1] for one in first for two in second)
