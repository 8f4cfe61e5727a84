"""A process that uses a store beside this one, driven line by line, and killed when told. The URL goes through its input: argv is for all to see."""

from __future__ import annotations

import subprocess
import sys


class Child:
    """A running program that has said ``ready``."""

    def __init__(self, code: str, url: str, *arguments: str) -> None:
        # Unbuffered: of what a buffer had read ahead of a line, ``communicate`` would tell nothing.
        self._running = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.say(url)

    def say(self, line: str) -> None:
        """Write one line to its input."""
        assert self._running.stdin is not None
        self._running.stdin.write(f"{line}\n".encode())

    def hear(self) -> str:
        """Its next line; fails with what it wrote to stderr when it ended."""
        assert self._running.stdout is not None
        assert self._running.stderr is not None
        line = self._running.stdout.readline()
        assert line, f"the child ended: {self._running.stderr.read().decode()}"
        return line.decode().rstrip("\n")

    def kill(self) -> list[str]:
        """SIGKILL; the whole lines that it had still written."""
        self._running.kill()
        output, _ = self._running.communicate()
        return [line.decode() for line in output.splitlines(keepends=True) if line.endswith(b"\n")]

    def end(self, seconds: float) -> str:
        """All that it still writes until it ends by itself, within ``seconds`` and with code 0."""
        try:
            output, fault = self._running.communicate(timeout=seconds)
        finally:
            self._running.kill()
        assert 0 == self._running.returncode, fault.decode()
        return output.decode()


def child_of(code: str, url: str, *arguments: str) -> Child:
    """A child that has opened the store and waits."""
    child = Child(code, url, *arguments)
    assert "ready" == (heard := child.hear()), heard
    return child
