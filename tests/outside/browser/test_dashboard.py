"""The dashboard in a real browser: every page in both languages, light and dark, on a phone, by keyboard, without scripts, and under attack."""

import base64
import io
import json
import zipfile
import zlib
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import quote

import httpx2
import pytest
from dashboard_pages import follow, press_until, send, violations
from oauth_person import PlainClient, query_of

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
PERSONA = "さくら"
AT = f"/p/{quote(PERSONA)}/ui"
SCRIPT = "<script>window.broken = true</script><img src=x onerror='window.broken = true'> **太字** [x](javascript:window.broken=true)"
PAGES = (
    "/ui?choose=1",
    f"{AT}/today",
    f"{AT}/today/decide",
    f"{AT}/find?q=健太",
    f"{AT}/memories/new?supersedes=memory_b",
    f"{AT}/ask?q=健太の苺&fusion.session_weight=1",
    f"{AT}/ask?q=健太&fusion.date_boost=9",
    f"{AT}/ask/context?q=健太",
    f"{AT}/people",
    f"{AT}/people/picture",
    f"{AT}/people/one?entity=鎌倉",
    f"{AT}/people/path?source=健太&target=鎌倉",
    f"{AT}/people/twice",
    f"{AT}/people/statistics",
    f"{AT}/house",
    f"{AT}/house/erase",
    f"{AT}/house/import",
    f"{AT}/house/settings",
    f"{AT}/house/tokens",
    f"{AT}/house/log",
    f"{AT}/house/privacy",
    f"{AT}/memories",
    f"{AT}/memories?q=苺&shelf=current",
    f"{AT}/memories?shelf=trash",
    f"{AT}/memories?shelf=nowhere",
    f"{AT}/memories/new",
    f"{AT}/memory?key=memory_b&as_of=2025-10",
    f"{AT}/memory/edit?key=memory_b",
    f"{AT}/memory?key=nobody",
)
LINES = [
    {"key": "memory_a", "content": "健太は横浜に住んでいる。", "tags": ["住所"], "source": "健太", "session_id": "秋"},
    {
        "key": "memory_b",
        "content": "健太は鎌倉に引っ越した。",
        "supersedes": "memory_a",
        "source": "健太",
        "session_id": "秋",
        "state": {"emotion": "嬉しい"},
    },
    {"key": "memory_c", "content": "健太は苺が好き。", "tags": ["食べ物"], "metadata": {"device": "phone"}},
    {"key": "memory_f", "content": "[[健太|Person]]は[[鎌倉|Location]]で働く。", "relations": ["健太 > works_in > 鎌倉"]},
    {"key": "memory_d", "content": SCRIPT},
    {"key": "memory_p", "content": "電話は090-1234-5678、パスワードはsakura2024。"},
    {"entity": "<script>window.broken = true</script>", "type": "Person", "description": SCRIPT},
    {"key": "memory_e", "content": "ごみ箱の話。", "deleted_at": "2025-10-30T01:00:00+00:00"},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory, serving):
    """The address of a server without tokens."""
    with serving(tmp_path_factory.mktemp("site")) as server:
        send(server.url, PERSONA, *LINES)
        yield server.url


@pytest.fixture
def page(browser, site, request):
    """A page of a new profile that fails the test at its end if anything was said in the console."""
    context = browser.new_context(base_url=site, locale="ja-JP", **getattr(request, "param", {}))
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    # A page that was asked for and does not exist is no failure of the page.
    assert not [text for text in said if "status of 4" not in text]


@pytest.mark.parametrize(
    ("page", "language"),
    [
        ({"color_scheme": "light", "viewport": {"width": 1200, "height": 900}}, "ja"),
        ({"color_scheme": "dark", "viewport": {"width": 360, "height": 740}}, "en"),
    ],
    indirect=["page"],
)
def test_every_page_is_accessible_in_both_languages_light_and_dark_on_a_desk_and_on_a_phone(page, language, thorough):
    for number, path in enumerate(PAGES):
        page.goto(f"{path}{'&' if '?' in path else '?'}lang={language}")
        page.locator("#decide[hx-get]").wait_for(state="detached")
        assert page.locator("html").get_attribute("lang") == language
        assert page.title().endswith("Memory MCP")
        if thorough or (language == "ja") == number % 2:  # axe-core looks at each page in one of the two, or, when there is time, in both
            assert violations(page) == [], path
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), path
        assert page.evaluate("() => window.broken") is None, path


def test_the_first_page_keeps_its_title_when_what_to_decide_arrives(page):
    page.goto(f"{AT}/today")
    page.locator("#decide[hx-get]").wait_for(state="detached")
    assert page.title().startswith("今日")


def test_a_memory_is_found_read_and_corrected_by_keyboard_alone(page, site):
    send(site, "keys", {"key": "memory_k", "content": "明日は歯医者。"}, {"key": "memory_l", "content": "苺を買う。"})
    keys = page.keyboard
    page.goto("/p/keys/ui/memories")
    keys.press("Tab")
    keys.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "content"
    keys.press("/")
    keys.insert_text("歯医者")  # at once, so that the page asks once and the focus is not lost to a second answer
    page.locator("#results tbody tr").nth(1).wait_for(state="detached")
    press_until(page, "Tab", "a[href*='key=memory_k']")
    keys.press("Enter")
    page.locator("article.text").wait_for()
    press_until(page, "Tab", "a[href*='/memory/edit']")
    keys.press("Enter")
    page.locator("textarea").wait_for()
    press_until(page, "Tab", "textarea")
    keys.press("Control+End")
    keys.type("午後三時。")
    press_until(page, "Tab", "main button")
    keys.press("Enter")
    page.locator("[role=status]").wait_for()
    assert page.locator("article.text").inner_text() == "明日は歯医者。午後三時。"
    assert page.locator(".diff ins").inner_text() == "午後三時。"


@pytest.mark.parametrize("page", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_memories_are_searched_filtered_paged_forgotten_and_restored(page, site):
    send(
        site,
        "plain",
        *({"key": f"memory_{number:03}", "content": f"記憶{number}", "tags": ["偶数"] if number % 2 == 0 else []} for number in range(60)),
    )
    page.goto("/p/plain/ui/memories")
    assert page.locator("tbody tr").count() == 50
    follow(page, page.locator("a[rel=next]"))
    assert page.locator("tbody tr").count() == 10
    page.locator("summary").click()
    page.locator("input[name=tags]").fill("偶数")
    follow(page, page.locator("details button"))
    assert page.locator("tbody tr").count() == 30
    page.goto("/p/plain/ui/memories")
    page.locator("input[type=search]").fill("記憶17")
    follow(page, page.locator("form#find .bar button"))
    assert page.locator("tbody tr").first.locator("td.text a").first.inner_text() == "記憶17"
    follow(page, page.locator("tbody tr a").first)
    follow(page, page.locator("button", has_text="ごみ箱へ"))
    assert page.locator("h1").inner_text() == "1件をごみ箱に移しました"
    follow(page, page.locator("button", has_text="元に戻す"))
    assert page.locator("h1").inner_text() == "1件を元に戻しました"


def test_a_page_of_memories_is_forgotten_at_once_and_brought_back_by_undo(page, site):
    send(site, "many", *({"content": f"記憶{number}"} for number in range(5)))
    page.goto("/p/many/ui/memories")
    page.locator("[data-select-all]").check()
    follow(page, page.locator("#results button"))
    assert page.locator("h1").inner_text() == "5件をごみ箱に移しました"
    page.goto("/p/many/ui/memories")
    assert page.locator("tbody tr").count() == 0
    page.go_back()
    follow(page, page.locator("main button"))
    assert page.locator("h1").inner_text() == "5件を元に戻しました"
    page.goto("/p/many/ui/memories")
    assert page.locator("tbody tr").count() == 5


def test_a_memory_is_added_by_hand(page):
    page.goto("/p/hand/ui/memories/new")
    page.locator("textarea").fill("来月から早起きする。\n約束。")
    page.locator("main form summary").click()
    page.locator("input[name=tags]").fill("習慣、約束")
    follow(page, page.locator("main button"))
    follow(page, page.locator("main a.button", has_text="記憶を見る"))
    assert page.locator("article.text").inner_text() == "来月から早起きする。\n約束。"
    assert page.locator("dd", has_text="習慣、約束").count() == 1


@pytest.fixture
def lines(tmp_path):
    """A file of 300 long memories, with a line that is broken."""
    rows = [json.dumps({"key": f"k{number}", "content": f"記憶{number} " + "長い話。" * 200}, ensure_ascii=False) for number in range(300)]
    file = tmp_path / "memories.jsonl"
    file.write_text("\n".join([*rows[:250], "{broken", *rows[250:]]), encoding="utf-8")
    return file


def test_a_file_is_tried_and_then_imported_and_says_how_far_it_is_and_what_became_of_it(page, lines):
    for dry_run, before, after in ((True, 0, 0), (False, 0, 300)):
        page.goto("/p/files/ui/house/import")
        page.locator("input[type=file]").set_input_files(lines)
        page.locator("[name=dry_run]").set_checked(dry_run)
        page.locator("main form button").click()
        page.locator("#job [role=status]", has_text="インポートが終わりました").wait_for()
        assert "301 / 301" in page.locator("#job [role=status]").inner_text()
        assert page.locator("#job li", has_text="251行目").count() == 1
        assert violations(page) == []
        page.goto("/p/files/ui/house")
        assert page.locator("dd").first.inner_text() == str(after) if after else page.locator("dl").count() == before


TALK = "[LINE] さくらとのトーク履歴\n\n2024/01/02(火)\n" + "".join(
    f"09:{minute:02}\tさくら\t{text}\n" for minute, text in enumerate(["おはよう", "[スタンプ]", "[投票] どこ？", "また明日"])
)
BAD_DAY = "2024/02/30(金)\n" + "10:00\t健太\tはい\n" * 30


def card(name: str) -> bytes:
    """A picture with the card of a character."""
    text = b"chara\0" + base64.b64encode(json.dumps({"name": name, "description": "灯台守", "first_mes": "やあ"}).encode())
    chunks = [(b"IHDR", (1).to_bytes(4) * 2 + b"\x08\0\0\0\0"), (b"tEXt", text), (b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4) for kind, data in chunks
    )


def docx(text: str) -> bytes:
    """A Word file with this text."""
    office, data = "http://schemas.openxmlformats.org", io.BytesIO()
    document = (
        f'<w:document xmlns:w="{office}/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>'
    )
    related = f'<Relationship Id="r" Type="{office}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
    with zipfile.ZipFile(data, "w") as packed:
        packed.writestr("[Content_Types].xml", f'<Types xmlns="{office}/package/2006/content-types"/>')
        packed.writestr("_rels/.rels", f'<Relationships xmlns="{office}/package/2006/relationships">{related}</Relationships>')
        packed.writestr("word/document.xml", document)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "program", "rows", "examples"),
    [
        (
            "[LINE] さくらとのトーク.txt",
            (TALK + BAD_DAY).encode(),
            "LINE",
            {
                "新規": "2",
                "インポートしなかったもの: スタンプ": "1",
                "インポートしなかったもの: 投票": "1",
                "受け付けなかった行": "30",
            },
            1,
        ),
        ("ミレイ.png", card("ミレイ"), "キャラクターカード", {"新規": "0", "受け付けなかった行": "0"}, 0),
        ("手引き.docx", docx("五月に塗る。"), "文書", {"新規": "1", "受け付けなかった行": "0"}, 0),
    ],
)
def test_what_an_import_recognized_and_what_became_of_it_is_one_table(page, tmp_path, name, content, program, rows, examples):
    (tmp_path / name).write_bytes(content)
    page.goto(f"/p/table-{len(rows)}{examples}{len(content)}/ui/house/import")
    page.locator("input[type=file]").set_input_files(tmp_path / name)
    page.locator("main form button").click()
    page.locator("#job [role=status]", has_text="インポートが終わりました").wait_for()
    assert program in page.locator("#job p", has_text="形式").inner_text()
    shown = [row.inner_text().split("\t") for row in page.locator("#job tr").all()]
    assert rows.items() <= {cells[0]: cells[1] for cells in shown}.items()
    assert page.locator("#job li").count() == examples
    assert violations(page) == []


@pytest.mark.parametrize("page", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_a_file_is_imported_by_pages_that_reload_themselves(page, lines):
    page.goto("/p/plain-files/ui/house/import")
    page.locator("input[type=file]").set_input_files(lines)
    page.locator("main form button").click()
    page.locator("#job [role=status]", has_text="インポートが終わりました").wait_for()
    page.goto("/p/plain-files/ui/house")
    assert page.locator("dd").first.inner_text() == "300"


def test_a_setting_is_found_and_saved_by_keyboard_and_what_is_wrong_is_said_at_its_field(page, site):
    def save(value):
        page.locator("[data-narrow] input").fill("点数より低い" if value == "-1" else "min_score")
        assert page.locator(".setting:visible").count() < 5
        page.locator("[name='min_score']").fill(value)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    page.goto("/p/nilou/ui/house/settings")
    save("-1")
    assert "0 以上" in page.locator(".setting .error").inner_text()
    assert violations(page) == []
    save("0.01")
    assert "min_score" in page.locator("[role=status]").inner_text()
    assert httpx2.get(f"{site}/ready").json()["config_error"] is None
    save("0")


@pytest.mark.parametrize("page", [{"java_script_enabled": False, "viewport": {"width": 360, "height": 740}}], indirect=True)
def test_settings_and_tokens_are_forms_that_need_no_script(page):
    page.goto("/p/nilou/ui/house/settings")
    page.locator("summary", has_text="会話の最初").click()
    page.locator("[name='context.recent']").fill("4")
    follow(page, page.locator(".save button"))
    assert "context.recent" in page.locator("[role=status]").inner_text()
    page.goto("/p/nilou/ui/house/tokens")
    page.locator("main form button").click()
    assert page.locator("h1").inner_text() == "トークン"


def test_stored_markup_is_shown_as_text(page):
    for path in (f"{AT}/memories", f"{AT}/memory?key=memory_d", f"{AT}/memory/edit?key=memory_d"):
        page.goto(path)
        assert SCRIPT in (page.locator("main").inner_text() if "edit" not in path else page.locator("textarea").input_value())
        assert page.evaluate("() => window.broken") is None


def test_scripts_and_styles_that_get_into_a_page_are_not_run(browser, site):
    context = browser.new_context(base_url=site)
    page = context.new_page()
    page.goto(f"{AT}/memories")
    blocked = page.evaluate(
        """async () => {
            const blocked = [];
            document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
            document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.broken = true'><p style='color: red'>x</p>");
            for (const [name, value] of [["textContent", "window.broken = true"], ["src", "http://evil.test/x.js"]]) {
                const script = document.createElement("script");
                script[name] = value;
                document.body.append(script);
            }
            await fetch("http://evil.test/").catch(() => {});
            await new Promise((done) => setTimeout(done, 50));
            return blocked;
        }"""
    )
    assert {"script-src-attr", "script-src-elem", "style-src-attr", "connect-src"} <= set(blocked)
    assert page.evaluate("() => window.broken") is None
    context.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, serving):
    """A server with tokens for two personas: its address and their secrets."""
    with serving(tmp_path_factory.mktemp("guarded")) as server:
        for persona in ("alice", "nilou"):
            send(server.url, persona, {"key": "memory_a", "content": f"{persona}の秘密"})
        secrets = [create_token(server.data, name="", personas=[name], scopes=TOKEN_SCOPES, now=NOON)[1] for name in ("alice", "nilou")]
        yield server.url, *secrets


@pytest.fixture
def signed_in(browser, guarded):
    """signed_in(secret): a page of a browser that has signed in by the form."""
    contexts = []

    def signed_in(secret):
        contexts.append(browser.new_context(base_url=guarded[0], locale="ja-JP"))
        page = contexts[-1].new_page()
        page.goto("/ui")
        assert page.url.endswith("/ui/sign-in?to=%2Fui")
        assert violations(page) == []
        page.locator("input[type=password]").fill(secret)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        return page

    yield signed_in
    for context in contexts:
        context.close()


def test_two_tokens_in_two_browsers_never_see_each_other(guarded, signed_in):
    _, *secrets = guarded
    pages = {name: signed_in(secret) for name, secret in zip(("alice", "nilou"), secrets, strict=True)}
    for name, other in (("alice", "nilou"), ("nilou", "alice")):
        page = pages[name]
        assert f"{name}の秘密" in page.locator("main").inner_text()
        page.locator("#decide[hx-get]").wait_for(state="detached")
        assert violations(page) == []
        for path in ("/ui?choose=1", f"/p/{other}/ui/memories", f"/p/{other}/ui/memories?q=秘密", f"/p/{other}/ui/memory?key=memory_a"):
            page.goto(path)
            assert f"{other}の秘密" not in page.content()
        assert page.evaluate("() => document.cookie") == ""
        follow(page, page.locator("footer button"))
        page.goto(f"/p/{name}/ui/memories")
        assert "/ui/sign-in" in page.url


def test_a_token_is_made_in_the_browser_shown_once_and_lets_its_holder_see_its_persona_alone(guarded, signed_in):
    _, alice, _ = guarded
    page = signed_in(alice)
    page.goto("/p/alice/ui/house/tokens")
    assert page.locator("tbody tr").count() == 1
    page.locator("[name=name]").fill("読むだけ")
    page.locator("[name=personas]").fill("alice")
    page.locator("[value=write]").uncheck()
    page.locator("[name=own_token]").fill(alice)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert violations(page) == []
    secret = page.locator("input[readonly]").input_value()
    page.goto("/p/alice/ui/house/tokens")
    assert secret not in page.content()
    assert page.locator("tbody tr").count() == 2
    reader = signed_in(secret)
    reader.goto("/p/alice/ui/memories")
    assert "aliceの秘密" in reader.locator("main").inner_text()
    assert reader.locator("main form[method=post]").count() == 0
    follow(page, page.locator("tr", has_text="読むだけ").locator("button"))
    reader.goto("/p/alice/ui/memories")
    assert "/ui/sign-in" in reader.url


@pytest.mark.parametrize("origin", ["http://evil.test", "http://localhost:1"])
def test_a_page_of_another_site_can_neither_send_a_form_nor_show_a_page_in_a_frame(guarded, signed_in, origin):
    url, secret, _ = guarded
    page = signed_in(secret)
    key = page.locator("input[name=form_key]").first.get_attribute("value")
    fields = f"<input name=form_key value={key}><input name=key value=memory_a>"
    attack = f"<form method=post action='{url}/p/alice/ui/memories/forget'>{fields}<button>x</button></form>"
    page.route(f"{origin}/*", lambda route: route.fulfill(body=f"<!doctype html>{attack}", content_type="text/html"))
    page.goto(f"{origin}/")
    with page.expect_response(lambda response: response.url.endswith("/forget")) as answer:
        page.locator("button").click()
    assert answer.value.status in (303, 403)
    page.goto(f"{origin}/")
    page.evaluate("url => { const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame); }", f"{url}/ui")
    page.wait_for_load_state()
    assert all("秘密" not in frame.content() for frame in page.frames)
    page.goto(f"{url}/p/alice/ui/memories")
    assert "aliceの秘密" in page.locator("main").inner_text()


@pytest.mark.parametrize("language", ["ja", "en"])
def test_a_person_signs_in_and_grants_a_client_what_it_asks_and_is_sent_back(browser, serving, tmp_path, language):
    with serving(tmp_path) as server:
        server.configure(oauth={"authorization_server": "built_in", "public_url": server.url})
        secret = create_token(server.data, name="", personas=[PERSONA, "nilou"], scopes=TOKEN_SCOPES, now=NOON)[1]
        with closing(PlainClient(server.url)) as client:
            context = browser.new_context()
            page, told = context.new_page(), []
            # Nothing listens at the client's address: what it is told is in the address that the browser asks for.
            context.route("http://127.0.0.1:53682/**", lambda route: (told.append(route.request.url), route.fulfill(body="done")))
            page.goto(f"{client.address()}&lang={language}")
            page.locator('input[name="token"]').fill(secret)
            page.keyboard.press("Enter")
            page.locator('input[name="personas"]').first.wait_for()
            assert page.locator("html").get_attribute("lang") == language
            assert violations(page) == []
            page.locator(f'input[value="{PERSONA}"]').check()
            page.locator('button[value="grant"]').click()
            page.wait_for_url("http://127.0.0.1:53682/**")
            assert client.exchanged(query_of(told[0])["code"]).json()["scope"] == "read write"
            context.close()
