"""What a grid's TOML file may say: pydantic models that check every key and value before anything runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.encoders.settings import DEFAULT_MIXING
from bilex_bench.setups import Mixing

ALL = "all"
_SHORT_NAMES = {
    "bert-base-multilingual-uncased": "mBERT",
    "xlm-mlm-100-1280": "XLM",
    "google/mt5-small": "mT5",
    "xlm-roberta-base": "XLM-R",
    "intfloat/multilingual-e5-small": "E5",
    "e5-small-q4": "E5",
}


def _names(value: Any) -> tuple[str, ...]:
    """One text or several."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError("give a text in quotes or a list of them, or leave it out")
    return tuple(dict.fromkeys(names))


def _mixings(value: Any) -> tuple[Mixing, ...]:
    """One λ or several."""
    mixings = value if isinstance(value, list | tuple) else [value]
    numbers = [mixing for mixing in mixings if mixing != "auto"]
    if not mixings or not all(type(number) in (int, float) and 0 <= number <= 1 for number in numbers):
        raise ValueError('give a λ from 0 to 1 or "auto", or a list of them')
    return tuple(dict.fromkeys(m if m == "auto" else float(m) for m in mixings))


def _limit(value: Any) -> int | None:
    if value == ALL or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError('give a number of words, or "all"')
    return value


def _method(name: str) -> str:
    try:
        return get_method(name).name
    except BilexError as error:
        raise ValueError(str(error)) from error


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class Strict(BaseModel):
    """A table that has no other keys than these, and no values of other kinds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Restricted(Strict):
    """A table that applies to some pairs and seeds only.

    Args:
        pairs: Only these pairs; None for all of the grid.
        seeds: Only these seed dictionaries; None for all of the grid.
    """

    pairs: Names | None = None
    seeds: Names | None = None

    def allows(self, pair: str, seeds: str) -> bool:
        """Whether it applies to a pair and a seed dictionary."""
        return (self.pairs is None or pair in self.pairs) and (self.seeds is None or seeds in self.seeds)


class DataEntry(Restricted):
    """A data set of a grid, `[data.NAME]`; its name also chooses among sets of dictionaries in the folder.

    Args:
        path: The folder; None if it is given on the command line, or for the packaged sample.
        vectors: Where the vectors are, as in `DataFolder.open`; None for the usual places in the folder.
        pairs: Its pairs, "all" for all it has; None for those of the grid.
        seeds: Its seed dictionaries; None for those of the grid.
    """

    path: str | None = None
    vectors: str | None = None


class LmEntry(Restricted):
    """A language model on top of a method, `[[method.lm]]`.

    Args:
        name: The model.
        label: Its name in tables; "{lm}" stands for the model's short name.
        tune: Whether it is tuned.
        tuning: Settings of tuning that differ from the model's own; "preset" names a lighter preset.
        mixing: Each λ.
        samples: Whether vectors are kept for plots.
    """

    name: str
    label: str | None = None
    tune: bool = True
    tuning: dict[str, Any] = {}
    mixing: Annotated[tuple[Mixing, ...], BeforeValidator(_mixings)] = (DEFAULT_MIXING,)
    samples: bool = False

    def label_at(self, method: str, mixing: Mixing) -> str:
        """The label over the method of that label at one λ, which is named where there are several."""
        usual = f"C2 ({method})" if self.tune else f"{method}+{{lm}}"
        label = (self.label or usual).replace("{lm}", short_name(self.name))
        if len(self.mixing) == 1:
            return label
        return f"{label}, λ {mixing}" if mixing == "auto" else f"{label}, λ = {mixing:g}"


class MethodEntry(Restricted):
    """A method of a grid, `[[method]]`, with the language models on top of it.

    Args:
        name: The aligner.
        label: Its name in tables; None for the aligner's.
        settings: Its settings that differ from the defaults.
        samples: Whether vectors are kept for plots.
        lm: Language models on top of it.
    """

    name: Annotated[str, AfterValidator(_method)]
    label: str | None = None
    settings: dict[str, Any] = {}
    samples: bool = False
    lm: list[LmEntry] = []

    @property
    def title(self) -> str:
        """Its name in tables."""
        return self.label or self.name


class Common(Strict):
    """What holds for the whole grid, `[grid]`.

    Args:
        pairs: Its pairs; "all" for all that a data set has dictionaries for.
        seeds: Its seed dictionaries, "0" for none.
        limit: How many words of each language are read; None, written "all", for all.
        seed: The random seed of methods that need one.
        device: "auto", "cpu" or "cuda".
        sample_pairs: The pairs whose vectors are kept for plots; empty for the first pair of a data set.
    """

    pairs: Names = (ALL,)
    seeds: Names | None = None
    limit: Annotated[int | None, BeforeValidator(_limit)] = 200_000
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    sample_pairs: Names | None = None


class GridFile(Strict):
    """A whole file.

    Args:
        about: What the grid is for, in one sentence.
        grid: What holds for all of it.
        data: Its data sets by name.
        method: Its methods.
    """

    about: str = ""
    grid: Common = Field(default_factory=Common)
    data: dict[str, DataEntry] = {}
    method: list[MethodEntry] = []


def short_name(lm: str) -> str:
    """The name of a language model in tables."""
    return _SHORT_NAMES.get(lm) or lm.rstrip("/").rpartition("/")[2]
