"""Notices that a caller has closed its connection while its call is being answered: nobody waits for that answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

CALLER = "memory_mcp.caller"  # in the ASGI scope


class Caller:
    """Who waits for an answer, until `is_gone`."""

    is_gone = False


@asynccontextmanager
async def watched(receive: Receive) -> AsyncIterator[Caller]:
    """The caller of a call whose body has arrived, as far as its connection tells. When the block ends, nobody waits any more."""
    caller = Caller()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        caller.is_gone = True

    watching = asyncio.create_task(watch())
    try:
        yield caller
    finally:
        caller.is_gone = True
        watching.cancel()
