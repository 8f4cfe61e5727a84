"""Run the seven cases and print what each has shown."""

from __future__ import annotations

from .cases import CASES

if __name__ == "__main__":
    for number, (name, case) in enumerate(CASES.items(), 1):
        print(f"{number}. {name:<20} {case()}")
