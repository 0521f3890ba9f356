"""Several personas in one room: each speaks from its own memory, hears the others, and remembers if that is wanted."""

import asyncio
import json
from urllib.parse import quote

import pytest
from chat_models import ScriptedModel, forever

from memory_mcp.chat import ApprovalNeeded, Connection, Conversation, Failed, GroupConversation, Heard, Message, TurnEnded
from memory_mcp.errors import InvalidInput


@pytest.fixture
def group(server, name):
    """group({"さくら": steps, "nilou": steps}): personas that only this test has, whose models answer so; and the models."""

    def group(answers, **options):
        models = {persona: ScriptedModel(steps=list(steps)) for persona, steps in answers.items()}
        members = {
            persona: Conversation(model, Connection(server.url, persona=f"{name}-{persona}"), allowed=["*"])
            for persona, model in models.items()
        }
        return GroupConversation(members, **options), models

    return group


@pytest.fixture
def memories(http, name):
    """memories("さくら"): what a persona of this test has stored."""

    def memories(persona):
        found = http.get("/api/memories", headers={"X-Persona": quote(f"{name}-{persona}")}).json()["memories"]
        return [memory["content"] for memory in found]

    return memories


def run(group, *texts, until=None):
    """All that is said in these turns; `until`: the last turn is closed at the first event of this kind by this persona."""

    async def run():
        async with group:
            heard = []
            for text in texts:
                events = group.say(text)
                async for speaker, event in events:
                    heard.append((speaker, event))
                    if until == (speaker, type(event)):
                        await events.aclose()
                        break
            return heard

    return asyncio.run(run())


def texts(member):
    return [(message.speaker, message.text) for message in member.messages]


def test_all_speak_in_their_order_and_hear_each_other(group):
    room, models = group({"さくら": ["さくらです", "うん"], "nilou": ["Nilou here", "yes"]})
    heard = run(room, "みんな、元気？")
    assert [speaker for speaker, event in heard if isinstance(event, TurnEnded)] == ["さくら", "nilou"]
    assert texts(room.members["さくら"]) == [("user", "みんな、元気？"), ("", "さくらです"), ("nilou", "Nilou here")]
    assert texts(room.members["nilou"]) == [("user", "みんな、元気？"), ("さくら", "さくらです"), ("", "Nilou here")]
    # Vendors want the user and the model to take turns.
    assert [message.type for message in models["nilou"].asked[0]] == ["system", "human"]
    assert models["nilou"].asked[0][1].text == "user: みんな、元気？\n\nさくら: さくらです"


@pytest.mark.parametrize(
    ("said", "speakers"),
    [
        ("nilou、どう思う？", ["nilou"]),
        ("Nilou and さくら?", ["nilou", "さくら"]),
        ("vanilloux?", ["さくら", "nilou"]),
        ("さくら", ["さくら"]),
    ],
)
def test_who_is_addressed_by_name_answers(group, said, speakers):
    room, _ = group({"さくら": [], "nilou": []})
    assert room.speakers(said) == speakers


def test_the_longer_of_two_names_is_meant(group):
    room, _ = group({"さくら": [], "さくらこ": []})
    assert room.speakers("さくらこは？") == ["さくらこ"]


def test_who_was_not_addressed_has_heard_it_the_next_time(group):
    room, models = group({"さくら": ["はい", "はいはい"], "nilou": ["I heard"]})
    run(room, "さくら？", "nilou?")
    assert models["nilou"].asked[0][1].text == "user: さくら？\n\nさくら: はい\n\nuser: nilou?"
    assert texts(room.members["さくら"])[-2:] == [("user", "nilou?"), ("nilou", "I heard")]


def test_each_recalls_and_stores_in_its_own_memory_alone(group, memories, http, name):
    sent = {"headers": {"X-Persona": quote(f"{name}-さくら")}, "json": {"content": "合言葉は睡蓮"}}
    http.post("/api/memories", **sent).raise_for_status()
    ask = {"name": "recall", "args": json.dumps({"query": "合言葉"})}
    keep = {"name": "remember", "args": json.dumps({"content": "旅人は苺が好き"})}
    room, models = group({"さくら": [ask, "睡蓮"], "nilou": [ask, keep, "I do not know"]})
    run(room, "合言葉は？")
    assert "睡蓮" in models["さくら"].asked[1][-1].text
    told = [message.text for round_ in models["nilou"].asked for message in round_]
    assert not [text for text in told if "睡蓮" in text and "さくら: 睡蓮" not in text]
    assert (memories("さくら"), memories("nilou")) == (["合言葉は睡蓮"], ["旅人は苺が好き"])


def test_what_was_said_is_stored_to_all_who_are_there_where_that_is_wanted(group, memories):
    room, _ = group({"さくら": ["うん"], "nilou": []}, hear=True)
    heard = run(room, "さくら、明日は海だよ")
    assert [speaker for speaker, event in heard if isinstance(event, Heard)] == ["さくら", "nilou"]
    assert memories("さくら") == memories("nilou") == ["user: さくら、明日は海だよ さくら: うん"]


@pytest.mark.parametrize("second", [forever, PermissionError("broken")])
def test_of_a_turn_that_was_not_finished_by_all_nobody_has_heard_anything(group, second, memories):
    room, _ = group({"さくら": ["うん"], "nilou": [second] * 3}, hear=True)
    until = None if isinstance(second, PermissionError) else ("さくら", TurnEnded)
    room.members["nilou"].messages.append(Message("user", "前から"))
    heard = run(room, "みんな、元気？", until=until)
    assert [texts(member) for member in room.members.values()] == [[], [("", "前から")]]
    assert not [event for _, event in heard if isinstance(event, Heard)]
    assert memories("さくら") == []


def test_a_turn_that_is_cancelled_while_somebody_thinks_ends(group):
    async def run():
        thinking = asyncio.Event()

        async def think():
            thinking.set()
            await forever()

        room, _ = group({"さくら": ["うん"], "nilou": [think]})
        async with room:
            waiting = asyncio.create_task(_drain(room.say("みんな")))
            await thinking.wait()
            room.cancel()
            return room, await waiting

    room, heard = asyncio.run(run())
    assert [(speaker, event.outcome) for speaker, event in heard if isinstance(event, TurnEnded)] == [
        ("さくら", "done"),
        ("nilou", "cancelled"),
    ]
    assert texts(room.members["さくら"]) == []


def test_a_turn_that_is_cancelled_between_two_speakers_ends(group):
    async def run():
        room, _ = group({"さくら": ["うん"], "nilou": ["はい"]})
        async with room:
            heard = []
            async for speaker, event in room.say("みんな"):
                heard.append((speaker, event))
                if isinstance(event, TurnEnded):
                    room.cancel()
            return room, heard

    room, heard = asyncio.run(run())
    assert [(speaker, event.outcome) for speaker, event in heard if isinstance(event, TurnEnded)] == [
        ("さくら", "done"),
        ("nilou", "cancelled"),
    ]
    assert [texts(member) for member in room.members.values()] == [[], []]


async def _drain(events):
    return [entry async for entry in events]


def test_a_group_has_few_members(server):
    with pytest.raises(InvalidInput, match="a group of 0 can't talk"):
        GroupConversation({})


def test_questions_go_to_whoever_speaks(server, name):
    keep = {"name": "remember", "args": json.dumps({"content": "苺"})}
    members = {
        persona: Conversation(ScriptedModel(steps=[keep, "はい"]), Connection(server.url, persona=f"{name}-{persona}"))
        for persona in ("さくら", "nilou")
    }
    room = GroupConversation(members)

    async def run():
        async with room:
            asked = []
            async for speaker, event in room.say("みんな"):
                assert not isinstance(event, Failed)
                if isinstance(event, ApprovalNeeded):
                    asked.append(speaker)
                    room.answer(event.call.id, True)
            return asked

    assert asyncio.run(run()) == ["さくら", "nilou"]
