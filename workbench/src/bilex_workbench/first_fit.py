"""The first fit of a model that was set up in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bilex.aligners import get_method
from bilex.core.progress import Progress
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors


def fit(order: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Read two vector files and a dictionary, fit, and save.

    Args:
        order: "sample", or "source", "target" and "seeds" (paths); "method", "updates", "language_model",
            "limit", "languages", "output".
        progress: Who hears how far it is.

    Returns:
        The folder of the model.

    Raises:
        BilexError: A file cannot serve, or the method refuses.
    """
    if order.get("sample"):
        folder = sample_path()
        order = {
            **order,
            "source": str(folder / "en"),
            "target": str(folder / "fi"),
            "seeds": str(folder / "seeds.tsv"),
            "languages": ["en", "fi"],
        }
    languages = order.get("languages") or [None, None]
    seeds = Lexicon.load(order["seeds"], languages=tuple(languages)) if order.get("seeds") else None
    vectors = [
        WordVectors.load(order[side], limit=order.get("limit"), lowercase=True, progress=progress)
        for side in ("source", "target")
    ]
    if seeds is not None and len(seeds):
        progress.say(seeds.coverage(vectors[0].key_to_index, vectors[1].key_to_index).sentence() + ".")
    settings = {}
    if order.get("updates") is not None and "updates" in get_method(order["method"]).settings_fields():
        settings["updates"] = order["updates"]
    aligner = get_method(order["method"])(**settings)
    translator = Translator(aligner, encoder=order.get("language_model")).fit(
        vectors[0],
        vectors[1],
        seeds,
        lowercase=True,
        languages=(languages[0], languages[1]),
        progress=progress,
    )
    with progress.task("Writing the model"):
        translator.save(Path(order["output"]))
    return {"folder": order["output"]}
