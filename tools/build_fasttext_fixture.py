"""Rebuild the tiny fastText models of tests/vectors/data, with the vectors that fastText gives for them.

    python tools/build_fasttext_fixture.py        needs the `fasttext` library

The text is written here, so that nothing has to be fetched. fastText's threads do not give the same model
twice; the vectors are recorded from the very model that is saved.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "data"
SENTENCES = (
    "the cat sat on the mat and the dog lay on the rug",
    "kissa istui matolla ja koira makasi matolla",
    "кошка сидела на ковре а собака лежала на полу",
    "das Mädchen las ein Buch über große Städte",
    "猫 は マット の 上 に 座った",
    "the cats and dogs of the city slept 😀",
)
OUTSIDE = ["catlike", "koirasta", "собаками", "Mädchenbuch", "猫猫猫", "x", "naïve😀", "tilted"]
MODELS = {
    "skipgram": {"model": "skipgram", "minn": 2, "maxn": 5, "bucket": 2000, "dim": 8},
    "without_subwords": {"model": "skipgram", "minn": 0, "maxn": 0, "bucket": 2000, "dim": 8},
}


def main() -> None:
    """Train both models and record their vectors."""
    import fasttext

    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text("\n".join(SENTENCES * 20) + "\n", encoding="utf-8")
        for name, settings in MODELS.items():
            # fastText's threads each fill a tenth of the matrix at the start; fewer leave some unset.
            model = fasttext.train_unsupervised(str(text), minCount=1, thread=12, verbose=0, **settings)
            model.save_model(str(FOLDER / f"{name}.bin"))
            words = model.get_words(on_unicode_error="strict")
            outside = OUTSIDE if settings["maxn"] else []
            record = {
                "words": words,
                "vectors": {word: model.get_word_vector(word).tolist() for word in [*words, *outside]},
            }
            (FOLDER / f"{name}.json").write_text(
                json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
            )
        quantised = fasttext.train_supervised(
            str(_labelled(Path(folder))), dim=4, bucket=300, minn=2, maxn=3, thread=12, verbose=0
        )
        quantised.quantize(input=str(Path(folder) / "labelled.txt"), dsub=2)
        quantised.save_model(str(FOLDER / "quantised.ftz"))


def _labelled(folder: Path) -> Path:
    path = folder / "labelled.txt"
    lines = [f"__label__{index % 2} {sentence}" for index, sentence in enumerate(SENTENCES * 60)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
