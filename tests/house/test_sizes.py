"""Modules stay under 400 lines and functions under 61, so that each can be read in one go."""

from __future__ import annotations

import ast

from tests.house.tree import ROOT, modules

EVERYWHERE = ("eventlog", "agents", "effector", "replay", "tests", "examples", "benchmarks")


def test_no_module_is_over_400_lines():
    lengths = {str(path): len((ROOT / path).read_text("utf-8").splitlines()) for path in modules(*EVERYWHERE)}
    assert {} == {path: length for path, length in lengths.items() if length > 400}


def test_no_function_is_over_60_lines():
    long = {
        f"{path}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in modules(*EVERYWHERE)
        for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None and node.end_lineno - node.lineno >= 60
    }
    assert {} == long
