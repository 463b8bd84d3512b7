"""Unknown words of a retrained model: read as before, then taken through the maps that came later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bilex.aligners.maps import Map, maps_from_state, maps_state
from bilex.core.checksums import ModelFiles
from bilex.core.files import read_json, write_json
from bilex.model.unknown import Floats, OutOfVocabulary, Side, load_source

_CONFIG, _INNER = "remapped.json", "inner"


class Remapped:
    """Another source of vectors, whose space was mapped onward.

    Args:
        inner: Who reads the words.
        before: The maps into the space that `inner` reads into.
        onward: From that space into the present one, for each language.
    """

    kind: ClassVar[str] = "remapped"

    def __init__(
        self, inner: OutOfVocabulary, before: Mapping[Side, Map], onward: Mapping[Side, Map]
    ) -> None:
        self._inner = inner
        self._maps = {"before": dict(before), "onward": dict(onward)}

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """What the inner source reads, mapped onward."""
        onward = self._maps["onward"][side]
        found = self._inner.vectors(words, side)
        return [None if row is None else onward(row[None])[0] for row in found]

    def save(self, folder: Path) -> None:
        """Write the inner source and both pairs of maps."""
        from safetensors.numpy import save_file

        config: dict[str, object] = {"inner": self._inner.kind}
        for name, maps in self._maps.items():
            config[name], tensors = maps_state(maps["source"], maps["target"])
            save_file(tensors, folder / f"{name}.safetensors")
        write_json(folder / _CONFIG, config)
        (folder / _INNER).mkdir()
        self._inner.save(folder / _INNER)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> Remapped:
        """What `save` wrote; it has its own maps, so that `maps` of the whole model are not needed."""
        from safetensors.numpy import load_file

        files.compare(folder, but=folder / _INNER)
        config = read_json(folder / _CONFIG)
        read: dict[str, dict[Side, Map]] = {}
        for name in ("before", "onward"):
            source, target = maps_from_state(config[name], load_file(folder / f"{name}.safetensors"))
            read[name] = {"source": source, "target": target}
        inner = load_source(config["inner"], folder / _INNER, read["before"], device, files)
        return cls(inner, read["before"], read["onward"])
