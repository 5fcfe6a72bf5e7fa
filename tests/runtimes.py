"""The inside of a Meantime: the runtime of an owner, or the client of a process that is connected to one."""

from __future__ import annotations

from meantime import Meantime
from meantime.client.client import Client
from meantime.runtime.runtime import Runtime


def runtime_of(mt: Meantime) -> Runtime:
    assert isinstance(mt._runtime, Runtime)
    return mt._runtime


def client_of(mt: Meantime) -> Client:
    assert isinstance(mt._runtime, Client)
    return mt._runtime
