"""Opening a model's review file for the commands of `bilex review`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex_workbench.store import Store


@contextmanager
def opened(model: str) -> Iterator[Store]:
    """The review file of a model; a server that has it open does not mind.

    Raises:
        BilexError: There is no such model, or nobody has reviewed it yet.
    """
    from bilex.model.storage import read_config
    from bilex_workbench.schema import review_file
    from bilex_workbench.store import Store

    read_config(Path(model))
    path = review_file(model)
    if not path.is_file():
        raise BilexError(f"{path}: is not there yet; run 'bilex serve {model}' once, which makes it.")
    store = Store(path)
    try:
        yield store
    finally:
        store.close()
