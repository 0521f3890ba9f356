"""The chat room in a real browser: talking, allowing, undoing, editing, cancelling, several in one room, and what a hostile model says."""

import itertools
import json
from importlib.resources import files
from urllib.parse import quote

import httpx2
import pytest
from openai_wire import vendor

from memory_mcp.features.chat.web import WebChat

pytestmark = pytest.mark.slow

KEY = "sk-proj-" + "Ab1cD2eF3g" * 6
REMEMBER = {"name": "remember", "arguments": json.dumps({"content": "健太は苺が好き。"})}
RECALL = {"name": "recall", "arguments": json.dumps({"query": "苺"})}
HOSTILE = """<script>window.broken = true</script><img src=x onerror='window.broken = true'>

# 見出し

- **太字** と `code` [悪い](javascript:window.broken=true) ![絵](https://example.com/x.png) [良い](https://example.com/)
- 二つ目

```
<b>no</b>
```

| 食べ物 | 可否 |
|---|:-:|
| **卵** | <b>×</b> |
"""
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def model():
    with vendor() as known:
        yield known


@pytest.fixture(scope="module")
def site(tmp_path_factory, serving, model):
    """The address of a server that runs conversations with the vendor."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", KEY)
        environment.setenv("OPENAI_BASE_URL", model.url)
        environment.delenv("ANTHROPIC_API_KEY", raising=False)
        with serving(tmp_path_factory.mktemp("chat"), parts={"conversing": WebChat()}) as server:
            yield server.url


@pytest.fixture
def asked(model):
    model.steps, model.asked = [], []
    model.gone.clear()
    return model


@pytest.fixture
def page(browser, site, request):
    """A page of a new profile that fails the test at its end if anything was said in the console, or asked for elsewhere."""
    options = {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}, **getattr(request, "param", {})}
    context = browser.new_context(base_url=site, locale="ja-JP", **options)
    page, said, elsewhere, bodies = context.new_page(), [], [], []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: elsewhere.append(asked.url) if not asked.url.startswith(site) else None)
    yield page
    bodies.append(page.content())
    context.close()
    # A turn that was asked for and refused is no failure of the page.
    assert ([text for text in said if "status of 503" not in text], elsewhere) == ([], [])
    assert not [body for body in bodies if KEY in body]


def begin(page, persona):
    page.goto(f"/p/{quote(persona)}/ui/chat")
    with page.expect_navigation():
        page.get_by_role("link", name="新しい会話").click()
    page.get_by_label("モデル").fill("openai:gpt-x")


def say(page, text, until="保存しました。"):
    page.get_by_label("メッセージ").fill(text)
    page.get_by_role("button", name="送信").click()
    if until:
        page.locator("#state", has_text=until).wait_for()


def memories(site, persona):
    found = httpx2.get(f"{site}/api/memories", headers={"X-Persona": quote(persona)}).json()["memories"]
    return [memory["content"] for memory in found]


def verdicts(site, persona):
    return httpx2.get(f"{site}/api/recall/figures", headers={"X-Persona": quote(persona)}).json()["verdicts"]


def texts(page):
    return page.locator(".turn:not([hidden]) .said .words").all_inner_texts()


def test_a_memory_is_stored_after_a_question_shown_and_undone(page, site, asked):
    asked.steps = [REMEMBER, "覚えました。"]
    begin(page, "undo")
    say(page, "健太は苺が好きだよ", until=None)
    question = page.get_by_role("alertdialog")
    question.wait_for()
    assert "健太は苺が好き。" in question.inner_text()
    question.get_by_role("button", name="この会話では許可").click()
    page.locator("#state", has_text="保存しました。").wait_for()
    assert memories(site, "undo") == ["健太は苺が好き。"]
    assert (page.locator("h1").inner_text(), page.title()) == ("健太は苺が好きだよ", "健太は苺が好きだよ · undo · Memory MCP")
    link = page.locator(".stored a")
    assert (link.inner_text(), "/p/undo/ui/memory?key=" in link.get_attribute("href")) == ("健太は苺が好き。", True)
    page.locator(".stored").get_by_role("button", name="取り消す").click()
    page.locator(".stored", has_text="ごみ箱に移しました").wait_for()
    assert memories(site, "undo") == []
    asked.steps = [REMEMBER, RECALL, "苺です。"]
    say(page, "もう一度覚えて")  # it was allowed before
    page.locator(".tool", has_text="recall").locator("summary").click()
    assert "健太は苺が好き。" in page.locator(".tool", has_text="recall").locator("ul a").inner_text()
    assert page.locator(".tool", has_text="recall").locator(".why li").all_inner_texts()[0].split() == ["単語の一致", "1.000"]
    page.locator(".tool", has_text="recall").get_by_role("button", name="役に立たなかった").click()
    page.locator(".tool", has_text="recall").get_by_role("status").filter(has_text="記録しました").wait_for()
    assert verdicts(site, "undo") == {"hurt": 1}
    page.reload()
    page.locator("summary", has_text="思い出した記憶").click()
    page.get_by_role("button", name="情報が古かった").click()
    page.get_by_role("status").filter(has_text="記録しました").wait_for()
    assert verdicts(site, "undo") == {"stale": 1}
    assert page.locator("details[open] li a").all_inner_texts() == ["健太は苺が好き。"]
    assert page.locator(".stored a").last.inner_text() == "健太は苺が好き。"


def test_a_conversation_is_resumed_edited_answered_again_renamed_and_deleted(page, site, asked):
    begin(page, "さくら")
    for text in ("一", "二", "三"):
        say(page, text)
    page.reload()
    assert texts(page) == ["一", "echo: 一", "二", "echo: 二", "三", "echo: 三"]
    second = page.locator(".turn").nth(1)
    second.get_by_role("button", name="書き直す").click()
    say(page, "別の二")
    assert texts(page) == ["一", "echo: 一", "別の二", "echo: 別の二"]
    asked.steps = ["ほかの答え"]
    page.locator(".turn").nth(1).get_by_role("button", name="もう一度答える").click()
    page.get_by_text("ほかの答え").wait_for()
    page.locator("#state", has_text="保存しました。").wait_for()
    page.reload()
    assert texts(page) == ["一", "echo: 一", "別の二", "ほかの答え"]
    page.locator("summary", has_text="題名の変更").click()
    page.get_by_label("題名").fill("数の話")
    with page.expect_navigation():
        page.get_by_role("button", name="名前を変える").click()
    assert page.locator("h1").inner_text() == "数の話"
    page.locator("summary", has_text="題名の変更").click()
    with page.expect_navigation():
        page.get_by_role("button", name="完全に削除").click()
    assert "保存された会話はまだありません。" in page.locator("main").inner_text()


def test_a_turn_is_cancelled_and_one_of_a_page_that_is_left_ends(page, site, asked):
    begin(page, "cancel")
    assert not page.get_by_role("button", name="中止").is_visible()
    asked.steps = [itertools.repeat("…", 20_000)]
    say(page, "長い話をして", until=None)
    page.locator(".assistant .words").wait_for()
    page.get_by_role("button", name="中止").click()
    page.locator("#state", has_text="中止しました").wait_for()
    assert asked.gone.wait(60)
    assert page.get_by_label("メッセージ").input_value() == "長い話をして"
    asked.gone.clear()
    asked.steps = [itertools.repeat("…", 20_000)]
    say(page, "長い話をして", until=None)
    page.locator(".turn:not(.ended) .assistant .words").wait_for()
    page.goto("/p/cancel/ui/chat")
    assert asked.gone.wait(60)
    assert "保存された会話はまだありません。" in page.locator("main").inner_text()


def test_a_conversation_that_went_on_or_was_deleted_in_another_tab_says_so(page, asked):
    begin(page, "tabs")
    say(page, "一")
    other = page.context.new_page()
    other.goto(page.url)
    asked.steps = [REMEMBER, "二つ目の画面", "覚えました。"]
    say(page, "覚えて", until=None)
    page.get_by_role("alertdialog").wait_for()
    say(other, "二")
    page.get_by_role("button", name="許可しない").click()
    page.locator("#state", has_text="この会話は別の画面で先に進んでいます。").wait_for()
    page.reload()
    assert texts(page) == ["一", "echo: 一", "二", "二つ目の画面"]
    page.locator("summary", has_text="題名の変更").click()
    with page.expect_navigation():
        page.get_by_role("button", name="完全に削除").click()
    say(other, "三", until="この会話はもうありません。")
    page.reload()
    assert "保存された会話はまだありません。" in page.locator("main").inner_text()


def test_off_the_record_is_shown_and_nothing_is_kept(page, site, asked):
    begin(page, "secret")
    page.get_by_label("オフレコ").check()
    say(page, "ここだけの話", until="保存していません。")
    assert texts(page) == ["ここだけの話", "echo: ここだけの話"]
    page.goto("/p/secret/ui/chat")
    assert "保存された会話はまだありません。" in page.locator("main").inner_text()


def test_several_personas_are_chosen_and_talk(page, site, asked):
    for persona in ("華", "蘭"):
        httpx2.post(f"{site}/api/memories", json={"content": f"私は{persona}"}, headers={"X-Persona": quote(persona)}).raise_for_status()
    asked.steps = ["華です", "蘭です"]
    begin(page, "華")
    page.locator("summary", has_text="何人かで話す").click()
    page.get_by_label("蘭", exact=True).check()
    page.get_by_label("その場の全員が記憶に残す").check()
    say(page, "こんにちは")
    assert [label.split(" ")[0] for label in page.locator(".said.assistant .label").all_inner_texts()] == ["華", "蘭"]
    assert page.locator(".stored").count() == 2
    page.reload()
    asked.steps = ["蘭だけ"]
    say(page, "蘭は？")
    assert texts(page)[-1] == "蘭だけ"
    page.goto(f"/p/{quote('蘭')}/ui/chat")
    assert "華、蘭" in page.locator("tbody").inner_text()


@pytest.mark.parametrize(
    ("page", "language"),
    [pytest.param({}, "ja", marks=pytest.mark.thorough), ({"color_scheme": "dark", "viewport": {"width": 360, "height": 740}}, "en")],
    indirect=["page"],
)
def test_what_a_model_says_is_markdown_without_html_pictures_or_scripts_and_pages_are_accessible(page, site, asked, language):
    asked.steps = [RECALL, HOSTILE]
    begin(page, "hostile")
    say(page, "<img src=x onerror='window.broken = true'>")
    for reload in (False, True):
        if reload:
            page.reload()
        words = page.locator(".said.assistant .words").last
        assert "<script>window.broken = true</script>" in words.inner_text()
        assert words.locator("li").count() == 2
        assert words.locator("strong").all_inner_texts() == ["見出し", "太字", "卵"]
        assert words.locator("tr").all_inner_texts() == ["食べ物\t可否", "卵\t<b>×</b>"]
        assert words.locator("pre").inner_text() == "<b>no</b>"
        assert [link.get_attribute("href") for link in words.locator("a").all()] == ["https://example.com/"]
        assert page.locator("main img, main script").count() == 0
    for path in (page.url, "/p/hostile/ui/chat", "/p/hostile/ui/chat/one"):
        page.goto(f"{path}{'&' if '?' in path else '?'}lang={language}")
        page.evaluate(AXE)
        found = page.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], path
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), path
        assert page.evaluate("() => window.broken") is None
    page.goto("/ui?lang=ja")


def test_a_failure_is_said_and_the_message_stays_to_be_sent_again(page, site, asked):
    begin(page, "fails")
    page.get_by_label("モデル").fill("anthropic:x")
    page.get_by_label("メッセージ").fill("ねえ")
    with page.expect_response("**/chat/say") as answer:
        page.get_by_role("button", name="送信").click()
    assert answer.value.status == 503
    page.locator("#state.error").wait_for()
    assert page.get_by_label("メッセージ").input_value() == "ねえ"
    page.get_by_label("モデル").fill("openai:gpt-x")
    asked.steps = [REMEMBER]
    say(page, "健太は苺が好き", until=None)
    page.get_by_role("alertdialog").wait_for()
    assert page.locator("#state.error").count() == 0
