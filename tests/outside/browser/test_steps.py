"""How many steps the commonest changes take from the first page, by keyboard alone and by touch on a phone."""

import httpx2
import pytest
from dashboard_pages import press_until, send, violations

pytestmark = pytest.mark.slow

MOST = 4
CONTENT = "健太は横浜に住んでいる。"
TARGET = 40  # pixels: what a finger hits


@pytest.fixture(scope="module")
def site(tmp_path_factory, serving):
    """The address of a server without tokens."""
    with serving(tmp_path_factory.mktemp("site")) as server:
        yield server.url


class Keyboard:
    """Somebody who has no mouse. A step is a key that does something, or what is written; to move to a place is none."""

    def __init__(self, page):
        self.page, self.steps = page, 0

    def press(self, selector):
        press_until(self.page, "Tab", selector)
        self.steps += 1
        self.page.keyboard.press("Enter")

    def write(self, _selector, text):
        self.steps += 1
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)


class Finger:
    """Somebody with a phone. A step is a touch, or what is written."""

    def __init__(self, page):
        self.page, self.steps = page, 0

    def press(self, selector):
        touched = self.page.locator(selector).first
        touched.scroll_into_view_if_needed()
        box = touched.bounding_box()
        assert box["height"] >= TARGET or selector.startswith("main a.clamp"), (selector, box)
        self.steps += 1
        touched.tap()

    def write(self, selector, text):
        self.steps += 1
        self.page.locator(selector).first.fill(text)


@pytest.fixture(params=[Keyboard, Finger])
def hands(request, browser, site):
    """hands("name"): somebody at the first page of that persona, which has one memory."""
    touch = {"has_touch": True, "is_mobile": True, "viewport": {"width": 390, "height": 844}}
    context = browser.new_context(base_url=site, locale="ja-JP", **(touch if request.param is Finger else {}))
    context.add_init_script("window.started = true")

    def hands(persona):
        send(site, persona, {"key": "a", "content": CONTENT, "source": "健太"})
        page = context.new_page()
        page.goto(f"/p/{persona}/ui/today")
        page.locator("#decide[hx-get]").wait_for(state="detached")
        return request.param(page), page

    hands.kind = request.param.__name__.lower()
    yield hands
    context.close()


MEMORY = "main a.clamp[href*='key=a']"


def test_a_fact_is_corrected(hands):
    who, page = hands(f"correct-{hands.kind}")
    who.press(MEMORY)
    page.locator("article.text").wait_for()
    who.press("main a[href*='/memory/edit']")
    page.locator("textarea").wait_for()
    who.write("textarea", "健太は川崎に住んでいる。")
    who.press("main form button")
    page.locator("[role=status]").wait_for()
    assert page.locator("article.text").inner_text() == "健太は川崎に住んでいる。"
    assert who.steps <= MOST


def test_a_fact_that_has_changed_is_replaced(hands, site):
    persona = f"replace-{hands.kind}"
    who, page = hands(persona)
    who.press(MEMORY)
    page.locator("article.text").wait_for()
    who.press("main a[href*='supersedes=a']")
    page.locator("textarea").wait_for()
    who.write("textarea", "健太は鎌倉に引っ越した。")
    who.press("main form button")
    page.locator("h1", has_text="置き換えました").wait_for()
    assert who.steps <= MOST
    found = httpx2.get(f"{site}/api/memories", headers={"X-Persona": persona}).json()["memories"]
    assert [memory["content"] for memory in found] == ["健太は鎌倉に引っ越した。"]
    page.goto(f"/p/{persona}/ui/memory?key=a")
    assert "別の記憶に置き換えられています" in page.locator("main").inner_text()


def test_why_a_memory_is_found_is_seen(hands):
    who, page = hands(f"why-{hands.kind}")
    who.press("nav.rooms a[href$='/ask']")
    page.locator("main input[type=search]").wait_for()
    if isinstance(who, Keyboard):
        page.keyboard.press("/")
    who.write("main input[type=search]", "健太の家")
    who.steps += 1
    page.keyboard.press("Enter")
    page.locator(".hit .why meter").first.wait_for()
    assert CONTENT in page.locator(".hit").first.inner_text()
    assert who.steps <= MOST


def test_what_was_forgotten_comes_back(hands, site):
    persona = f"undo-{hands.kind}"
    who, page = hands(persona)
    who.press(MEMORY)
    page.locator("article.text").wait_for()
    who.press("main form[action$='/memories/forget'] button")
    page.locator("h1", has_text="ごみ箱に移しました").wait_for()
    who.press("main form[action$='/memories/restore'] button")
    page.locator("h1", has_text="元に戻しました").wait_for()
    assert who.steps <= MOST
    assert httpx2.get(f"{site}/api/memory?key=a", headers={"X-Persona": persona}).json()["memory"].get("deleted_at") is None


def test_all_memories_are_exported(hands):
    who, page = hands(f"export-{hands.kind}")
    who.press("nav.rooms a[href$='/house']")
    page.locator("#export").wait_for()
    with page.expect_download() as download:
        who.press("#export button")
    assert CONTENT in download.value.path().read_text(encoding="utf-8")
    assert who.steps <= MOST


@pytest.fixture
def page(browser, site):
    """A page of a new profile on a wide screen that fails the test at its end if anything was said in the console."""
    context = browser.new_context(base_url=site, locale="ja-JP", viewport={"width": 1400, "height": 900})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert said == []


def test_the_list_is_read_selected_forgotten_and_undone_by_single_keys(page, site):
    send(
        site, "single", *({"key": f"k{number}", "content": f"記憶{number}", "created_at": f"2025-10-0{9 - number}"} for number in range(4))
    )
    page.goto("/p/single/ui/memories")
    page.keyboard.press("j")
    page.locator("#preview article", has_text="記憶0").wait_for()
    page.keyboard.press("j")
    page.locator("#preview article", has_text="記憶1").wait_for()
    assert violations(page) == []
    page.keyboard.press("#")
    page.locator(".toast", has_text="1件をごみ箱に移しました").wait_for()
    assert page.locator("tbody tr:visible").count() == 3
    page.keyboard.press("u")
    page.locator(".toast", has_text="元に戻しました").wait_for()
    assert page.locator("tbody tr:visible").count() == 4
    for key in ("x", "j", "x", "#"):
        page.keyboard.press(key)
    page.locator(".toast", has_text="2件をごみ箱に移しました").wait_for()
    page.locator(".toast button").click()
    page.locator(".toast", has_text="元に戻しました").wait_for()
    for key in ("k", "k", "k", "r"):
        page.keyboard.press(key)
    page.locator(".was", has_text="記憶0").wait_for()


def test_everything_is_found_from_everywhere(page, site):
    send(site, "seek", {"key": "a", "content": "[[美咲|Person]]は京都の大学に通う。"})
    page.goto("/p/seek/ui/house")
    page.keyboard.press("/")
    page.locator("#palette .found a").first.wait_for()
    page.keyboard.type("美咲")
    page.locator("#palette .found a", has_text="京都の大学").wait_for()
    assert page.locator("#palette .found a", has_text="美咲").last.get_attribute("href").startswith("/p/seek/ui/people/one")
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("article.text", has_text="美咲").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("バックアップ")
    page.keyboard.press("Enter")  # before the answer is there
    page.locator("#backups").wait_for()


def test_somebody_new_looks_around_with_sample_data_and_throws_it_away(page, site):
    page.goto("/p/nobody/ui/today")
    assert page.locator("#connect-line").inner_text() == "memory-mcp connect --client claude-code --persona nobody"
    assert violations(page) == []
    page.locator("form[action$='/sample'] button").click()
    page.locator(".plans li", has_text="ピアノの発表会").wait_for()
    assert page.url.endswith("/p/sample/ui/today")
    assert "あと6日" in page.locator(".plans").inner_text()
    page.locator("#decide[hx-get]").wait_for(state="detached")
    assert violations(page) == []
    page.locator("form[action$='/sample/discard'] button").click()
    page.locator("h1", has_text="ペルソナを選ぶ").wait_for()
    names = [persona["name"] for persona in httpx2.get(f"{site}/api/personas").json()["personas"]]
    assert not {"sample", "nobody"} & set(names)


def test_the_note_of_an_open_server_is_closed_once(page):
    page.goto("/p/nobody/ui/memories")
    page.locator(".banner a").click()
    page.wait_for_load_state()
    assert page.locator(".banner").count() == 0
    page.goto("/p/nobody/ui/ask")
    assert page.locator(".banner").count() == 0
