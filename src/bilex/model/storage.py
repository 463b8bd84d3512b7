"""A translator as a folder: safetensors, JSON, word lists and a card, checked by checksums."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bilex.aligners.maps import Map, maps_from_state, maps_state
from bilex.core.files import atomic_folder, json_text, link_or_copy, restore
from bilex.core.manifest import CARD, CHECKSUMS, ModelFiles, write_checksums
from bilex.fit.calibration import Calibration
from bilex.model.model_folder import (
    CONFIG,
    MAPS,
    check_free,
    finish,
    fitting_together,
    read_seeds,
    write_seeds,
)
from bilex.model.phrases import without_phrases
from bilex.model.provenance import Provenance
from bilex.model.saved import (
    FORMAT,
    FORMAT_VERSION,
    SEEDS,
    SOURCE,
    TARGET,
    UNKNOWN,
    model_files,
    own_files,
    read_config,
)
from bilex.model.space import CSLS_NEIGHBOURS, Side, Space
from bilex.model.unknown import load_source
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.translator import Translator


def check_destination(folder: str | Path) -> None:
    """Make sure, before hours of work, that a translator may be saved in a folder.

    Raises:
        BilexError: It may not; see `check_free`.
    """
    check_free(folder, own_files)


def save_translator(translator: Translator, folder: str | Path) -> None:
    """Write a translator; the arguments are those of `Translator.save`."""
    from safetensors.numpy import save_file

    from bilex.model.card import card

    check_destination(folder)
    space = translator.whole_space
    steps, tensors = maps_state(translator.source_map, translator.target_map)
    r_source, r_target = space.neighbourhoods()
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "metric": space.metric,
        "dim": space.dim,
        "source_words": len(space.source),
        "target_words": len(space.target),
        "lowercase": translator.lowercase,
        "csls_neighbours": CSLS_NEIGHBOURS,
        **steps,
        "unknown": [source.kind for source in translator.unknown],
        "calibration": translator.calibration.as_dict(),
        **translator.provenance.as_dict(),
    }
    with atomic_folder(folder, own_files=own_files) as path:
        space.source.save(path / SOURCE, "safetensors")
        space.target.save(path / TARGET, "safetensors")
        terms = {"r_source": np.ascontiguousarray(r_source), "r_target": np.ascontiguousarray(r_target)}
        save_file({**tensors, **terms}, path / MAPS)
        for source in translator.unknown:
            (path / UNKNOWN / source.kind).mkdir(parents=True)
            source.save(path / UNKNOWN / source.kind)
        write_seeds(path / SEEDS, translator.seeds)
        finish(path, config, card(translator))


def replace_calibration(folder: str | Path, calibration: Calibration, more: dict[str, Any]) -> None:
    """Give a saved model other confidences; at any moment it is the old model or the new one, each whole.

    Its large files are taken over as they are, by a link where the disk can do that.

    Args:
        folder: The model.
        calibration: Its new confidences.
        more: What its configuration says about them besides.

    Raises:
        BilexError: It is no model, or cannot be replaced.
    """
    path = Path(folder)
    config = {**read_config(path), "calibration": calibration.as_dict(), **more}
    with atomic_folder(path, own_files=lambda found: {*own_files(found), CARD}) as made:
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            name = file.relative_to(path)
            if name.as_posix() not in (CONFIG, CHECKSUMS):
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(file, made / name)
        (made / CONFIG).write_text(json_text(config), encoding="utf-8")
        write_checksums(made)


def load_translator(folder: str | Path, *, verify: bool, device: str) -> Translator:
    """Open a translator; the arguments are those of `Translator.load`."""
    from safetensors.numpy import load_file

    from bilex.model.translator import Translator

    path = Path(folder)
    restore(path)
    config = read_config(path)
    files = model_files(path) if verify else ModelFiles(path)
    files.compare(path, but=path / UNKNOWN)
    with fitting_together(path):
        tensors = load_file(path / MAPS)
        source_map, target_map = maps_from_state(config, tensors)
        maps: dict[Side, Map] = {"source": source_map, "target": target_map}
        source, target = (WordVectors.load(path / side, verify=False) for side in (SOURCE, TARGET))
        whole = Space(source, target, config["metric"], device)
        whole.keep_neighbourhoods(tensors["r_source"], tensors["r_target"], config["csls_neighbours"])
        provenance = Provenance.from_dict(config)
        return Translator.of_parts(
            without_phrases(whole, provenance.composed),
            source_map,
            target_map,
            Calibration.from_dict(config["calibration"]),
            [load_source(kind, path / UNKNOWN / kind, maps, device, files) for kind in config["unknown"]],
            read_seeds(path / SEEDS),
            provenance,
            config["lowercase"],
            whole,
        )
