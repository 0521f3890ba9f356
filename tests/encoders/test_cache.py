"""What is remembered of the models' answers, and for whom."""

import threading

from memory_mcp.encoders.cache import Caches, LruCache, digest


def test_what_was_unused_longest_is_forgotten():
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


def test_putting_again_replaces():
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("a", 2)
    assert (cache.get("a"), len(cache)) == (2, 1)


def test_a_digest_knows_where_one_text_ends_and_the_next_begins():
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest("猫", "犬") != digest("犬", "猫")
    assert digest("猫") == digest("猫")
    assert digest("\ud83d") != digest("?")


def test_clearing_forgets_everything():
    caches = Caches()
    caches.scores.put(digest("a"), 0.5)
    caches.clear()
    assert caches.scores.get(digest("a")) is None


def test_threads_can_share_one():
    cache: LruCache[int, int] = LruCache(50)

    def use() -> None:
        for number in range(2_000):
            cache.put(number % 97, number)
            cache.get(number % 89)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 50
