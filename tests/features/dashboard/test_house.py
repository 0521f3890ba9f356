"""The rooms of the house over HTTP: tokens and what they may do there."""

import html
import json
import re
import ssl
from contextlib import ExitStack
from datetime import UTC, datetime

import httpx2
import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.feedback import set_own_weights
from memory_mcp.store.files.access_tokens import create_token, read_tokens

pytestmark = pytest.mark.slow  # a server for each test

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
TLS = ssl.create_default_context()


@pytest.fixture
def token(own_server):
    """token("nilou", scopes=…): the secret of a new token; no name means every persona."""

    def token(*personas, scopes=TOKEN_SCOPES):
        return create_token(own_server.data, name="", personas=personas or None, scopes=scopes, now=NOON)[1]

    return token


class Browser:
    """A browser that looks at one persona: pages as text without markup, and forms with the key of their page."""

    def __init__(self, client, persona="nilou"):
        self.client, self.at = client, f"/p/{persona}/ui"

    def sign_in(self, secret):
        page = self.client.get("/ui/sign-in")
        self.client.post("/ui/sign-in", data={"form_key": key_of(page), "token": secret})
        return self

    def show(self, path):
        answer = self.client.get(f"{self.at}/{path}", follow_redirects=True)
        return answer.status_code, text_of(answer)

    def submit(self, path, page="memories/new", **fields):
        key = key_of(self.client.get(f"{self.at}/{page}"))
        answer = self.client.post(f"{self.at}/{path}", data={"form_key": key, **fields}, follow_redirects=True)
        return answer.status_code, text_of(answer)


def key_of(page):
    return re.search(r'name="form_key" value="([0-9a-f]+)"', page.text)[1]


def text_of(answer):
    visible = re.sub(r'<input [^>]*?value="([^"]*)"[^>]*>', r" \1 ", answer.text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", visible)).split())


@pytest.fixture
def browser(own_server):
    """browser("ja"): a new browser at the server of this test."""
    with ExitStack() as stack:

        def browser(language="en"):
            headers = {"Accept-Language": language, "Accept": "text/html"}
            return Browser(stack.enter_context(httpx2.Client(base_url=own_server.url, headers=headers, verify=TLS)))

        yield browser


LINE = '{"key": "a", "content": "苺が好き。"}\\n'.encode()
ALL = {"all_personas": "true", "scopes": list(TOKEN_SCOPES)}


def test_the_first_token_is_made_knowingly_and_signs_the_browser_in(own_server, browser):
    first, other = browser(), browser()
    assert "This is the first token" in first.show("house/tokens")[1]
    status, page = first.submit("house/tokens", **ALL)
    assert status == 400
    assert "every call without a token is refused" in page
    assert read_tokens(own_server.data) is None
    status, page = first.submit("house/tokens", **ALL, turn_on="true")
    secret = re.search(r"mmcp_\w+", page)[0]
    assert "This browser is signed in with it" in page
    assert "everybody on this machine" not in page
    assert first.show("house/tokens")[0] == 200
    assert secret not in first.show("house/tokens")[1]
    assert "Sign in" in other.show("house/tokens")[1]
    assert secret not in (own_server.data / "tokens.json").read_text(encoding="utf-8")


def test_a_token_is_made_with_ones_own_token_alone_so_that_a_stolen_cookie_makes_none(own_server, browser, token):
    own = token()
    visitor = browser().sign_in(own)
    for shown in ("", "mmcp_x", token()):
        status, page = visitor.submit("house/tokens", **ALL, own_token=shown)
        assert (status, "not the token that you signed in with" in page) == (403, True)
    assert len(read_tokens(own_server.data)) == 2
    status, page = visitor.submit("house/tokens", personas="nilou、さくら", scopes=["read"], name="VS Code", own_token=own)
    made = browser().sign_in(re.search(r"mmcp_\w+", page)[0])
    assert status == 200
    assert made.show("house/tokens")[0] == 403
    assert made.show("memories")[0] == 200
    assert "VS Code" in visitor.show("house/tokens")[1]


def test_a_token_of_one_persona_is_offered_and_gets_no_more_than_it_has(own_server, browser, token):
    own, foreign = token("nilou", scopes=["read", "admin"]), token("alice")
    visitor = browser().sign_in(own)
    page = visitor.show("house/tokens")[1]
    assert foreign.split("_")[1] not in page
    assert "all personas" not in page
    assert "delete: move to the trash" not in page
    for sent in (ALL, {"personas": "alice", "scopes": ["read"]}, {"personas": "nilou", "scopes": ["delete"]}):
        assert visitor.submit("house/tokens", **sent, own_token=own)[0] == 403
    assert len(read_tokens(own_server.data)) == 2


def test_revoking_a_token_ends_the_sessions_that_it_began(browser, token):
    admin, other = token(), token("nilou")
    boss, guest = browser().sign_in(admin), browser().sign_in(other)
    assert guest.show("memories")[0] == 200
    _, page = boss.submit("house/tokens/revoke", id=other.split("_")[1])
    assert f"Token {other.split('_')[1]} is revoked" in page
    assert "Sign in" in guest.show("memories")[1]
    status, page = boss.submit("house/tokens/revoke", id=admin.split("_")[1])
    assert (status, "nobody could call the server any more" in page) == (400, True)
    assert boss.show("memories")[0] == 200


def test_a_token_without_admin_has_no_room_of_tokens(browser, token):
    guest = browser().sign_in(token("nilou", scopes=["read", "write", "delete", "export"]))
    assert "Tokens" not in guest.show("house")[1]
    assert guest.show("house/tokens")[0] == 403


ENGLISH_SENTENCE = re.compile(r"\b(?:is|are|was|has|can't|no) [a-z]+ [a-z]+")


@pytest.mark.parametrize(
    ("path", "page", "fields"),
    [
        ("house/tokens", "house/tokens", {**ALL, "name": "x" * 101, "turn_on": "true"}),
        ("house/tokens", "house/tokens", {"turn_on": "true", "all_personas": "true"}),
        ("house/tokens", "house/tokens", {**ALL, "expires": "そのうち", "turn_on": "true"}),
        ("house/rename", "memories/new", {"to": "nilou"}),
        ("house/merge", "memories/new", {"into": "だれか"}),
        ("house/erase", "memories/new", {"confirm": "ちがう"}),
        ("memories/new", "memories/new", {"content": "苺", "occurred_at": "そのうち", "kind": "fact"}),
        ("memories/new", "memories/new", {"content": "苺", "importance": "7", "kind": "fact"}),
        ("memory/edit", "memories/new", {"key": "a", "revision": "1", "expires_at": "いつか"}),
        ("memory/version", "memories/new", {"key": "a", "revision": "9"}),
        ("memories/restore", "memories/new", {"key": "nobody"}),
        ("memories/erase", "memories/new", {"key": "a", "confirm": "x"}),
        ("house/settings", "house/settings", {"min_score": "-1"}),
        ("people/merge", "memories/new", {"entity": "だれか", "into": "それか"}),
    ],
)
def test_refusals_of_forms_are_in_japanese_on_japanese_pages(own_http, browser, path, page, fields):
    own_http.post("/api/import", content=LINE, headers={"X-Persona": "nilou"})
    _, text = browser("ja").submit(path, page=page, **fields)
    assert re.search("[ぁ-ん]", text)
    assert not ENGLISH_SENTENCE.search(text.replace("VS Code", "")), text


@pytest.mark.parametrize(
    "path",
    [
        "memory?key=nobody",
        "memories?date_range=そのうち",
        "ask?q=苺&top_k=0",
        "people/one?entity=だれか",
        "memories?q=苺&privacy_level=secret",
    ],
)
def test_refusals_of_pages_are_in_japanese_on_japanese_pages(own_http, browser, path):
    own_http.post("/api/import", content=LINE, headers={"X-Persona": "nilou"})
    _, text = browser("ja").show(path)
    assert not ENGLISH_SENTENCE.search(text), text


@pytest.fixture
def settings(own_server, browser):
    """A browser in the room of settings; settings.save(**fields) sends the form with these fields changed."""

    class Room(Browser):
        def save(self, **changed):
            return self.submit("house/settings", page="house/settings", **{**self.form(), **changed})

        def form(self):
            page = self.client.get(f"{self.at}/house/settings").text
            fields = dict(re.findall(r'<input [^>]*?name="([\w.]+)" value="([^"]*)"', page))
            for name, options in re.findall(r'<select name="([\w.]+)".*?>(.*?)</select>', page, re.DOTALL):
                fields[name] = (
                    re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', options).expand(r"\1")
                    or re.search(r"selected>([^<]*)", options)[1]
                )
            fields["toolsets"] = re.findall(r'name="toolsets" value="(\w+)" checked', page)
            return {name: html.unescape(value) if isinstance(value, str) else value for name, value in fields.items() if name != "form_key"}

    return Room(browser().client)


def test_a_form_that_changes_nothing_writes_nothing(own_server, settings):
    before = own_server.config.read_text(encoding="utf-8")
    assert "Nothing was changed" in settings.save()[1]
    assert own_server.config.read_text(encoding="utf-8") == before


def test_a_setting_is_changed_in_the_browser_and_in_force_at_once(own_server, settings):
    changed = {
        "fusion.date_boost": "0.5",
        "timezone": "Asia/Seoul",
        "retention.keep_tags": "大事、keep",
        "retention.trash_days": "",
        "backup.enabled": "true",
        "privacy.email": "redact",
        "min_scores": '{"a": 0.1}',
        "toolsets": ["", "core", "graph"],
    }
    status, page = settings.save(**changed)
    assert status == 200
    assert all(key in page.partition("Saved. Changed:")[2] for key in changed)
    assert "Wait for a restart toolsets" in page
    now = own_server.runtime.config.current()
    assert (now.fusion.date_boost, now.timezone, now.backup.enabled, now.privacy.email) == (0.5, "Asia/Seoul", True, "redact")
    assert (now.retention.keep_tags, now.retention.trash_days, now.min_scores) == (["大事", "keep"], None, {"a": 0.1})
    settings.save(**{"fusion.date_boost": "1"})
    assert "date_boost" not in own_server.config.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("fusion.date_boost", "3", "less than or equal to 2"),
        ("fusion.date_boost", "many", "a number, 0 or more, at most 2"),
        ("fusion.date_boost", "", "a number, 0 or more, at most 2"),
        ("timezone", "Mars", "an IANA time zone"),
        ("min_scores", "[", "a JSON object"),
    ],
)
def test_a_value_that_is_not_allowed_is_said_at_its_field_and_nothing_is_saved(own_server, settings, key, value, why):
    before = own_server.config.read_text(encoding="utf-8")
    status, page = settings.save(**{key: value, "min_score": "0.3"})
    assert status == 400
    assert why in page
    assert "Nothing was saved" in page
    assert own_server.config.read_text(encoding="utf-8") == before


def test_a_field_that_was_not_offered_is_not_taken(own_server, settings):
    before = own_server.config.read_text(encoding="utf-8")
    settings.save(
        **{"llm.chat_class": "os:system", "embeddings_class": "os:system", "allow_anonymous": "true", "backup.directory": "elsewhere"}
    )
    assert own_server.config.read_text(encoding="utf-8") == before


def test_settings_changed_meanwhile_are_not_overwritten(own_server, settings):
    form = settings.form()
    own_server.configure(min_score=0.2)
    status, page = settings.submit("house/settings", page="house/settings", **{**form, "min_score": "0.4"})
    assert (status, "was changed meanwhile" in page) == (400, True)
    assert own_server.runtime.config.current().min_score == 0.2


def test_only_a_token_for_all_personas_has_a_room_of_settings(browser, token):
    some, everyone = browser().sign_in(token("nilou")), browser().sign_in(token())
    assert some.show("house/settings")[0] == 403
    assert "Settings" not in some.show("house")[1]
    assert everyone.show("house/settings")[0] == 200


def test_values_that_were_tried_are_kept_by_a_button(own_server, browser, token):
    visitor = browser()
    sent = {"q": "苺", "fusion.speaker_boost": "0.5", "fusion.dense_weight": "", "min_score": "0"}
    status, page = visitor.submit("ask/save", **sent)
    assert (status, "Saved. Changed: fusion.speaker_boost" in page) == (200, True)
    assert own_server.runtime.config.current().fusion.speaker_boost == 0.5
    assert visitor.submit("ask/save", **{**sent, "min_score": "-1"})[0] == 400
    guest = browser().sign_in(token("nilou"))
    assert "Save to config.json" not in guest.show("ask?q=苺&min_score=0.1")[1]
    assert guest.submit("ask/save", **sent)[0] == 403
    assert "Save to config.json" in browser().sign_in(token()).show("ask?q=苺&min_score=0.1")[1]


def test_a_persona_is_asked_with_the_weights_of_its_own_also_beside_other_settings(own_server, own_http, browser):
    lines = [
        {"key": "a", "content": "[[健太|Person]]は[[美咲|Person]]の兄。", "relations": ["健太 > sibling_of > 美咲"]},
        {"key": "b", "content": "美咲は桃が好き。"},
    ]
    own_http.post("/api/import", content="\n".join(map(json.dumps, lines)).encode(), headers={"X-Persona": "nilou"})
    with own_server.runtime.personas.writing("nilou") as persona:
        persona.database.write(lambda connection: set_own_weights(connection, {"graph_weight": 0.9}))
    page = browser().show("ask?q=健太の兄の桃&fusion.speaker_boost=0")[1]
    assert "fusion.graph_weight 0.9 now 0.9" in page
    in_force, tried = (re.findall(r"(?<!min_)score ([\d.]+)", part) for part in page.split("With the values that you try"))
    assert in_force == tried != []


def test_settings_are_explained_in_japanese(browser):
    page = browser("ja").show("house/settings")[1]
    assert "ごみ箱の記憶を完全に消去するまでの日数" in page
    assert "使える値" in page


def test_the_log_shows_what_was_done_by_whom_and_to_an_admin_of_all_personas_what_was_refused(own_server, browser, token):
    one, everyone = browser().sign_in(token("nilou")), browser("ja").sign_in(token())
    one.submit("memories/new", content="苺が好き。", kind="fact", privacy_level="internal")
    one.show("house/settings")
    page = one.show("house/log")[1]
    assert "stored 苺が好き。" in page
    assert "dashboard" in page
    assert "Refused calls" not in page
    page = everyone.show("house/log")[1]
    assert "呼び出しを拒否: トークンの権限外" in page
    assert "この画面" in page
    blind = browser().sign_in(token("nilou", scopes=["admin"]))
    page = blind.show("house/log")[1]
    assert re.search(r"stored [a-z]{2}\d{3}[a-z]{2}\d{3} ", page)
    assert "苺" not in page


def test_the_log_says_nothing_of_what_was_erased_but_its_key(own_http, browser):
    own_http.post("/api/import", content=LINE, headers={"X-Persona": "nilou"})
    visitor = browser()
    visitor.submit("memories/forget", key="a")
    form = visitor.client.post(
        f"{visitor.at}/memories/erase", data={"form_key": key_of(visitor.client.get(f"{visitor.at}/memories/new")), "key": "a"}
    )
    visitor.submit("memories/erase", key="a", confirm=re.search(r'name="confirm" value="(\w+)"', form.text)[1])
    page = visitor.show("house/log")[1]
    assert "erased for good" in page
    assert "苺" not in page
    assert "memory?key=a" not in visitor.client.get(f"{visitor.at}/house/log").text


def test_private_data_are_shown_masked_and_a_rule_is_applied_by_a_button(own_server, browser):
    visitor = browser()
    own_server.configure(privacy={"credit_card": "off"})
    card = "4242 4242 4242 4242"
    visitor.submit("memories/new", content=f"カードは{card}。", kind="fact", privacy_level="internal")
    own_server.configure()
    page = visitor.show("house/privacy")[1]
    assert "42…" in page
    assert card not in page
    key = re.search(r"[a-z]{2}\d{3}[a-z]{2}\d{3}", page)[0]
    assert "Stored again under the rules of today" in visitor.submit("house/privacy", page="house/privacy", key=key)[1]
    assert "[REDACTED_CREDIT_CARD]" in visitor.show(f"memory?key={key}")[1]
    assert "replaced" in visitor.show("house/privacy")[1]


LINE = '{"key": "a", "content": "苺が好き。"}\n'.encode()


def upload(visitor, content=LINE, name="a.jsonl", headers=None, **fields):
    """Sends the form of imports with a file."""
    key = key_of(visitor.client.get(f"{visitor.at}/house/import"))
    return visitor.client.post(
        f"{visitor.at}/house/import", data={"form_key": key, **fields}, files={"file": (name, content)}, headers=headers or {}
    )


def test_an_uploaded_file_is_imported_and_its_page_says_what_became_of_it(browser):
    visitor = browser()
    place = upload(visitor, format="auto", on_known="").headers["location"]
    while "is being" in (page := text_of(visitor.client.get(place))) or "waits" in page:
        pass
    assert "The import is done. 1 of 1" in page
    assert "苺が好き" in visitor.show("memory?key=a")[1]
    assert "a.jsonl" in visitor.show("house/import")[1]


@pytest.mark.parametrize(
    ("fields", "headers"),
    [({"form_key": "0" * 64}, {}), ({"form_key": ""}, {}), ({}, {"Origin": "http://evil.test"}), ({}, {"Sec-Fetch-Site": "same-site"})],
)
def test_a_file_that_no_page_of_ours_has_sent_is_not_imported(own_server, browser, fields, headers):
    visitor = browser()
    assert upload(visitor, headers=headers, **fields).status_code == 403
    assert not (own_server.data / ".imports").exists()
    assert visitor.client.get("/api/personas").json() == {"personas": []}


def test_a_file_is_not_imported_without_the_right_to_write(own_server, browser, token):
    visitor = browser().sign_in(token("nilou", scopes=["read"]))
    key = key_of(visitor.client.get(f"{visitor.at}/memories"))
    answer = visitor.client.post(f"{visitor.at}/house/import", data={"form_key": key}, files={"file": ("a.jsonl", LINE)})
    assert answer.status_code == 403
    assert visitor.show("house/import")[0] == 403
    assert not (own_server.data / ".imports").exists()


def test_a_form_of_many_parts_is_refused(browser):
    visitor = browser()
    key = key_of(visitor.client.get(f"{visitor.at}/house/import"))
    files = [("file", (f"{number}.jsonl", LINE)) for number in range(3)]
    answer = visitor.client.post(f"{visitor.at}/house/import", data={"form_key": key}, files=files)
    assert answer.status_code == 400
    assert "the form can't be read" in text_of(answer)


def test_a_memory_in_the_trash_is_erased_for_good_after_a_look_at_what_remains(own_http, browser):
    own_http.post(
        "/api/import", content=LINE + LINE.replace(b'"a"', b'"b"').replace("苺".encode(), "桃".encode()), headers={"X-Persona": "nilou"}
    )
    visitor = browser()
    visitor.submit("memories/forget", key="a")
    page = visitor.submit("memories/erase", key=["a", "b"])[1]
    assert "苺が好き。 is erased" in page
    assert "b is not in the trash" in page
    assert "copies that somebody made" in page
    assert "苺が好き" in visitor.show("memory?key=a")[1]
    form = visitor.client.post(
        f"{visitor.at}/memories/erase", data={"form_key": key_of(visitor.client.get(f"{visitor.at}/memories/new")), "key": "a"}
    )
    code = re.search(r'name="confirm" value="(\w+)"', form.text)[1]
    assert visitor.submit("memories/erase", key=["a", "b"], confirm="0" * 8)[0] == 400
    assert "Erased" in visitor.submit("memories/erase", key="a", confirm=code)[1]
    assert visitor.show("memory?key=a")[0] == 404
    assert visitor.show("memory?key=b")[0] == 200


def test_only_who_may_erase_is_offered_to(own_http, browser, token):
    own_http.post("/api/import", content=LINE, headers={"X-Persona": "nilou"})
    everything, some = token("nilou"), token("nilou", scopes=["read", "write", "delete"])
    boss, guest = browser().sign_in(everything), browser().sign_in(some)
    boss.submit("memories/forget", key="a")
    for visitor, may in ((boss, True), (guest, False)):
        for path in ("memory?key=a", "memories?shelf=trash"):
            assert ("for good" in visitor.show(path)[1]) is may
    assert guest.submit("memories/erase", key="a")[0] == 403


def test_why_two_may_be_one_and_why_there_is_no_path_is_told_in_japanese(own_http, browser):
    rows = ({"content": "[[花子|Person]]と話した。"}, {"content": "[[ハナコ|Person]]が来た。"}, {"content": "[[健太|Person]]は元気。"})
    own_http.post("/api/import", content="".join(json.dumps(row) + "\n" for row in rows).encode(), headers={"X-Persona": "nilou"})
    visitor = browser("ja")
    for path in ("people/twice", "people/path?source=花子&target=健太"):
        text = visitor.show(path)[1]
        assert not ENGLISH_SENTENCE.search(text), text
    assert "つながりがありません" in visitor.show("people/path?source=花子&target=健太")[1]


def test_a_memory_gets_a_time_to_expire_and_loses_it_in_the_form(own_http, browser, token):
    own_http.post("/api/import", content=LINE, headers={"X-Persona": "nilou"})
    visitor = browser()
    assert "Saved." in visitor.submit("memory/edit", key="a", revision="1", expires_at="30d")[1]
    assert "Expires (not found from then on) Nov 29" in visitor.show("memory?key=a")[1]
    page = visitor.show("memory/edit?key=a")[1]
    assert "2025-11-29" in page
    revision = re.search(r"Revision (\d+) Key", visitor.show("memory?key=a")[1])[1]
    status, page = visitor.submit("memory/edit", key="a", revision=revision, expires_at="someday", content="苺がとても好き。")
    assert (status, "苺がとても好き。" in page) == (400, True)
    assert "Saved." in visitor.submit("memory/edit", key="a", revision=revision, expires_at="")[1]
    assert "Expires (not found from then on)" not in visitor.show("memory?key=a")[1]
    writer = browser().sign_in(token("nilou", scopes=["read", "write"]))
    assert "Expires (not found from then on)" not in writer.show("memory/edit?key=a")[1]


def test_a_judgement_on_a_page_is_one_opinion_and_the_figures_have_a_page(own_http, browser):
    own_http.post("/api/import", content=LINE, headers={"X-Persona": "nilou"})
    visitor = browser("ja")
    for verdict in ("helped", "hurt"):
        _, page = visitor.submit("memory/judge", page="memories/new", key="a", verdict=verdict)
    assert "記録しました" in page
    assert "役に立たなかった 単語" in visitor.show("ask?q=苺")[1]  # a mark above the parts of its score
    assert own_http.get("/api/recall/figures", headers={"X-Persona": "nilou"}).json()["verdicts"] == {"hurt": 1}
    status, page = visitor.show("ask/figures")
    assert status == 200
    assert "検索のふりかえり" in page
    assert page.count("苺が好き") == 2
