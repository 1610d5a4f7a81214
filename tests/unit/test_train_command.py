"""`python -m models.train`: where it stops, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.recipes.registry import RECIPES


@pytest.mark.slow
def test_a_command_stops_where_it_is_told_and_at_ctrl_c(tmp_path: Path) -> None:
    """`--until` and Ctrl-C both leave a checkpoint that holds every step that was done."""
    command = [sys.executable, "-m", "models.train", "everyhead-tiny", "--out", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    until = subprocess.run(
        [*command, "--until", "30", "--snapshots", "10"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    steps = RECIPES["everyhead-tiny"].training.steps
    assert f"stopped after 30 of {steps} steps; the same command goes on" in until.stdout
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == [
        "step-00010.safetensors",
        "step-00020.safetensors",
        "step-00030.safetensors",
    ]
    piped = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=piped, stderr=piped, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("step 40/"), "it goes on after the 30 steps"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "training was stopped after" in output
    assert not (tmp_path / "model").exists()
