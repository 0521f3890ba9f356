"""The ears of these tests: they do hear what comes to somebody whose it is not."""

from overhearing import Overheard, mark_of

KEY = "ab123cd456"


def heard(body: str, request: str = "", headers: list[tuple[bytes, bytes]] | None = None) -> Overheard:
    overheard = Overheard()
    overheard.hear("nilou", request.encode(), 200, headers or [], body.encode())
    return overheard


def test_a_mark_or_a_key_of_another_persona_is_heard_wherever_it_stands() -> None:
    mark = mark_of("dehya")
    assert heard(f'{{"content":"x{mark}y"}}').foreign({}) == [("nilou", mark)]
    assert heard("", headers=[(b"x-note", mark.upper().encode())]).foreign({}) == [("nilou", mark)]
    assert heard(f'{{"missing":["{KEY}"]}}').foreign({KEY: "dehya"}) == [("nilou", KEY)]


def test_what_is_ones_own_or_was_asked_for_is_no_leak() -> None:
    assert heard(f"{mark_of('nilou')} {KEY}").foreign({KEY: "nilou"}) == []
    assert heard(f"no memory has the key {KEY}", request=KEY).foreign({KEY: "dehya"}) == []
