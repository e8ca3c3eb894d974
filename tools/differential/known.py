"""Differences with a known cause: rows of docs/differences.md, by operator."""

import re

# operator -> list of (row name in docs/differences.md, test of (case, peer, reason, feeds, outputs)).
ROWS = {}


def row(name, *operators):
    def register(test):
        for op in operators:
            ROWS.setdefault(op, []).append((name, test))
        return test
    return register


def explained(case, peer, reason, feeds, outputs):
    for name, test in ROWS.get(case.op, []):
        if test(case, peer, reason, feeds, outputs):
            return name
    return None
