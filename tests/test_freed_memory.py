"""FreedMemory: when memory is given back to the system."""

from memory_mcp.process import FreedMemory

MIB = 1024 * 1024


class Heap:
    """A process of which some memory is in use, and some is free and kept."""

    def __init__(self, used: int, free: int = 0) -> None:
        self.used, self.free = used, free

    def resident(self) -> int:
        return self.used + self.free

    def trim(self) -> None:
        self.free = 0


def test_what_was_freed_is_given_back_also_if_it_was_in_use_at_the_look_before() -> None:
    heap = Heap(used=1_600 * MIB)
    memory = FreedMemory(heap.resident, heap.trim)
    memory.step()
    heap.used, heap.free = 180 * MIB, 1_420 * MIB
    memory.step()
    assert heap.resident() == 180 * MIB


def test_it_looks_soon_after_it_gave_much_back_and_seldom_while_nothing_happens() -> None:
    heap = Heap(used=180 * MIB)
    memory = FreedMemory(heap.resident, heap.trim)
    assert [memory.step() for _ in range(6)] == [10, 20, 40, 60, 60, 60]
    heap.free = 100 * MIB
    assert [memory.step() for _ in range(2)] == [5, 10]
