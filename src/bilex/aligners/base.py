"""The base class of every alignment method.

A method is a dataclass whose fields are its settings. `fit` learns two maps into a common space and stores
them in `source_map_` and `target_map_`. To add a method, add a module with a subclass of `Aligner` and a line
in `bilex.aligners.registry`, or register one from another distribution.
"""

from __future__ import annotations

import math
import types
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from bilex.aligners.maps import Map
from bilex.core.device import enough_memory
from bilex.core.errors import BilexError, nearest_name
from bilex.core.locks import exclusive_lock
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import other_entries
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from typing import Self

Pairs = npt.NDArray[np.int64]  # rows of source and target words
NO_PAIRS: Pairs = np.zeros((0, 2), np.int64)
Folder = Path | None  # of a checkpoint
Metric = Literal["cosine", "dot"]
# The smallest and the largest value of a setting; None for no bound.
Limits = Mapping[str, tuple[float | None, float | None]]

SMALLEST = 1e-12  # means "more than 0"
_LARGEST_NUMBER = 2**53  # float64 represents every integer up to it


@dataclass(frozen=True, kw_only=True)
class AlignerReport:
    """The report of every method.

    A method that reports more declares a subclass in its module, and the type of its `report_`:

        report_: MineReport = field(init=False, compare=False)

    Attributes:
        seed_pairs: Pairs of the seed dictionary.
        seed_pairs_used: Of these, the pairs with both words in the vectors.
        warnings: Sentences about anything unusual.
    """

    seed_pairs: int = 0
    seed_pairs_used: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoredReport(AlignerReport):
    """The report of a model that was opened, whose method need not be imported or installed for that.

    Attributes:
        more: What the method reports beside what every method does, as plain values.
    """

    more: Mapping[str, Any] = other_entries()


@dataclass(kw_only=True, repr=False)
class Aligner(ABC):
    """Base of all methods: settings in the constructor, learning in `fit`, results in names with `_`.

    Args:
        device: Where to compute: "auto", "cpu" or "cuda".
        seed: For stochastic methods.

    Attributes:
        rejected_: Pairs of rows that the lexicon of the last fit rejected.
        source_map_: Maps source vectors, as read from their file, into the common space.
        target_map_: The same for the target language.
        report_: Pairs used, warnings, and what the method adds in a subclass of `AlignerReport`.
    """

    # The name in commands and grids, a one-line description, the metric of the space, and what the data must
    # be like.
    name: ClassVar[str]
    summary: ClassVar[str]
    metric: ClassVar[Metric] = "cosine"
    needs_seeds: ClassVar[bool] = True
    fewest_pairs: ClassVar[int] = 2
    equal_dimensions: ClassVar[bool] = False
    limits: ClassVar[Limits] = {}
    presets: ClassVar[dict[str, str]] = {}

    device: str = "auto"
    seed: int = 0
    rejected_: Pairs = field(init=False, compare=False, default_factory=lambda: NO_PAIRS)
    source_map_: Map = field(init=False, compare=False)
    target_map_: Map = field(init=False, compare=False)
    report_: AlignerReport = field(init=False, compare=False)

    @classmethod
    def settings_fields(cls) -> dict[str, Any]:
        """The names of the settings and their defaults."""
        return {
            f.name: f.default_factory() if f.default_factory is not MISSING else f.default
            for f in fields(cls)
            if f.init
        }

    @classmethod
    def report_type(cls) -> type[AlignerReport]:
        """The class of `report_`."""
        kind: type[AlignerReport] = get_type_hints(cls)["report_"]
        return kind

    def settings(self) -> dict[str, Any]:
        """All settings and their values."""
        return {name: getattr(self, name) for name in self.settings_fields()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings and their values, under scikit-learn's name, so that `sklearn.base.clone` works.

        Args:
            deep: Is there for scikit-learn; no setting is an estimator itself.
        """
        return self.settings()

    def set_params(self, **params: Any) -> Self:
        """Change settings, under scikit-learn's name; their values are checked when the method is fitted.

        Args:
            params: Settings by name.

        Returns:
            This aligner.

        Raises:
            BilexError: A name is no setting of this method; nothing was changed then.
        """
        known = self.settings_fields()
        for name in params:
            if name not in known:
                raise BilexError(
                    f"method '{self.name}' has no setting '{name}'; it has {', '.join(known)}."
                    f"{nearest_name(name, known)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def clone(self) -> Self:
        """A copy with the same settings, not fitted."""
        return type(self)(**self.settings())

    def for_trial(self, pairs: int, words: int) -> Self:
        """A copy that takes less time, for the held-out trial; by default it is not shortened.

        Args:
            pairs: The number of usable seed pairs.
            words: The number of words in the smaller vocabulary.
        """
        return self.clone()

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.settings().items() if v != self.settings_fields()[k]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def check(self) -> None:
        """Raise a BilexError if a setting has a value that it cannot have."""
        limits: Limits = {"seed": (0, 2**32 - 1), **self.limits}
        check_settings(self.name, self.settings(), get_type_hints(type(self)), limits)

    def fit(
        self,
        source: WordVectors,
        target: WordVectors,
        lexicon: Lexicon | None = None,
        *,
        progress: Progress = SILENT,
        checkpoint: Path | None = None,
    ) -> Self:
        """Learn the two maps.

        Args:
            source: Vectors of the source language.
            target: Vectors of the target language.
            lexicon: Seed pairs, source word first; None or empty where the method needs none.
            progress: Receives progress reports.
            checkpoint: A folder for the state of methods that can be resumed.

        Returns:
            This aligner, fitted.

        Raises:
            BilexError: The data do not suit this method.
        """
        self.report_ = self.report_type()()
        self.check()
        if self.equal_dimensions and source.dim != target.dim:
            raise BilexError(
                f"method '{self.name}' needs vectors of one dimension, not {source.dim} and {target.dim}; "
                f"use {_of_any_dimensions()}."
            )
        known = lexicon if lexicon is not None else Lexicon([])
        self.rejected_ = known.rejected_index(source.key_to_index, target.key_to_index)
        pairs = self._usable_pairs(source, target, known, progress)
        for side in (source, target):
            side.check_finite()
        with exclusive_lock(checkpoint), enough_memory():
            self._fit(source, target, pairs, progress, checkpoint)
        tensors = [t for side in (self.source_map_, self.target_map_) for t in side.state("map")[1].values()]
        if not all(np.isfinite(tensor).all() for tensor in tensors):
            raise BilexError(
                f"method '{self.name}' ended in numbers that are not finite; use a smaller learning rate, or "
                "leave its settings at their defaults."
            )
        return self

    def _usable_pairs(
        self, source: WordVectors, target: WordVectors, lexicon: Lexicon, progress: Progress
    ) -> Pairs:
        """The seed pairs as rows of the two vocabularies, with repetitions."""
        if not len(lexicon):
            if self.needs_seeds:
                raise BilexError(f"method '{self.name}' needs a seed dictionary; give one with --seeds.")
            return NO_PAIRS
        pairs = lexicon.index(source.key_to_index, target.key_to_index)
        self.report_ = replace(self.report_, seed_pairs=len(lexicon), seed_pairs_used=len(pairs))
        if len(pairs) < self.fewest_pairs:
            coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
            raise BilexError(
                f"{lexicon.name}: {coverage.sentence()}; method '{self.name}' needs at least "
                f"{self.fewest_pairs} pairs with both words in the vectors.{coverage.advice()}"
            )
        return pairs

    @abstractmethod
    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        """Set `source_map_`, `target_map_` and `report_`."""


def _of_any_dimensions() -> str:
    """The methods that take vectors of two dimensions, for an error sentence."""
    from bilex.aligners.registry import methods

    names = [name for name, method in methods().items() if not method.equal_dimensions]
    return " or ".join([", ".join(names[:-1]), names[-1]])


def check_settings(
    method: str, settings: Mapping[str, Any], kinds: Mapping[str, Any], limits: Limits
) -> None:
    """Make sure that each setting of a method has its annotated type, is finite, and within its limits.

    A whole number without limits must not be negative.
    """
    for name, value in settings.items():
        if not _fits(value, kinds[name]):
            wanted = _in_words(kinds[name])
            raise BilexError(f"setting '{name}' of {method} is {value!r}; it must be {wanted}.")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        wanted = ""
        least, most = limits.get(name, (0 if isinstance(value, int) else None, None))
        if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _LARGEST_NUMBER):
            wanted = "a finite number"
        elif least is not None and value < least:
            wanted = "more than 0" if least == SMALLEST else f"at least {least:g}"
        elif most is not None and value > most:
            wanted = f"at most {most:g}"
        if wanted:
            raise BilexError(f"setting '{name}' of {method} is {value}; it must be {wanted}.")


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)


def _in_words(kind: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", NoneType: "None"}
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_in_words(one) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return words.get(kind, str(kind))
