"""Bots: a conversation for each room, and the examples without the SDKs of their services."""

import asyncio
import importlib.util

import pytest
from chat_models import ScriptedModel
from places import ROOT

from memory_mcp.chat import Connection, Conversation, Limits, Message, Rooms

EXAMPLES = ROOT / "examples"
REMEMBER = {"name": "remember", "args": '{"content": "健太は苺が好き。"}'}
FORGET = {"name": "forget", "args": '{"keys": ["x"]}'}


@pytest.fixture
def rooms(server, name):
    """rooms(*steps, most=…): rooms whose conversations answer so, and the models that were made."""
    made = {}

    def rooms(*steps, **options):
        def begin(room):
            made[room] = ScriptedModel(steps=list(steps))
            return Conversation(made[room], Connection(server.url, persona=name), allowed=["remember"])

        return Rooms(begin, **options), made

    return rooms


def test_each_room_has_its_own_conversation_and_those_who_speak_at_once_wait(rooms):
    async def talked():
        made_rooms, made = rooms("一", "二")
        said = [made_rooms.reply("a", "健太です", "健太"), made_rooms.reply("a", "花子です", "花子"), made_rooms.reply("b", "やあ")]
        answers = await asyncio.gather(*said)
        await made_rooms.close()
        return answers, made

    answers, made = asyncio.run(talked())
    assert answers == ["一", "二", "一"]
    assert [message.text for message in made["a"].asked[1][1:]] == ["健太: 健太です", "一", "花子: 花子です"]


def test_the_room_that_was_silent_longest_makes_place(rooms):
    async def talked():
        made_rooms, made = rooms("一", "二", most=2)
        for room in "abac":
            await made_rooms.reply(room, "x")
        first = made["b"]
        await made_rooms.reply("b", "x")
        await made_rooms.close()
        return made["b"] is first

    assert not asyncio.run(talked())


def test_nobody_is_asked_by_a_bot_what_is_not_allowed_is_refused(rooms):
    async def talked():
        made_rooms, made = rooms([REMEMBER, FORGET], "はい")
        answer = await made_rooms.reply("a", "x")
        await made_rooms.close()
        return answer, [message.status for message in made["a"].asked[1][-2:]]

    assert asyncio.run(talked()) == ("はい", ["success", "error"])


def test_a_long_conversation_shows_the_model_its_latest_whole_turns(server, name):
    earlier = [Message(role, "あ" * 1_000) for _ in range(50) for role in ("user", "assistant")]
    model = ScriptedModel(steps=["はい"])

    async def talked():
        async with Conversation(model, Connection(server.url, persona=name), messages=earlier, limits=Limits(shown=5_500)) as conversation:
            await conversation.reply("x")
            return conversation.messages

    assert len(asyncio.run(talked())) == 102
    assert [message.type for message in model.asked[0]] == ["system", "human", "ai", "human", "ai", "human"]


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("discord_bot", ("1234", "健太", "苺が好き")),
        ("slack_bot", ({"text": "<@U0BOT> 苺が好き", "user": "健太", "ts": "1.5"},)),
    ],
)
def test_the_examples_answer_with_what_is_said_and_say_why_they_cannot(rooms, module, said, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location(module, EXAMPLES / f"{module}.py")
    bot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bot)

    async def talked():
        made_rooms, made = rooms(REMEMBER, "覚えたよ")
        answer = await bot.answer(made_rooms, *said)
        await made_rooms.close()
        return answer, next(iter(made.values())).asked[0][-1].text

    assert asyncio.run(talked()) == ("覚えたよ", "健太: 苺が好き")
    assert "can't be asked" in asyncio.run(bot.answer(Rooms(bot.begin), *said))
