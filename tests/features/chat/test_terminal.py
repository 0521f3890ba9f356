"""The conversation in the terminal, with a scripted model and our real server."""

import asyncio
import json

import pytest
from chat_models import ScriptedModel, forever
from textual.widgets import Collapsible, Input, Label, Markdown, Static

from memory_mcp.chat import Connection, Conversation
from memory_mcp.features.chat.terminal import Terminal

REMEMBER = {"name": "remember", "args": json.dumps({"content": "健太は苺が好き。"})}
RECALL = {"name": "recall", "args": '{"query": "苺"}'}


class Openings:
    """Opens conversations with the steps that a test has written down."""

    def __init__(self, server, *conversations):
        self._server, self._steps = server, [list(steps) for steps in conversations]

    def conversation(self, _model, persona=None):
        return Conversation(ScriptedModel(steps=self._steps.pop(0)), Connection(self._server.url, persona=persona or "terminal"))


class Session:
    """Somebody at the terminal."""

    def __init__(self, app, pilot):
        self.app, self._pilot = app, pilot

    async def says(self, line, until):
        """Types a line, and waits until a text is on the screen."""
        self.app.query_one(Input).value = line
        await self._pilot.press("enter")
        await self.sees(until)

    async def sees(self, text):
        """Waits for a text."""
        while text not in self.shown():
            await self._pilot.pause()

    async def presses(self, key):
        await self._pilot.press(key)

    def shown(self):
        """All that was said, the state and what the line asks for."""
        app = self.app
        texts = [str(one.render()) for one in [*app.query(Static), *app.query(Label)]] + [one.source for one in app.query(Markdown)]
        return "\n".join([*texts, *(str(one.title) for one in app.query(Collapsible)), app.query_one(Input).placeholder])


@pytest.fixture
def at_terminal(server, name):
    """at_terminal(session → deeds, *steps of each conversation): runs the deeds at a terminal; returns it."""

    def at_terminal(deeds, *conversations, language="en"):
        async def run():
            openings = Openings(server, *conversations)
            app = Terminal(openings, openings.conversation(None, name), language=language, off_record=False, summary=False)
            async with app.run_test(size=(100, 40)) as pilot:
                session = Session(app, pilot)
                await session.sees(name)
                await deeds(session)
            return app

        return asyncio.run(run())

    return at_terminal


def test_an_answer_is_markdown_its_tools_are_folded_and_a_write_asks_first(at_terminal):
    async def deeds(session):
        await session.says("健太は苺が好き [red]x", "May remember of memory run?")
        await session.says("y", "stored: 健太は苺が好き。")
        await session.sees("# 覚えた")
        assert all(folded.collapsed for folded in session.app.query(Collapsible))
        assert "you: 健太は苺が好き [red]x" in session.shown()

    at_terminal(deeds, [REMEMBER, "# 覚えた"])


def test_what_is_neither_yes_nor_no_refuses_and_is_said_next(at_terminal):
    async def deeds(session):
        await session.says("覚えて", "May remember")
        await session.says("やっぱり内緒で", "わかった")
        await session.sees("you: やっぱり内緒で")
        await session.sees("内緒だね")
        assert "stored:" not in session.shown()

    at_terminal(deeds, [REMEMBER, "わかった", "内緒だね"])


@pytest.mark.slow
def test_why_says_what_a_memory_was_found_by_which_is_judged_and_undo_forgets_what_was_stored(at_terminal, server, name):
    async def deeds(session):
        await session.says("/why", "Nothing was recalled")
        await session.says("覚えて", "May remember")
        await session.says("y", "はい")
        await session.says("何が好き？", "1 memories recalled")
        await session.sees("苺")
        await session.says("/why", "1. 1.00 健太は苺が好き。 (今日): words 1")
        await session.says("/judge 2 helped", "the number that /why shows")
        await session.says("/judge 1 役に立った", "the number that /why shows, and one of: helped / hurt / stale")
        await session.says("/judge 1 hurt", "hurt: 健太は苺が好き。")
        await session.says("/undo", "Forgotten: 健太は苺が好き。")
        await session.says("/undo", "Nothing was stored")

    at_terminal(deeds, [REMEMBER, "はい", RECALL, "苺だよ"])
    assert Connection(server.url, persona=name).get_json("/api/recall/figures")["verdicts"] == {"hurt": 1}


def test_escape_cancels_an_answer_and_the_arrows_bring_back_what_was_written(at_terminal):
    async def deeds(session):
        await session.says("長い話をして", "you: 長い話をして")
        await session.presses("escape")
        await session.sees("Cancelled.")
        await session.presses("up")
        assert session.app.query_one(Input).value == "長い話をして"
        assert session.app.conversation.messages == []

    at_terminal(deeds, [forever])


@pytest.mark.slow
def test_commands_change_the_persona_save_say_again_and_go_off_the_record(at_terminal, name, tmp_path):
    async def deeds(session):
        await session.says("/again", "There is no answer yet.")
        await session.says("一", "答え1")
        await session.says("/again 二", "答え2")
        await session.says("/off", "Off the record")
        await session.says("内緒", "答え3")
        await session.says("/off", "On the record.")
        await session.says(f"/save {tmp_path / 'saved.json'}", "Saved to")
        await session.says("/tools", "remember (memory): asks first")
        await session.says("/nonsense", "There is no command /nonsense.")
        await session.says("/model nobody:x", "is not the name of a model")
        await session.says("/help", "| command |")
        await session.says(f"/persona {name}-2", f"{name}-2, ScriptedModel")
        await session.says("やあ", "二人目")
        await session.presses("ctrl+q")

    app = at_terminal(deeds, ["答え1", "答え2", "答え3"], ["二人目"])
    saved = json.loads((tmp_path / "saved.json").read_text(encoding="utf-8"))
    assert [message["text"] for message in saved["messages"]] == ["二", "答え2"]
    assert app.failure is None


def test_a_model_whose_class_can_not_be_loaded_is_not_switched_to(at_terminal):
    async def deeds(session):
        await session.says("/model json:NoSuchClass", "AttributeError")
        await session.says("やあ", "まだここ")
        assert "The next answer is by" not in session.shown()

    at_terminal(deeds, ["まだここ"])


@pytest.mark.slow
def test_the_terminal_speaks_japanese_with_the_same_words(at_terminal):
    async def deeds(session):
        await session.says("覚えて", "remember を実行してもいいですか")
        await session.says("はい", "覚えました：健太は苺が好き。")
        await session.says("何が好き？", "1 件の記憶を思い出しました")
        await session.says("/judge 1 役に立った", "評価を記録しました（役に立った）：健太は苺が好き。")

    at_terminal(deeds, [REMEMBER, "うん", RECALL, "苺"], language="ja")
