"""A Slack bot with the memory of a persona, which answers where it is mentioned.

pip install slack-bolt aiohttp "persona-memory-mcp[chat-anthropic]"
SLACK_BOT_TOKEN=… SLACK_APP_TOKEN=… ANTHROPIC_API_KEY=… python examples/slack_bot.py
"""

import asyncio
import os
import re

from memory_mcp.chat import Connection, Conversation, Rooms
from memory_mcp.errors import MemoryMCPError

MODEL, PERSONA, SERVER = "anthropic:claude-sonnet-4-5", "さくら", "http://127.0.0.1:8000"


def begin(thread: str) -> Conversation:
    """The conversation of a thread. The persona may remember without a question."""
    memory = Connection(SERVER, os.environ.get("MEMORY_MCP_TOKEN"), PERSONA)
    return Conversation(MODEL, memory, allowed=["remember"], session_id=f"slack-{thread}")


async def answer(rooms: Rooms, event: dict[str, str]) -> str:
    """What the bot says to an event `app_mention`."""
    text = re.sub(r"<@\w+>", "", event["text"]).strip()
    try:
        return await rooms.reply(event.get("thread_ts", event["ts"]), text, event["user"])
    except MemoryMCPError as error:
        return str(error)


async def main() -> None:
    """Runs the bot."""
    from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler  # noqa: PLC0415  only the bot needs it
    from slack_bolt.async_app import AsyncApp  # noqa: PLC0415

    app, rooms = AsyncApp(token=os.environ["SLACK_BOT_TOKEN"]), Rooms(begin)

    @app.event("app_mention")
    async def on_mention(event, say):  # noqa: ANN001, ANN202  of slack_bolt
        await say(await answer(rooms, event), thread_ts=event.get("thread_ts", event["ts"]))

    await AsyncSocketModeHandler(app, os.environ["SLACK_APP_TOKEN"]).start_async()


if __name__ == "__main__":
    asyncio.run(main())
