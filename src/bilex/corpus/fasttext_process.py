"""fastText's training in a separate process, so that it can be interrupted and its progress be read.

The file is run by its path and imports nothing of bilex, so that it starts at once; its argument is JSON.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from typing import Any

_NO_LABEL = "\x01label\x01"  # no token begins with it, since our corpora have no labels
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


def train(settings: dict[str, Any]) -> None:
    """Train on "corpus" (a prepared text file) and write "model", with "arguments" by fastText's names.

    fastText's Python module takes no random seed, so that its extension module is called directly.
    """
    import fasttext_pybind

    arguments = fasttext_pybind.args()
    arguments.input, arguments.output = settings["corpus"], ""
    arguments.model = getattr(fasttext_pybind.model_name, settings["architecture"])
    arguments.loss = fasttext_pybind.loss_name.ns
    arguments.label = _NO_LABEL
    arguments.verbose = 2
    for name, value in settings["arguments"].items():
        setattr(arguments, name, value)
    model = fasttext_pybind.fasttext()
    fasttext_pybind.train(model, arguments)
    model.saveModel(settings["model"])


if __name__ == "__main__":
    if sys.platform == "linux":  # end when the parent is killed; no other system can
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    train(json.loads(sys.argv[1]))
