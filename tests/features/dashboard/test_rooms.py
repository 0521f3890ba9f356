"""What the rooms of the dashboard show and do, as plain HTTP: today, memories, questions."""

import html
import json
import re
import sys
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from memory_mcp.errors import SearchUnfinished
from memory_mcp.features.dashboard.frame import unmarked
from memory_mcp.graph.update.cooccurrence import update_graph

pytestmark = pytest.mark.slow  # several pages for each test


@pytest.fixture
def send(http, name):
    """Stores JSON lines."""

    def send(*lines):
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        assert http.post("/api/import", content=body, headers={"X-Persona": name}).json()["stored"] == len(lines)

    return send


@pytest.fixture
def show(http, name):
    """show("ask?q=…"): the text of a page about the persona of this test, without markup."""

    def show(path, status=200):
        page = http.get(f"/p/{name}/ui/{quote(path, safe='/?=&.')}", headers={"Accept-Language": "en"})
        assert page.status_code == status, page.text
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).split())

    return show


@pytest.fixture
def submit(http, name):
    """submit("memory/edit", …): where a form of the persona of this test leads, and the page there."""

    def submit(path, **fields):
        key = re.search(r'name="form_key" value="(\w+)"', http.get(f"/p/{name}/ui/memories/new").text)[1]
        answer = http.post(
            f"/p/{name}/ui/{path}", data={"form_key": key, **fields}, headers={"Accept-Language": "en"}, follow_redirects=True
        )
        return answer.status_code, " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())

    return submit


def uses(http, name, key):
    return http.get(f"/api/memory?key={key}", headers={"X-Persona": name}).json()["memory"].get("usage_count", 0)


def test_a_question_shows_the_hits_why_they_were_found_and_what_just_missed_the_page(send, show):
    send(*({"key": f"k{number}", "content": f"苺の話{number}", "source": "健太"} for number in range(4)))
    page = show("ask?q=健太の苺の話2&top_k=1")
    shown, missed = page.split("Just missed the page")
    assert "苺の話2" in shown
    assert re.search(r"words in common 1\.000 × 1\.00 = 1\.000 .*speaker is named 1\.000 × 0\.\d\d = 0\.\d{3}", shown)
    assert missed.count("苺の話") == 3
    assert "Searched by words" in page


def test_words_that_no_memory_holds_are_named(send, show):
    send({"key": "k", "content": "苺の話"})
    assert "No memory has these words or dates: 喧嘩" in show("ask?q=喧嘩の話")


def test_a_question_under_other_settings_stands_beside_the_one_under_those_in_force(send, show):
    send({"key": "a", "content": "苺と桃", "source": "健太"}, {"key": "b", "content": "苺と桃と梨。桃と苺。", "source": "花子"})
    page = show("ask?q=花子の苺&fusion.speaker_boost=0")
    assert "fusion.speaker_boost : 0.2 → 0" in page
    in_force, tried = page.split("With the values that you try")
    scores = [[float(score) for score in re.findall(r"score ([\d.]+)", part)] for part in (in_force, tried)]
    assert max(scores[0]) > max(scores[1])
    assert "With the values" not in show("ask?q=花子の苺")


@pytest.mark.parametrize(
    "tried", ["fusion.dense_weight=2", "fusion.dense_weight=much", "fusion.dense_weight=nan", "top_k=0", "top_k=x", "mode=magic"]
)
def test_settings_that_cannot_be_are_refused_on_the_page(send, show, tried):
    send({"key": "a", "content": "苺"})
    assert tried.partition("=")[0].split("_")[0] in show(f"ask?q=苺&{tried}", 400).partition("Try other settings")[2]


def test_the_settings_in_force_stay_as_they_are_and_looking_is_no_use_of_a_memory(send, show, http, name, server):
    send({"key": "a", "content": "苺の話"})
    before = server.runtime.config.current()
    for path in ("ask?q=苺&fusion.session_weight=1", "ask/context?q=苺", "memories?q=苺", "today"):
        show(path)
    assert server.runtime.config.current() == before
    server.runtime.usage.write_all(server.runtime.personas)
    assert uses(http, name, "a") == 0


def test_what_a_model_is_told_first_is_shown_word_for_word_with_its_cost(send, show, persona):
    send({"key": "a", "content": "健太は苺が好き。", "source": "健太"})
    text = persona.result("get_context", {"query": "苺"}).content[0].text
    page = show("ask/context?q=苺")
    assert " ".join(text.split()) in page
    assert re.search(r"About \d+ tokens", page)
    assert "max_tokens is 3" in show("ask/context?max_tokens=3", 400)


def test_today_shows_what_was_learned_and_what_is_to_come(send, show):
    send({"key": "a", "content": "11月2日に歯医者へ行く。", "source": "健太"}, {"key": "b", "content": "苺を買った。"})
    upcoming, latest = show("today").split("Learned lately")
    assert "Nov 2 Sun 11月2日に歯医者へ行く。 in 3 days 健太 told today" in upcoming
    assert "苺を買った" in latest
    assert "Search by meaning: turned off in the settings" in latest


def test_today_shows_the_plans_of_the_next_days_and_not_only_as_many_as_a_model_is_told(send, show):
    send(*({"key": f"k{day}", "content": f"11月{day}日に歯医者へ行く。"} for day in range(7, 2, -1)))
    upcoming = show("today").partition("Upcoming")[2].partition("Learned lately")[0]
    assert re.findall("11月.日", upcoming) == [f"11月{day}日" for day in range(3, 8)]


def test_memories_that_say_the_same_are_merged_and_the_merge_is_undone(send, show, submit, http, name):
    send(
        {"key": "a", "content": "毎週火曜の夜に英会話教室へ通っている。"},
        {"key": "b", "content": "毎週火曜の夜に英会話の教室へ通っている。"},
    )
    assert "These say nearly the same" in show("today/decide")
    submit("today/merge", key="a", into="b")
    page = show("today/decide")
    assert "These say nearly the same" not in page
    assert "1 merged into one" in page
    assert "Current memories 1" in show("today")
    submit("today/undo", operation_id=operation_of(http, name))
    assert "Current memories 2" in show("today")


def operation_of(http, name):
    """The number of the latest merge, as its form has it."""
    return re.search(r'name="operation_id" value="([^"]+)"', http.get(f"/p/{name}/ui/today/decide").text)[1]


def test_a_correction_keeps_the_earlier_text_and_a_later_one_is_not_overwritten(send, show, submit):
    send({"key": "a", "content": "健太は苺が好き。", "tags": ["食べ物"]})
    status, page = submit(
        "memory/edit",
        key="a",
        revision="1",
        content="健太は桃が好き。",
        tags="食べ物、果物",
        importance="0.8",
        privacy_level="internal",
        reason="聞き間違い",
    )
    assert (status, "Saved." in page) == (200, True)
    assert "聞き間違い 健太は 苺 桃 が好き。" in page
    assert "食べ物, 果物" in page
    status, page = submit(
        "memory/edit", key="a", revision="1", content="健太は梨が好き。", tags="食べ物", importance="0.5", privacy_level="internal"
    )
    assert status == 409
    assert "The memory now says: 健太は桃が好き。" in page
    assert "健太は梨が好き。" in page
    assert "健太は桃が好き。" in show("memory?key=a")


def test_a_form_that_changes_nothing_makes_no_revision(send, submit, show):
    send({"key": "a", "content": "一行目\n二行目", "tags": ["あ", "い"], "importance": 0.123456})
    status, _ = submit(
        "memory/edit", key="a", revision="1", content="一行目\r\n二行目", tags="あ、い", importance="0.123456", privacy_level="internal"
    )
    assert status == 200
    assert "It was never changed." in show("memory?key=a")


def test_an_earlier_revision_comes_back(send, submit):
    send({"key": "a", "content": "苺"})
    submit("memory/edit", key="a", revision="1", content="桃", tags="", importance="0.5", privacy_level="internal")
    _, page = submit("memory/version", key="a", revision="1")
    assert "Restored. The memory now reads as follows. Undo" in page
    assert "Revision 2 → 3" in page
    assert "Restore revision 2" not in page  # which is what Undo does


def test_memories_are_forgotten_and_restored_and_the_page_says_what_became_of_them(send, submit, show):
    send({"key": "a", "content": "苺"}, {"key": "b", "content": "桃"})
    _, page = submit("memories/forget", key=["a", "b", "nobody"])
    assert "Moved 2 to the trash" in page
    assert "This memory is in the trash" in show("memory?key=a")
    _, page = submit("memories/restore", key=["a", "b"])
    assert "Restored 2 from the trash" in page
    assert "Searches find it as before." in page
    assert "Move to trash again" in page
    assert "Moved 0 to the trash" in show("memories/done?what=forgotten&key=a&key=b")


def test_what_replaces_a_memory_is_shown_beside_it_and_undone_so_that_the_earlier_one_holds_again(send, submit, show, http, name):
    send({"key": "a", "content": "車はプリウス。"})
    _, page = submit("memories/new", content="車はヤリス。", supersedes="a", privacy_level="internal")
    assert "Until now 車はプリウス。 True now 車はヤリス。" in page
    assert "Back to the memories Undo" in page
    [new] = http.get("/api/memories", headers={"X-Persona": name}).json()["memories"]
    submit("memories/forget", key=new["key"])
    assert "Current memories 1 Replaced 0" in show("house")


def test_a_memory_by_hand_says_what_is_alike_and_what_was_redacted(send, submit):
    send({"key": "a", "content": "毎週火曜の夜に英会話教室へ通っている。"})
    _, page = submit("memories/new", content="毎週火曜の夜に英会話の教室へ通っている。", kind="fact", privacy_level="internal")
    assert "Memories with nearly the same text" in page
    _, page = submit("memories/new", content="カードは4242 4242 4242 4242です。", kind="fact", privacy_level="internal")
    assert "Private data removed" in page
    status, page = submit("memories/new", content="苺", occurred_at="そのうち", kind="fact", privacy_level="internal")
    assert status == 400
    assert "苺" in page


def test_the_room_of_the_persona_shows_its_figures_and_makes_backups(send, show, submit):
    send({"key": "a", "content": "苺"}, {"key": "b", "content": "桃", "supersedes": "a"})
    page = show("house")
    assert "Current memories 1 Replaced 1 In the trash 0" in page
    assert "No backup yet" in page
    _, page = submit("house/backup")
    assert "memory-mcp restore" in page


def test_an_export_is_the_file_that_the_route_sends(send, show, http, name):
    send({"key": "a", "content": "苺"}, {"key": "s", "content": "内緒", "privacy_level": "secret"})
    assert "the trash: 0 secret memories: 1" in show("house")
    page = http.get(f"/p/{name}/ui/house/export?format=jsonl&include_secret=true")
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.content == http.get("/api/export?include_secret=true", headers={"X-Persona": name}).content
    assert "内緒" not in http.get(f"/p/{name}/ui/house/export").text
    assert http.get(f"/p/{name}/ui/house/export?format=markdown").headers["content-type"] == "application/zip"


def test_the_graph_is_exported_for_other_programs(send, http, name):
    send({"key": "a", "content": "[[健太|Person]]は[[鎌倉|Location]]で働く。", "relations": ["健太 > works_in > 鎌倉"]})
    for format_, shown in (("graphml", "<graphml"), ("graph-json", '"nodes"')):
        page = http.get(f"/p/{name}/ui/house/export?format={format_}")
        assert shown in page.text
        assert "健太" in page.text


def test_a_persona_is_copied_merged_and_renamed(send, submit, http, name):
    send({"key": "a", "content": "苺"})
    assert "The persona was copied" in submit("house/copy", to=f"{name}-copy")[1]
    assert "1 were there before" in submit("house/merge", into=f"{name}-copy")[1]
    assert "The persona has its new name" in submit("house/rename", to=f"{name}-new")[1]
    listed = {persona["name"] for persona in http.get("/api/personas").json()["personas"]}
    assert {f"{name}-copy", f"{name}-new"} <= listed
    assert name not in listed


def test_a_persona_is_erased_only_when_its_name_was_typed(send, show, submit, http, name):
    send({"key": "a", "content": "苺"})
    assert f"Type its name, {name}, to erase it" in show("house/erase")
    for typed in ("", "x", f"{name}x"):
        submit("house/erase", confirm=typed)
        assert http.get("/api/memory?key=a", headers={"X-Persona": name}).status_code == 200
    assert "The persona is erased" in submit("house/erase", confirm=name)[1]
    assert http.get("/api/memory?key=a", headers={"X-Persona": name}).status_code == 404


GRAPH = [
    {"key": "a", "content": "[[健太|Person]]は[[桜高校|Organization]]の生徒。", "relations": ["健太 > studies_at > 桜高校"]},
    {"key": "b", "content": "[[美咲|Person]]は健太の妹。", "relations": ["健太 > sibling_of > 美咲"]},
    {"key": "c", "content": "美咲は[[鎌倉|Location]]に住む。", "relations": ["美咲 > lives_in > 鎌倉"]},
]


def test_whom_memories_name_is_listed_by_name_and_type_and_each_has_a_page(send, show):
    send(*GRAPH)
    assert "4 in all" in show("people")
    assert "美咲" not in show("people?type=Location").partition("in all")[2]
    assert "Take one of them" in show("people?type=Dragon", 400)
    page = show("people/one?entity=美咲")
    naming, near = page.split("Recalled through relations: 1")
    assert "健太の妹" in naming
    assert "鎌倉に住む" in naming
    assert "の生徒" in near
    assert "の生徒" not in naming
    assert "健太 sibling of 美咲" in page
    assert "美咲は健太の妹。" in page
    show("people/one?entity=誰か", 404)


def test_lists_show_a_marked_name_as_a_name_and_the_reader_the_text_as_it_is(send, show):
    send({"key": "a", "content": "[[美咲|Person]]は [[ -f x ]] と書く。"})
    assert "美咲は [[ -f x ]] と書く。" in show("memories")
    page = show("memory?key=a")
    assert "[[美咲|Person]]は [[ -f x ]] と書く。" in page
    assert "美咲 Person" in page


@pytest.mark.parametrize("left", range(6, 16))
def test_a_name_whose_mark_was_cut_is_shown_without_it(left):
    assert unmarked(f"美咲と{'[[京都|Location]]'[: left - 3]}…") in ("美咲と京…", "美咲と京都…")
    assert unmarked("if [[ -f x ]] …") == "if [[ -f x ]] …"


def drawn(http, name, path):
    """The entities and relations of a page's picture, as its tables have them: each entity with its place."""
    page = http.get(f"/p/{name}/ui/people/{quote(path, safe='/?=&.')}", headers={"Accept-Language": "en"}).text
    places = re.findall(r'<tr data-node=".*?data-x="(\d+)" data-y="(\d+)".*?<a [^>]*>(.*?)</a>', page)
    rows = re.findall(r"<tr data-from=.*?><td>(.*?)</td><td>(.*?)</td><td>([^<]*)", page)
    return {entity: (int(x), int(y)) for x, y, entity in places}, {" ".join(row).strip() for row in rows}


def test_the_picture_and_its_tables_hold_every_entity_at_its_place_and_every_relation(send, show, http, name):
    send(*GRAPH)
    places, relations = drawn(http, name, "picture")
    assert places.keys() == {"健太", "桜高校", "美咲", "鎌倉"}
    assert len(set(places.values())) == 4
    assert all(0 <= x <= 1_000 and 0 <= y <= 800 for x, y in places.values())
    assert relations == {"健太 studies at 桜高校", "健太 sibling of 美咲", "美咲 lives in 鎌倉"}
    assert drawn(http, name, "picture") == (places, relations)
    assert "limit is 501" in show("people/picture?limit=501", 400)
    assert "no entity is named" in show("people/picture?around=誰か", 400)


def test_the_picture_goes_outwards_from_some_of_them_and_is_narrowed_by_type_relation_and_strength(send, show, http, name):
    send(*GRAPH)
    assert drawn(http, name, "picture?around=鎌倉")[0].keys() == {"鎌倉", "美咲"}
    assert drawn(http, name, "picture?around=鎌倉&around=美咲")[0].keys() == {"鎌倉", "美咲", "健太"}
    assert drawn(http, name, "picture?around=鎌倉&depth=2&types=Person")[0].keys() == {"鎌倉", "美咲", "健太"}
    assert drawn(http, name, "picture?types=Person")[0].keys() == {"健太", "美咲"}
    assert drawn(http, name, "picture?relation_types=lives_in")[1] == {"美咲 lives in 鎌倉"}
    assert drawn(http, name, "picture?around=健太&min_weight=1")[1] < drawn(http, name, "picture?around=健太")[1]
    assert "How are 鎌倉 and 美咲 connected?" in show("people/picture?around=鎌倉&around=美咲")


def test_without_the_libraries_for_graphs_the_page_says_so_and_shows_the_tables(send, show, http, name, monkeypatch):
    send(*GRAPH)
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    page = show("people/picture")
    assert "There is no picture here, because a library is missing." in page
    assert "[graph]" in page
    assert "健太 sibling of 美咲" in page
    assert drawn(http, name, "picture")[0] == {}


def test_the_page_of_an_entity_and_a_path_have_their_picture(send, http, name):
    send(*GRAPH)
    assert drawn(http, name, "one?entity=美咲")[0].keys() == {"健太", "美咲", "鎌倉"}
    assert drawn(http, name, "one?entity=美咲&depth=2")[0].keys() == {"健太", "美咲", "鎌倉", "桜高校"}
    assert drawn(http, name, "path?source=健太&target=鎌倉")[0].keys() == {"健太", "美咲", "鎌倉"}
    page = http.get(f"/p/{name}/ui/people/path", params={"source": "健太", "target": "鎌倉"}).text
    assert len(re.findall("<tr [^>]*data-path", page)) == 2


def test_a_way_between_two_is_found_step_by_step(send, show):
    send(*GRAPH)
    assert "健太 – 美咲 – 鎌倉" in show("people/path?source=健太&target=鎌倉")
    assert "no entity is named" in show("people/path?source=健太&target=誰か", 400)


def test_two_names_of_one_are_merged_and_the_merge_is_undone(send, show, submit, http, name):
    send(*GRAPH, {"key": "d", "content": "[[ケンタ|Person]]も来た。"})
    submit("people/merge", entity="ケンタ", into="健太")
    assert "ケンタ" in show("people/one?entity=健太").partition("Also called")[2]
    number = re.search(r'name="undo" value="(\d+)"', http.get(f"/p/{name}/ui/people/twice").text)[1]
    submit("people/merge", undo=number)
    assert "undone" in show("people/twice")
    assert "5 in all" in show("people")


def test_the_figures_of_the_graph_count_it_by_type_and_month(send, show):
    send(*GRAPH)
    page = show("people/statistics")
    assert "People and things 4" in page
    assert "New people and things by month most: 4" in page
    assert "Oct 2025 4" in page
    assert "Memories per day most: 3" in page
    assert "Oct 30 3" in page


def test_a_memory_says_what_it_said_as_of_a_date(send, show):
    send(
        {"key": "a", "content": "横浜に住む。", "created_at": "2025-05-01T00:00:00+00:00"},
        {"key": "b", "content": "鎌倉に住む。", "supersedes": "a"},
    )
    assert "It was the current one then." in show("memory?key=a&as_of=2025-06")
    assert "Another memory was the current one then." in show("memory?key=b&as_of=2025-06")
    assert "It was not stored yet." in show("memory?key=b&as_of=2025-06")
    assert "そのうち" in show("memory?key=a&as_of=そのうち")


def test_a_page_that_does_not_exist_says_so(show):
    assert "There is no such page." in show("nowhere", 404)


def test_lines_are_tried_and_then_imported(send, submit, show):
    send({"key": "a", "content": "苺"})
    lines = "\n".join(json.dumps(line) for line in ({"key": "a", "content": "桃"}, {"key": "b", "content": "梨"})) + "\n{"
    _, page = submit("house/import", lines=lines, dry_run="true")
    assert "this was a trial" in page
    assert "Current memories 1" in show("house")
    _, page = submit("house/import", lines=lines, on_known="revise")
    assert "Stored 1" in page
    assert "Edited 1" in page
    assert "3: " in page
    assert "桃" in show("memory?key=a")


def test_a_memory_that_is_linked_twice_to_another_shows_the_link_that_can_be_taken_back(server, persona, http, name, show):
    persona("remember", content="プリウスに乗ってる", session_id="drive")
    new = persona("remember", content="プリウスを手放してヤリスを買った", session_id="drive")["key"]
    with server.runtime.personas.writing(name) as opened:
        while update_graph(opened, datetime(2025, 10, 30, 3, tzinfo=UTC)):
            pass
    links = http.get("/api/graph/memory-links", params={"key": new}, headers={"X-Persona": name}).json()["links"]
    assert {link["type"] for link in links} > {"newer"}
    page = show(f"memory?key={new}")
    assert "That is wrong" in page
    assert "in all" not in page


def test_a_memory_is_replaced_by_one_that_is_stored_already_and_gets_its_place_back(send, submit, show):
    send({"key": "a", "content": "車はプリウス。"}, {"key": "b", "content": "車はヤリス。"}, {"key": "c", "content": "犬を飼っている。"})
    page = show("memories/new?supersedes=a")
    assert "車はヤリス。" in page.partition("Is what is true now stored already?")[2]
    assert "犬" not in page
    _, page = submit("memory/replace", key="b", earlier="a")
    assert "This memory has taken the place of the earlier one." in page
    assert "Current memories 2 Replaced 1" in show("house")
    _, page = submit("memory/replace", key="b", earlier="nothing")
    assert "Both memories are current again." in page
    assert "Current memories 3 Replaced 0" in show("house")
    assert [submit("memory/replace", key="b", earlier=earlier)[0] for earlier in ("b", "", "nothing")] == [400] * 3


def test_what_is_linked_as_newer_is_confirmed_or_refused_where_decisions_are_made(server, persona, name, show, submit):
    pairs = [
        [persona("remember", content=text)["key"] for text in texts]
        for texts in (
            ("プリウスに乗ってる", "プリウスを手放してヤリスを買った"),
            ("土曜に美容院の予約がある", "美容院の予約は月曜に変更になった"),
        )
    ]
    with server.runtime.personas.writing(name) as opened:
        while update_graph(opened, datetime(2025, 10, 30, 3, tzinfo=UTC)):
            pass
    assert show("today/decide").count("Only the later one is true now") == show("today/decide").count("Both are true") == 2
    submit("memory/replace", key=pairs[0][1], earlier=pairs[0][0])
    submit("memory/unlink", key=pairs[1][1], newer=pairs[1][1], earlier=pairs[1][0])
    assert "Only the later one is true now" not in show("today/decide")
    assert "Replaced 1" in show("house")


def test_a_memory_that_replaces_another_is_offered_for_no_second_one(server, persona, name, show):
    bicycle = persona("remember", content="自転車に乗ってる")["key"]
    prius = persona("remember", content="プリウスに乗ってる")["key"]
    persona("remember", content="プリウスを手放してヤリスを買った", supersedes=bicycle)
    with server.runtime.personas.writing(name) as opened:
        while update_graph(opened, datetime(2025, 10, 30, 3, tzinfo=UTC)):
            pass
    page = show("today/decide")
    assert "プリウスを手放して" in page
    assert "Only the later one is true now" not in page
    assert "ヤリス" not in show(f"memories/new?supersedes={prius}")


def test_the_form_to_replace_a_memory_needs_no_search(send, show, monkeypatch):
    send({"key": "a", "content": "車はプリウス。"}, {"key": "b", "content": "車はヤリス。"})

    def late(*_, **__):
        raise SearchUnfinished("the search was not done in time", "", "")

    monkeypatch.setattr("memory_mcp.server.actions.memories.recall_memories", late)
    assert "車はプリウス。" in show("memories/new?supersedes=a")
