"""Change one byte of a file, or cut it, and check that bilex notices.

    python tools/flip_test.py                   # 2,000 changes, some minutes
    python tools/flip_test.py --changes 200 --seed 7

Everything that bilex keeps is made small: a model (with and without a language model), vectors folders of the
three dtypes, checkpoints, a converted encoder, encodings, fits and stages of the benchmark, a results file. A
change counts as caught if using the folder ends in one sentence (`BilexError`); as harmless if the same comes
out as before, as for a byte of white space, of the card, or of a cache that is made again; anything else, a
traceback or another result, is a fault. The exit code is 0 if there was none.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bilex.aligners import get_method
from bilex.aligners.checkpoint import Checkpoint
from bilex.core.errors import BilexError
from bilex.core.manifest import verify_manifest
from bilex.encoders.model import WordEncoder, encode_cached
from bilex.encoders.settings import C2, EncoderPreset, Reading, TuningSettings
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder
from bilex_bench.results import Setup
from bilex_bench.store import ResultsStore
from bilex_bench.work import Workplace, WorkPlan

WORDS, DIM, SEEDS = 60, 8, 40
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Kept:
    """Something that bilex keeps on disk."""

    name: str
    path: Path  # the file or folder that is damaged
    use: Callable[[], Any]  # the result of using it, as something that can be compared


def planted() -> tuple[WordVectors, WordVectors, Lexicon]:
    """Two small languages and their seed pairs."""
    numbers = np.random.default_rng(0)
    rows = numbers.normal(size=(WORDS, DIM)).astype(np.float32)
    turn = np.linalg.qr(numbers.normal(size=(DIM, DIM)))[0].astype(np.float32)
    names = [LETTERS[row % 26] + LETTERS[row // 26] for row in range(WORDS)]
    source = WordVectors([f"a{name}" for name in names], rows)
    target = WordVectors([f"b{name}" for name in names], rows @ turn)
    return source, target, Lexicon([(f"a{name}", f"b{name}") for name in names[:SEEDS]])


def tiny_encoder() -> WordEncoder:
    """A random encoder with a character tokenizer."""
    import transformers
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *LETTERS]
    tokenizer = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", **names)
    torch.manual_seed(0)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=31, max_position_embeddings=8, **shape)
    model = transformers.BertModel(config, add_pooling_layer=False)
    return WordEncoder(model, fast, EncoderPreset(reading=Reading(max_length=6)), "tiny", "cpu")


class Things:
    """Everything that bilex keeps, made in one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.source, self.target, self.seeds = planted()
        self.encoder = tiny_encoder()

    def all(self) -> list[Kept]:
        """Each of them, in a state that can be used."""
        return [
            self._model("model", None),
            self._model("model with a language model", C2(self.encoder, mixing=0.5, tune=False)),
            *(self._vectors(dtype) for dtype in ("float32", "float16", "int8")),
            self._checkpoint(),
            self._tuning(),
            self._converted(),
            self._encodings(),
            *self._benchmark(),
        ]

    def _model(self, name: str, stage: C2 | None) -> Kept:
        path = self.home / name
        aligner = get_method("procrustes")(device="cpu")
        seeds = self.seeds
        translator = Translator(aligner, encoder=stage).fit(self.source, self.target, seeds, calibrate=False)
        translator.save(path)

        def use() -> Any:
            opened = Translator.load(path, device="cpu")
            words = [*self.source.index_to_key, "zz", "q"]
            found = [[(one.word, one.score) for one in answer] for answer in opened.translate(words, 2)]
            return found, opened.seeds.pairs, opened.lowercase, repr(opened.provenance)

        return Kept(name, path, use)

    def _vectors(self, dtype: str) -> Kept:
        path = self.home / f"vectors {dtype}"
        self.source.save(path, "safetensors", dtype=dtype)

        def use() -> Any:
            vectors = WordVectors.load(path)
            return vectors.index_to_key, np.asarray(vectors.vectors[:]).tolist(), vectors.preprocessing

        return Kept(f"vectors folder, {dtype}", path, use)

    def _checkpoint(self) -> Kept:
        path = self.home / "checkpoint"
        kept = Checkpoint(path, "identity")
        kept.save({"map": torch.arange(64.0).reshape(8, 8), "step": torch.tensor(3)}, done=2, loss=0.125)

        def use() -> Any:
            found = kept.load()
            return None if found is None else ({k: v.tolist() for k, v in found.tensors.items()}, found.state)

        return Kept("checkpoint of an aligner", path, use)

    def _tuning(self) -> Kept:
        from bilex.encoders.stage import run_stage_c2

        path = self.home / "tuning"
        tuning = TuningSettings(negatives=2, batch_size=20, epochs=1, induced=0, learning_rate=1e-3)
        stage = C2(self.encoder, mixing=0.5, tuning=tuning, device="cpu")
        aligner = get_method("procrustes")(device="cpu").fit(self.source, self.target, self.seeds)

        def use() -> Any:
            result = run_stage_c2(aligner, self.source, self.target, self.seeds, stage, checkpoint=path)
            return result.report.losses, np.asarray(result.source.vectors[:]).tolist()

        use()
        return Kept("checkpoint of tuning, with encodings", path, use)

    def _converted(self) -> Kept:
        path = self.home / "converted"
        self.encoder.save(path, "card")

        def use() -> Any:
            if not verify_manifest(path, "bilex-encoder"):
                raise BilexError("there is no encoder")
            return WordEncoder.load(path, device="cpu").encode(["abc"]).tolist()

        return Kept("encoder as it is cached", path, use)

    def _encodings(self) -> Kept:
        path = self.home / "encodings"
        words = self.source.index_to_key
        tokens = self.encoder.tokenise(words)

        def use() -> Any:
            return encode_cached(self.encoder, words, tokens, path).tolist()

        use()
        return Kept("encodings", path, use)

    def _benchmark(self) -> list[Kept]:
        data, work, results = self.home / "data", self.home / "work", self.home / "results"
        self.source.save(data / "vectors" / "aa.vec")
        self.target.save(data / "vectors" / "bb.vec")
        self.seeds.head(30).save(data / "aa-bb.train.1k.tsv")
        Lexicon(self.seeds.pairs[30:]).save(data / "aa-bb.test.tsv")
        folder = DataFolder.open(data, "planted")
        setup = Setup(dataset="planted", pair="aa-bb", seeds="1k", method="procrustes")
        plan = WorkPlan(
            folders={"planted": folder}, work=str(work / "fits"), cache=str(work / "cache"), device="cpu"
        )
        with ResultsStore.open(results / "r.sqlite") as store:
            for result in Workplace(plan).run([setup]):
                store.add(result)

        def use_work() -> Any:
            [found] = Workplace(plan).run([setup])
            if found.error is not None:
                raise BilexError(found.error)
            return found.evaluation, found.predictions

        def use_results() -> Any:
            with ResultsStore.open(results / "r.sqlite", create=False) as store:
                return [repr(result) for result in store.results(predictions=True)]

        return [
            Kept("fits and parsed vectors of a benchmark", work, use_work),
            Kept("results file", results, use_results),
        ]


def damage(path: Path, rng: random.Random) -> str:
    """Change one byte of a file, or cut it; return a description of the change."""
    content = bytearray(path.read_bytes())
    place = rng.randrange(len(content)) if content else 0
    if rng.random() < 0.2 or not content:
        path.write_bytes(content[:place])
        return f"cut after {place} bytes"
    changed = content[place] ^ (1 << rng.randrange(8)) if rng.random() < 0.7 else rng.randrange(256)
    stated = f"byte {place}: {content[place]:#x} became {changed:#x}"
    content[place] = changed
    path.write_bytes(content)
    return stated


def judged(kept: Kept, expected: Any) -> str:
    """The effect of damage: "caught" in one sentence, "harmless", or what went wrong."""
    try:
        found = kept.use()
    except BilexError as error:
        return "caught" if "\n" not in str(error) else f"FAULT: more than one sentence: {error}"
    except Exception:
        return "FAULT: " + traceback.format_exc().splitlines()[-1]
    return "harmless" if found == expected else "FAULT: another result without an error"


def main() -> int:
    """Damage, use, count, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--changes", type=int, default=2000, help="how many changes (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="fixes the changes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng, faults = random.Random(options.seed), []
    with tempfile.TemporaryDirectory(prefix="bilex-flips-") as name:
        things = Things(Path(name) / "home").all()
        counts: dict[str, Counter[str]] = {kept.name: Counter() for kept in things}
        expected = [kept.use() for kept in things]
        for number in range(options.changes):
            kept = things[number % len(things)]
            whole = Path(name) / "whole"
            shutil.copytree(kept.path, whole)
            file = rng.choice(sorted(path for path in kept.path.rglob("*") if path.is_file()))
            where = file.relative_to(kept.path)
            stated = damage(file, rng)
            verdict = judged(kept, expected[number % len(things)])
            if verdict.startswith("FAULT"):
                faults.append(f"{kept.name}, {where}, {stated}: {verdict}")
            counts[kept.name][verdict.partition(":")[0]] += 1
            shutil.rmtree(kept.path)
            whole.rename(kept.path)
    for kind, count in counts.items():
        print(f"{kind:52}" + ", ".join(f"{what} {times}" for what, times in sorted(count.items())))
    for fault in faults:
        print(fault)
    print(f"{options.changes} changes, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
