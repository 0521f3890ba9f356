"""ConcurrencyLimiter and turns: how many calls are answered at once, how many wait, and who is next."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import pytest

from memory_mcp.config.settings import Calls
from memory_mcp.errors import Overloaded, PersonaOverloaded
from memory_mcp.server.concurrency import ConcurrencyLimiter


def limited(**limits: int) -> ConcurrencyLimiter:
    calls = Calls(**{"at_once": 2, "at_once_per_persona": 2, "waiting": 100, "waiting_per_persona": 100, **limits})
    return ConcurrencyLimiter(lambda: calls)


class Stage:
    """Calls that begin when told, are noted when their turn comes, and end when told."""

    def __init__(self, places: ConcurrencyLimiter) -> None:
        self.places = places
        self.on: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, *names: str) -> None:
        """`nilou 1` is a call of nilou."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._call(name))
        await self._settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await self._settle()

    async def _call(self, name: str) -> None:
        async with self.places.turn(name.partition(" ")[0]):
            self.on.append(name)
            await self._ends[name].wait()
        self.on.remove(name)

    async def _settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


def play(scene: Callable[[Stage], Awaitable[None]], **limits: int) -> None:
    async def run() -> None:
        stage = Stage(limited(**limits))
        await scene(stage)
        for task in stage._tasks.values():
            task.cancel()
        await asyncio.gather(*stage._tasks.values(), return_exceptions=True)

    asyncio.run(run())


def test_no_more_than_may_run_at_once_and_the_rest_follow_in_their_order() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin("a 1", "a 2", "a 3", "a 4")
        assert stage.on == ["a 1", "a 2"]
        await stage.end("a 1")
        assert stage.on == ["a 2", "a 3"]

    play(scene)


def test_turns_go_round_among_the_personas_that_wait() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin("a 1", "a 2", "a 3", "b 1", "c 1")
        for ended, running in (("a 1", "a 2"), ("a 2", "b 1"), ("b 1", "c 1"), ("c 1", "a 3")):
            await stage.end(ended)
            assert stage.on == [running]

    play(scene, at_once=1)


def test_one_persona_leaves_turns_for_the_others() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin("a 1", "a 2", "a 3", "b 1")
        assert stage.on == ["a 1", "b 1"]

    play(scene, at_once=3, at_once_per_persona=1)


def test_a_caller_that_gives_up_while_it_waits_holds_nobody_up() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin("a 1", "a 2", "a 3")
        await stage.give_up("a 2")
        await stage.end("a 1")
        assert stage.on == ["a 3"]

    play(scene, at_once=1)


def test_a_turn_that_is_given_to_a_caller_who_gives_up_in_the_same_moment_goes_to_the_next() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin("a 1", "a 2", "a 3")
        stage._ends["a 1"].set()
        await asyncio.sleep(0)  # a 1 ends, and its turn is given to a 2, which has not run yet
        assert stage.on == []
        await stage.give_up("a 2")
        assert stage.on == ["a 3"]

    play(scene, at_once=1)


def test_a_caller_that_gives_up_in_the_moment_in_which_a_turn_becomes_free_takes_none() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin("a 1", "a 2", "b 1", "a 3")
        stage._ends["a 1"].set()
        stage._tasks["a 2"].cancel()
        await stage.give_up("b 1")
        assert (stage.on, stage.places.running) == (["a 3"], 1)
        assert stage._tasks["a 1"].done()
        assert stage._tasks["a 1"].exception() is None
        await stage.end("a 3")
        assert stage.places.running == 0

    play(scene, at_once=1)


def test_a_call_may_run_as_soon_as_the_one_before_it_that_may_not_has_given_up() -> None:
    async def run() -> None:
        places = limited(at_once=3, at_once_per_persona=1)
        ends = asyncio.Event()

        async def call(*caller: str) -> None:
            async with places.turn(*caller):
                await ends.wait()

        async with asyncio.TaskGroup() as calls:
            calls.create_task(call("a", "token 1"))
            waiting = calls.create_task(call("b", "token 1"))
            calls.create_task(call("b", "token 2"))
            await asyncio.sleep(0)
            assert places.running == 1
            waiting.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert places.running == 2
            ends.set()

    asyncio.run(run())


def test_one_call_too_many_is_refused_at_once_and_a_place_that_is_left_is_free() -> None:
    full = limited(at_once=2, waiting=1)
    with ExitStack() as places:
        for caller in "abc":
            places.enter_context(full.admitted(caller))
        with pytest.raises(Overloaded, match="too many calls are waiting"), full.admitted("d"):
            pass
    with full.admitted("d"):
        pass


def test_the_calls_of_one_persona_never_take_the_last_places() -> None:
    shared = limited(at_once_per_persona=1, waiting_per_persona=1)
    with shared.admitted("a"), shared.admitted("a"):
        with pytest.raises(PersonaOverloaded, match="of this persona"), shared.admitted("a"):
            pass
        with shared.admitted("b"):
            pass


def test_other_limits_count_from_the_next_call_on() -> None:
    limits = [Calls(at_once=1, waiting=0)]
    edited = ConcurrencyLimiter(lambda: limits[0])
    with edited.admitted("a"):
        with pytest.raises(Overloaded), edited.admitted("b"):
            pass
        limits[0] = Calls(at_once=2, waiting=0)
        with edited.admitted("b"):
            pass
