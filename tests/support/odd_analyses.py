"""Analyses that do what none should: what the process in which they run makes of it. They are functions of a module, as it wants them."""

import os
import time
from typing import Any

import numpy as np
from panics import Panicked

from memory_mcp.store.graph.network import Network


def whose_process(_network: Network) -> Any:
    return np.array([os.getpid()])


def priority(_network: Network) -> Any:
    return np.array([os.getpriority(os.PRIO_PROCESS, 0)])


def failing(_network: Network) -> Any:
    raise ArithmeticError("no such number")


def panicking(_network: Network) -> Any:
    raise Panicked("index out of bounds")


def talking(network: Network) -> Any:
    print("so many:", len(network.ids))
    return np.array(network.ids)


def dying(_network: Network) -> Any:
    os._exit(3)


def endless(_network: Network) -> Any:
    while True:
        time.sleep(0.01)
