"""Labels of benchmark setups that would steer a terminal or break a table."""

from __future__ import annotations

import pytest

from bilex_bench.results import Setup


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\u202eturned", "\\u202eturned"),
        ("\x9b31m\ud800", "\\x9b31m\\ud800"),
        ("C1, λ = 0.2", "C1, λ = 0.2"),
    ],
)
def test_labels_are_one_harmless_line(label: str, shown: str) -> None:
    setup = Setup(dataset="xling", pair="en-fi", seeds="1k", method="c1", label=label)
    assert setup.label == shown
    assert Setup(**setup.as_dict()) == setup
    setup.label.encode("utf-8")
