"""The commit with which a history comes out otherwise is found in git, and the checkout does not notice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.replay.errors import CannotBisect, CodeUnusable
from intentlog.replay.over_code import CANNOT, Commit, Trial, bisect_code, commits_of, parse_range


def as_commits(count: int) -> list[Commit]:
    return [Commit(str(n), "2026-01-01T00:00:00+00:00", f"commit {n}") for n in range(count)]


@given(st.integers(2, 40), st.data())
def test_the_first_commit_of_another_verdict_is_found_whatever_cannot_be_run(count, draw):
    first = draw.draw(st.integers(1, count - 1))
    broken = draw.draw(st.sets(st.integers(1, count - 2), max_size=6)) if count > 2 else set()
    tried: list[int] = []

    def trial(commit: Commit) -> Trial:
        tried.append(int(commit.sha))
        return Trial(commit, CANNOT if tried[-1] in broken else "same" if tried[-1] < first else "diverged")

    found = bisect_code(as_commits(count), trial, "s-1")
    runnable = [n for n in range(count) if n not in broken]
    assert found.first is not None
    assert min(n for n in runnable if n >= first) == int(found.first.commit.sha)
    assert max(n for n in runnable if n < first) == int(found.last.commit.sha)
    assert list(range(int(found.last.commit.sha) + 1, int(found.first.commit.sha))) == [int(each.sha) for each in found.between]
    assert len(tried) == len(set(tried)) <= 2 + count.bit_length() + 2 * len(broken)


def test_ends_that_come_to_the_same_are_all_that_is_tried():
    found = bisect_code(as_commits(9), lambda commit: Trial(commit, "same"), "s-1")
    assert (None, 2, "same") == (found.first, len(found.trials), found.last.verdict)


def test_an_end_that_cannot_be_run_is_told():
    with pytest.raises(CannotBisect, match=r"8 \(commit 8\) cannot be run: no such app"):
        bisect_code(as_commits(9), lambda commit: Trial(commit, CANNOT if commit.sha == "8" else "same", "no such app"), "s-1")


@pytest.mark.parametrize("text", ["", "main", "..main", "a...b", "-x..y", "a..-y"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(CannotBisect, match=r"give REV1\.\.REV2"):
        parse_range(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for n in range(4):
        (tmp_path / "file").write_text(str(n))
        git(tmp_path, "add", ".")
        git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", f"commit {n}")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def test_the_commits_of_a_range_come_oldest_first_with_its_beginning(repository):
    assert ["commit 1", "commit 2", "commit 3"] == [commit.subject for commit in commits_of("HEAD~2", "HEAD", repository)]


def test_a_range_without_commits_and_revisions_that_are_not_there_are_told(repository, tmp_path_factory):
    with pytest.raises(CannotBisect, match="Is HEAD~2 older than HEAD"):
        commits_of("HEAD", "HEAD~2", repository)
    with pytest.raises(CodeUnusable, match="nothing-of-this-name"):
        commits_of("nothing-of-this-name", "HEAD", repository)
    with pytest.raises(CodeUnusable):
        commits_of("HEAD~1", "HEAD", tmp_path_factory.mktemp("no-repository"))


@pytest.mark.parametrize(
    ("first", "second", "unknown"), [("nope", "HEAD", "nope"), ("HEAD~1", "nope", "nope"), ("HEAD~9", "HEAD", "HEAD~9"), ("a b", "HEAD", "a b")]
)
def test_a_revision_that_git_does_not_know_is_named_and_not_the_command_that_found_out(repository, first, second, unknown):
    with pytest.raises(CodeUnusable) as refused:
        commits_of(first, second, repository)
    assert f"{unknown!r} is no revision of the git repository around {repository}. git tag and git log list revisions." == str(refused.value)
