"""The pages of MCP Apps in a real browser, in a stand-in host: a frame without an origin, which speaks with the host alone."""

import json

import pytest
from dashboard_pages import violations

pytestmark = pytest.mark.slow

MARKUP = "<script>window.broken = true</script><img src=x onerror='window.broken = true'>"
# The policy that the specification has a host set where a page asks for nothing.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'"
HOST = """<!doctype html><title>Host</title><iframe title="app" sandbox="allow-scripts" width="600" height="700"></iframe><script>
    const frame = document.querySelector("iframe");
    window.said = [];
    const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    addEventListener("message", async ({ source, data }) => {
        if (source !== frame.contentWindow) return;
        said.push(data.method || "answer");
        if (data.method === "ui/initialize") {
            send({ id: data.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "stand-in", version: "1" }, hostCapabilities: {}, hostContext: context } });
        } else if (data.method === "ui/notifications/initialized") {
            send({ method: "ui/notifications/tool-input", params: { arguments: input } });
            send({ method: "ui/notifications/tool-result", params: JSON.parse(await callTool(JSON.stringify({ name: tool, arguments: input }))) });
        } else if (data.method === "tools/call") {
            send({ id: data.id, result: JSON.parse(await callTool(JSON.stringify(data.params))) });
        } else if (data.method === "ui/notifications/size-changed") {
            window.height = data.params.height;
        } else if (data.id && !data.method) {
            window.answered = data;
        }
    });
</script>"""


@pytest.fixture(scope="module")
def all_tools(tmp_path_factory, serving):
    """A server with the tools that have pages."""
    with serving(tmp_path_factory.mktemp("apps"), toolsets=["core", "upkeep", "graph"]) as served:
        yield served


@pytest.fixture
def caller(all_tools, connect, name):
    """A client of a persona that no other test has."""
    return connect(all_tools, name)


@pytest.fixture
def shown(browser, caller):
    """shown("history", {"key": …}): the host's page and the frame in it, once the tool was called. A message in the console fails the test."""
    contexts, complaints = [], []

    def shown(tool, arguments, *, locale="ja-JP", theme="light", width=640):
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, reduced_motion="reduce"))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.expose_function("callTool", lambda sent: call(caller, json.loads(sent)))
        page.set_content(HOST)
        (address,) = [(each.meta or {})["ui"]["resourceUri"] for each in caller.wait(caller.client.list_tools) if each.name == tool]
        (content,) = caller.wait(caller.client.read_resource, address)
        html = content.text.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">', 1)
        page.evaluate(
            "([tool, input, context, html]) => { Object.assign(window, { tool, input, context }); frame.srcdoc = html; }",
            [tool, arguments, {"locale": locale, "theme": theme}, html],
        )
        return page, page.frame_locator("iframe")

    yield shown
    for context in contexts:
        context.close()
    assert complaints == []


def call(caller, params):
    """What a host does with a page's call of a tool: it sends it on, and the result back."""
    result = caller.result(params["name"], params["arguments"])
    content = [{"type": "text", "text": part.text} for part in result.content]
    return json.dumps({"content": content, "structuredContent": result.structured_content, "isError": bool(result.is_error)})


def frame_of(page):
    """The frame itself, for scripts of the test in it."""
    return page.frames[1]


LIGHT, DARK = ("ja-JP", "light", 640), ("en-US", "dark", 340)


@pytest.mark.parametrize(("locale", "theme", "width"), [LIGHT, pytest.param(*DARK, marks=pytest.mark.thorough)])
def test_the_graph_is_drawn_and_a_click_goes_outwards_through_the_host(caller, shown, locale, theme, width):
    caller(
        "remember",
        content="[[健太|Person]]は[[桜高校|Organization]]の生徒。",
        relations=["健太 > studies_at > 桜高校", "健太 > sibling_of > 美咲"],
    )
    caller("remember", content=f"[[美咲|Person]]は[[鎌倉|Location]]に住む。{MARKUP}", relations=["美咲 > lives_in > 鎌倉"])
    page, app = shown("graph_snapshot", {"around": ["桜高校"]}, locale=locale, theme=theme, width=width)
    app.locator("[data-drawn='2']").wait_for()
    assert app.locator("html").get_attribute("lang") == locale[:2]
    assert app.locator("html").get_attribute("data-theme") == theme
    assert {"ja": "人物", "en": "Person"}[locale[:2]] in app.locator(".legend").inner_text()
    frame = frame_of(page)
    x, y = frame.evaluate(
        """() => {
            const { cy } = document.querySelector(".graph")._cyreg;
            const { x, y } = cy.nodes().filter((node) => node.data("label") === "健太").renderedPosition();
            return [x, y];
        }"""
    )
    app.locator(".graph").click(position={"x": x, "y": y})
    app.locator("[data-drawn='3']").wait_for()
    app.locator("summary").click()
    app.locator("tr", has_text="美咲").locator("button").press("Enter")
    app.locator("[data-drawn='4']").wait_for()
    app.locator("summary").click()
    assert "美咲 > lives_in > 鎌倉" in app.locator("#below").inner_text()
    assert violations(frame) == []
    assert frame.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("() => height") > 300


def test_a_history_shows_what_changed_and_a_button_restores_a_revision(caller, shown):
    key = caller("remember", content="健太は苺が好き。")["key"]
    caller("revise", key=key, content=f"健太は桃が好き。{MARKUP}", reason="聞き間違い")
    page, app = shown("history", {"key": key})
    assert app.locator("article").inner_text() == f"健太は桃が好き。{MARKUP}"
    assert app.locator("del").inner_text() == "苺が好き。"
    assert "聞き間違い" in app.locator("main").inner_text()
    assert violations(frame_of(page)) == []
    app.locator("button", has_text="版 1 に戻す").click()
    app.locator("article", has_text="苺").wait_for()
    assert caller("history", key=key)["memory"]["revision"] == 3
    assert frame_of(page).evaluate("() => window.broken") is None


@pytest.mark.parametrize(("locale", "theme", "width"), [pytest.param(*LIGHT, marks=pytest.mark.thorough), DARK])
def test_why_shows_the_parts_of_each_score_and_leads_to_a_history(caller, shown, locale, theme, width):
    caller("remember", content="健太は苺が好き。", source="健太")
    key = caller("remember", content=f"健太の誕生日。{MARKUP}")["key"]
    caller("revise", key=key, content=f"健太の誕生日は十月。{MARKUP}")
    page, app = shown("explain_recall", {"query": "健太の誕生日"}, locale=locale, theme=theme, width=width)
    app.locator("h1", has_text="健太の誕生日").wait_for()
    memory = app.locator(".hits > li", has_text="十月")
    assert MARKUP in memory.inner_text()
    assert {"ja": "単語", "en": "words"}[locale[:2]] in memory.locator(".why").inner_text()
    memory.locator("button").press("Enter")
    memory.locator("ins", has_text="は十月").wait_for()
    assert violations(frame_of(page)) == []
    assert frame_of(page).evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert frame_of(page).evaluate("() => window.broken") is None


def test_a_refusal_of_the_server_and_a_cancelled_call_are_said(shown):
    page, app = shown("history", {"key": "nobody"})
    assert "no memory has the key nobody" in app.locator("[role=alert]").inner_text()
    page.evaluate("() => send({ method: 'ui/notifications/tool-cancelled', params: {} })")
    app.locator("[role=alert]", has_text="取り消されました").wait_for()


def test_a_page_answers_the_host_and_does_nothing_for_others(shown):
    page, app = shown("explain_recall", {"query": "苺"})
    app.locator("main p").first.wait_for()
    for method, answered in (("ui/resource-teardown", "result"), ("ui/unknown", "error")):
        page.evaluate("method => send({ id: method, method, params: {} })", method)
        page.wait_for_function("method => window.answered && answered.id === method", arg=method)
        assert answered in page.evaluate("() => answered")
    assert page.evaluate("() => said")[:2] == ["ui/initialize", "ui/notifications/initialized"]
    frame = frame_of(page)
    before = app.locator("main").inner_html()
    frame.evaluate("() => window.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-cancelled', params: {} }, '*')")
    assert app.locator("main").inner_html() == before
