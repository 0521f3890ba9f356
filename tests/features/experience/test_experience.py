"""Advice, reports and judgements, as a client calls them."""

import json
from datetime import timedelta

import apsw
import pytest

from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.language.budget import estimate_tokens
from memory_mcp.server.mcp.tools import tools_of

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "upkeep", "experience"])]  # a server for each of many tests

INVOICES = "請求書を月末にまとめて発行する"
STEPS = ["経理の佐伯さんに締め番号をもらう", "控えを\n青フォルダに  入れる"]


@pytest.fixture
def worked(persona):
    """worked(n): reports the same steps as having worked n times; returns their key."""

    def worked(times=1, task=INVOICES, steps=STEPS, outcome="worked"):
        for _ in range(times):
            answer = persona("report", task=task, outcome=outcome, steps=steps)
        (key,) = answer["counted"]
        return key

    return worked


def test_nothing_is_known_of_a_new_persona(persona):
    answer = persona("advise", task=INVOICES)
    assert (answer["unknown"], answer["try"], answer["beware"], answer["new_persona"]) == (True, [], [], True)


def test_the_next_advice_has_the_steps_of_a_report_word_for_word(persona):
    made = persona(
        "report", task=INVOICES, outcome="worked", steps=STEPS, strategy="sequential", when="月末", not_when="年度末", lesson="早めに頼む"
    )
    answer = persona("advise", task="月末の請求書発行をお願い")
    assert answer["unknown"] is False
    (advised,) = answer["try"]
    assert made["made"] == [advised["key"]]
    assert advised["steps"] == STEPS
    assert advised | {"why": ""} == {
        "key": advised["key"],
        "title": INVOICES,
        "steps": STEPS,
        "strategy": "sequential",
        "when": "月末",
        "not_when": "年度末",
        "lesson": "早めに頼む",
        "tried": 1,
        "worked": 1,
        "lower_bound": 0.21,
        "last": "2025-10-30",
        "why": "",
    }
    assert "words 0." in advised["why"]


@pytest.mark.parametrize("steps", [["1. 数える", "2. 写す"], "1. 数える\n2. 写す", ["- 数える\n- 写す"], ["・数える", "・写す"]])
def test_steps_that_a_model_numbers_or_sends_as_one_list_are_the_same_steps(persona, steps):
    persona("report", task=INVOICES, outcome="worked", steps=["数える", "写す"])
    persona("report", task=INVOICES, outcome="worked", steps=steps)
    (advised,) = persona("advise", task=INVOICES)["try"]
    assert (advised["steps"], advised["tried"]) == (["数える", "写す"], 2)


def test_a_task_and_an_outcome_are_enough_for_a_report(persona):
    (key,) = persona("report", task="倉庫の棚卸しをする", outcome="worked")["made"]
    assert persona("advise", task="倉庫の棚卸しをする")["try"][0]["key"] == key


def test_another_task_gets_no_advice(persona, worked):
    worked()
    assert persona("advise", task="猫を動物病院に連れて行く")["unknown"] is True


@pytest.mark.parametrize(
    ("told", "asked", "is_known"),
    [
        ("Reconcile the ledger", "Do the reconciliation of our ledgers", True),
        ("Translate the handbook", "Translation of the handbook", True),
        ("Plan the budget", "Plan a picnic", False),
        ("年賀状を印刷する", "契約書を印刷する", False),
        ("年賀状を印刷する", "年賀状の印刷をお願い", True),
    ],
)
def test_a_task_is_known_by_what_it_is_about_and_not_by_its_verb(persona, worked, told, asked, is_known):
    worked(task=told)
    assert persona("advise", task=asked)["unknown"] is not is_known


def test_a_call_without_a_run_counts_anew_and_one_with_the_same_run_does_not(persona, worked):
    key = worked(2)
    for _ in range(3):
        answer = persona("report", task=INVOICES, outcome="worked", steps=STEPS, run="7")
    assert answer["repeated"] is True
    assert answer["counted"] == {key: ["worked"]}
    assert persona("advise", task=INVOICES)["try"][0]["tried"] == 3


def test_one_of_one_never_comes_before_eighteen_of_twenty(persona, worked):
    often = worked(18)
    worked(2, outcome="failed")
    once = worked(1, steps=["全部やり直す"])
    assert [advised["key"] for advised in persona("advise", task=INVOICES)["try"]] == [often, once]


def test_two_of_two_are_advised_and_steps_that_often_fail_are_warned_of(persona, worked):
    good, bad = worked(2), worked(1, steps=["印刷してから送る"])
    worked(1, steps=["印刷してから送る"], outcome="failed")
    answer = persona("advise", task=INVOICES)
    assert [(advised["key"], advised["tried"]) for advised in answer["try"]] == [(good, 2)]
    assert [(warned["key"], warned["tried"], warned["worked"]) for warned in answer["beware"]] == [(bad, 2, 1)]


def test_what_is_unused_for_90_days_ranks_half_as_high(persona, worked, clock):
    old = worked(2)
    clock.now += timedelta(days=90)
    assert "recency 0.50" in persona("advise", task=INVOICES)["try"][0]["why"]
    new = worked(2, steps=["一枚ずつ出す"])
    assert [advised["key"] for advised in persona("advise", task=INVOICES)["try"]] == [new, old]


def test_a_failure_warns_of_its_sign_and_says_what_to_do_instead(persona):
    told = {"sign": "印影が薄い", "instead": "300dpiで貼る", "lesson": "差し戻された", "severity": 4}
    persona("report", task=INVOICES, outcome="failed", **told)
    persona("report", task=INVOICES, outcome="failed", **told)
    (warned,) = persona("advise", task=INVOICES)["beware"]
    assert {name: warned[name] for name in ("sign", "instead", "what_happened", "severity", "seen")} == {
        "sign": "印影が薄い",
        "instead": "300dpiで貼る",
        "what_happened": "差し戻された",
        "severity": 4,
        "seen": 2,
    }


def test_a_success_that_contradicts_a_failure_supersedes_it_until_it_fails_again(persona, clock):
    failed = {"task": INVOICES, "outcome": "failed", "sign": "番号が合わない", "steps": STEPS}
    persona("report", **failed)
    clock.now += timedelta(minutes=1)
    persona("report", task=INVOICES, outcome="worked", steps=STEPS)
    assert persona("advise", task=INVOICES)["beware"][0]["superseded"] is True
    clock.now += timedelta(minutes=1)
    persona("report", **failed)
    assert "superseded" not in persona("advise", task=INVOICES)["beware"][0]


def test_what_worked_with_the_remedy_does_not_contradict_the_failure(persona):
    persona("report", task=INVOICES, outcome="failed", sign="印影が薄い", instead="300dpiで貼る")
    persona("report", task=INVOICES, outcome="worked", steps=STEPS)
    assert "superseded" not in persona("advise", task=INVOICES)["beware"][0]


def test_only_what_this_caller_was_shown_is_credited(persona, worked, connect, server):
    key = worked()
    unseen = persona("report", task=INVOICES, outcome="worked", used=[key])
    assert list(unseen["not_counted"]) == [key]
    persona("advise", task=INVOICES)
    seen = persona("report", task="月末の請求書発行をお願い", outcome="worked", used=[key])
    assert seen["counted"] == {key: ["used", "worked"]}
    assert seen["made"] == []


def test_what_is_near_is_named_and_not_merged(persona, worked):
    key = worked()
    answer = persona("report", task="請求書を月末に発行する", outcome="worked", steps=["別の手順"])
    assert [near["key"] for near in answer["near"]] == [key]
    assert answer["made"] == list(answer["counted"]) != [key]
    assert "organize" in answer["note"]
    merged = persona("organize", merge=answer["made"], into=key)
    assert persona("advise", task=INVOICES)["try"][0]["tried"] == 2
    persona("organize", undo=merged["operation_id"])
    assert [advised["tried"] for advised in persona("advise", task=INVOICES)["try"]] == [1, 1]


def test_a_report_that_says_more_of_a_known_experience_says_how_to_add_it(persona, worked):
    key = worked()
    answer = persona("report", task=INVOICES, outcome="worked", steps=STEPS, lesson="早めに頼む")
    assert answer["note"] == f"{key} says it already; revise adds what is new in it"


def test_advice_costs_at_most_600_tokens(persona, worked):
    for number in range(4):
        worked(2, steps=[f"{number}番目の手順をとても長く書いておく" * 6, *STEPS * 30])
        persona("report", task=INVOICES, outcome="failed", sign=f"{number}番の兆候" * 40, instead="待つ" * 90)
    result = persona.result("advise", {"task": INVOICES, "limit": 10})
    assert estimate_tokens(result.content[0].text) <= 600
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.structured_content["more"] > 0
    assert result.structured_content["try"][0]["truncated"] is True


def test_words_of_when_and_of_a_sign_warn_of_any_task_in_which_they_stand(persona):
    told = {"task": "Deploy the shop", "outcome": "failed", "instead": "run the checklist"}
    (key,) = persona("report", **told, when="asap, urgent")["made"]
    (seen,) = persona("report", **told | {"task": "予定を組む", "instead": "担当に聞く"}, sign="至急または急ぎ")["made"]
    for task, warned in (("please send the reports asap", [key]), ("至急、名簿を送る", [seen]), ("please send the reports", [])):
        answer = persona("advise", task=task)
        assert [entry["key"] for entry in answer["beware"]] == warned
        assert (answer["unknown"], answer["try"]) == (not warned, [])


def test_what_may_be_about_the_same_is_named_without_steps_and_counts_if_it_was_used(persona, worked):
    key = worked(task="Renew the lease of the office downtown")
    answer = persona("advise", task="Move the office furniture to the basement")
    assert (answer["unknown"], answer["try"], answer["beware"]) == (True, [], [])
    (near,) = answer["near"]
    assert near == {"key": key, "title": "Renew the lease of the office downtown", "similarity": near["similarity"]}
    assert "near" not in persona("advise", task=near["title"])
    assert persona("report", task="Move the office furniture to the basement", outcome="worked", used=[key])["counted"] == {
        key: ["used", "worked"]
    }


def test_judgements_count_once_for_each_showing_and_the_last_one_counts(persona, http, name):
    (key,) = (persona("remember", content="旅人は苺のタルトが好き")["key"],)
    assert persona("judge", keys=[key, "nope"], verdict="helped")["outcomes"][0]["outcome"] == "not_shown"
    persona("recall", query="苺")
    for verdict in ("helped", "helped", "hurt"):
        answer = persona("judge", keys=[key, "nope"], verdict=verdict)
    assert [one["outcome"] for one in answer["outcomes"]] == ["judged", "not_found"]
    figures = http.get("/api/recall/figures", headers={"X-Persona": name}).json()
    assert figures["verdicts"] == {"hurt": 1}
    assert [memory["key"] for memory in figures["hurt"]] == [key]


def test_stale_advice_is_no_longer_advised(persona, worked, clock):
    key = worked(3)
    clock.now += timedelta(minutes=1)
    persona("advise", task=INVOICES)
    persona("judge", keys=[key], verdict="stale")
    answer = persona("advise", task=INVOICES)
    assert answer["try"] == []
    assert answer["beware"][0]["superseded"] is True


def test_judgements_move_a_hit_and_say_so_and_nothing_changes_where_nobody_judged(persona, name, connect, server):
    other = connect(server, f"{name} unjudged")
    keys = [caller("remember", content=text)["key"] for caller in (persona, other) for text in ("苺のタルトを買う", "苺のジャムを買う")]
    before = persona("recall", query="苺を買う", detail="why")["hits"]
    assert all("judged" not in hit["why"] for hit in before)
    persona("judge", keys=[before[0]["key"]], verdict="hurt")
    after = persona("recall", query="苺を買う", detail="why")["hits"]
    assert after[0]["key"] == before[1]["key"]
    assert -0.1 < after[1]["why"]["judged"] < 0
    assert [hit.get("judged") for hit in after] == [None, "hurt"]
    assert ", judged hurt:" in persona.result("recall", {"query": "苺を買う"}).content[0].text
    untouched = other("recall", query="苺を買う", detail="why")["hits"]
    assert [hit["score"] for hit in untouched] == [hit["score"] for hit in before]
    assert set(keys[2:]) == {hit["key"] for hit in untouched}


def test_a_search_where_nobody_judged_neither_asks_for_weights_again_nor_reads_what_became_of_reports(persona, worked):
    worked(9)
    persona("recall", query="請求書")
    asked = []
    for connection in apsw.connections():
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, asked.append, id="statements")
    assert persona("recall", query="月末の請求書")["hits"]
    for connection in apsw.connections():
        connection.trace_v2(0, None, id="statements")
    assert [event["sql"] for event in asked if "FROM properties" in event["sql"]] == []
    assert [event["stmt_status"]["SQLITE_STMTSTATUS_FULLSCAN_STEP"] for event in asked if "FROM feedback" in event["sql"]] == [0]


def test_weights_are_not_applied_and_taken_back_at_once(http, name):
    answer = http.post("/api/recall/weights", json={"apply": True, "reset": True}, headers={"X-Persona": name})
    assert (answer.status_code, "both true" in answer.text) == (400, True)


def test_the_figures_say_what_is_found_shown_and_used(persona, http, name):
    keys = [persona("remember", content=text)["key"] for text in ("旅人は苺が好き", "妹の名前は花")]
    persona("recall", query="苺")
    persona("recall", query="量子コンピュータ")
    figures = http.get("/api/recall/figures", headers={"X-Persona": name}).json()
    assert (figures["memories"], figures["growth"]) == (2, [{"day": "2025-10-30", "stored": 2}])
    assert figures["searches"] == [{"day": "2025-10-30", "asked": 2, "answered": 1}]
    assert (figures["success"], figures["shown"]) == (0.5, 1)
    assert [memory["key"] for memory in figures["never_shown"]] == keys[1:]


def test_the_tools_of_the_toolset_are_cheap_for_a_model_to_read():
    listed = [tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools_of(["experience"])]
    assert [tool["name"] for tool in listed] == ["advise", "report", "judge"]
    assert estimate_tokens(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))) <= 650


def test_experience_is_shared_in_a_pool_and_its_keys_say_so(serving, tmp_path, connect):
    pools = {"team": {"readers": ["nilou"], "writers": ["dori"]}}
    with serving(tmp_path, toolsets=["core", "experience"], pools=pools) as served:
        dori = connect(served, headers={"X-Persona": "dori", "X-Pool": "team"})
        (key,) = dori("report", task=INVOICES, outcome="worked", steps=STEPS)["made"]
        (advised,) = connect(served, "nilou")("advise", task=INVOICES)["try"]
        assert (advised["key"], advised["steps"]) == (f"{key}@team", STEPS)
        assert connect(served, "dehya")("advise", task=INVOICES)["unknown"] is True
        shared = {"task": INVOICES, "outcome": "worked", "used": [f"{key}@team"]}
        own = connect(served, "dori")
        assert own("report", **shared)["not_counted"] == {f"{key}@team": "it is of a pool: a report with pool 'team' counts there"}
        assert "don't write" in connect(served, "nilou")("report", **shared)["not_counted"][f"{key}@team"]
        assert own("report", **shared, pool="team")["counted"] == {f"{key}@team": ["used", "worked"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("advise", {"task": " "}, "task is empty"),
        ("report", {"task": "x", "outcome": "maybe"}, "worked, failed, partly"),
        ("report", {"task": "x", "outcome": "worked", "severity": 6}, "1 to 5"),
        ("report", {"task": "x", "outcome": "worked", "strategy": "fast"}, "parallel or sequential"),
        ("judge", {"keys": [], "verdict": "hurt"}, "judge takes 1 to 100"),
        ("judge", {"keys": ["a"], "verdict": "bad"}, "helped, hurt, stale"),
    ],
)
def test_what_can_not_be_used_is_refused(persona, tool, arguments, words):
    assert words in persona.refusal(tool, **arguments)


def test_an_experience_of_another_persona_is_never_advised_nor_judged(persona, worked, connect, server, name):
    key = worked()
    other = connect(server, f"{name} other")
    other("remember", content="苺")
    assert other("advise", task=INVOICES)["unknown"] is True
    assert other("judge", keys=[key], verdict="hurt")["outcomes"] == [{"key": key, "outcome": "not_found"}]
    reported = other("report", task=INVOICES, outcome="worked", used=[key])
    assert (list(reported["not_counted"]), reported["near"]) == ([key], [])
    assert persona("advise", task=INVOICES)["try"][0]["tried"] == 1


def test_whom_a_memory_was_shown_is_known_after_a_restart_of_the_server(persona, worked, server, name):
    key = worked()
    persona("advise", task=INVOICES)
    usage = server.runtime.usage
    with server.runtime.personas.writing(name) as opened:
        assert Usage().shown(opened, "", [key]) == {}
        usage.step(opened, server.runtime.clock(), server.runtime.config.current())
        assert list(Usage().shown(opened, "", [key])) == [key]
        assert Usage().shown(opened, "somebody else", [key]) == {}
