"""Settings shared by all tests: nothing leaves this machine, and results do not depend on its number of cores.

It knows nothing of what is tested; fakes and servers live beside the tests that use them.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported anywhere
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["OMP_NUM_THREADS"] = "1"  # one process of tests for each core: more threads would only wait for each other

import pytest
import torch

_connect = socket.socket.connect


def _is_local(address: object) -> bool:
    """True for Unix sockets and loopback addresses; names are refused unless they are localhost."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0])
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _local_only(self: socket.socket, address: object) -> None:
    """Stand-in for socket.connect that reaches this machine only."""
    if not _is_local(address):
        message = "a test tried to reach another host"
        raise ConnectionRefusedError(message)
    _connect(self, address)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other hosts, except in tests marked `network`."""
    if request.node.get_closest_marker("network") is None:
        monkeypatch.setattr(socket.socket, "connect", _local_only)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Start each test from the same random state and leave the number of threads as it was."""
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)
