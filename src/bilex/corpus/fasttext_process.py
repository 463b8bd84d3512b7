"""fastText's training as a process of its own, so that it can be interrupted and its progress be read.

The file is run by its path and imports nothing of bilex, so that it starts at once; settings come as JSON on
stdin.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from typing import Any

# Our corpora have no labels; what begins with this is none of our tokens.
_NO_LABEL = "\x01label\x01"
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


def end_with_parent() -> None:
    """Let the system end this process when its parent is killed; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def train(wanted: dict[str, Any]) -> None:
    """Train on "corpus" (a prepared text file) and write "model", by fastText's names of the arguments.

    fastText's Python module takes no random seed, so that its extension module is called directly.
    """
    import fasttext_pybind

    arguments = fasttext_pybind.args()
    arguments.input, arguments.output = wanted["corpus"], ""
    arguments.model = getattr(fasttext_pybind.model_name, wanted["architecture"])
    arguments.loss = fasttext_pybind.loss_name.ns
    arguments.label = _NO_LABEL
    arguments.verbose = 2
    for name, value in wanted["arguments"].items():
        setattr(arguments, name, value)
    model = fasttext_pybind.fasttext()
    fasttext_pybind.train(model, arguments)
    model.saveModel(wanted["model"])


if __name__ == "__main__":
    end_with_parent()
    train(json.load(sys.stdin))
