"""A Discord bot with the memory of a persona.

pip install discord.py "persona-memory-mcp[chat-anthropic]"
DISCORD_TOKEN=… ANTHROPIC_API_KEY=… python examples/discord_bot.py
"""

import os

from memory_mcp.chat import Connection, Conversation, Rooms
from memory_mcp.errors import MemoryMCPError

MODEL, PERSONA, SERVER = "anthropic:claude-sonnet-4-5", "さくら", "http://127.0.0.1:8000"


def begin(channel: str) -> Conversation:
    """The conversation of a channel. The persona may remember without a question."""
    memory = Connection(SERVER, os.environ.get("MEMORY_MCP_TOKEN"), PERSONA)
    return Conversation(MODEL, memory, allowed=["remember"], session_id=f"discord-{channel}")


async def answer(rooms: Rooms, channel: str, speaker: str, text: str) -> str:
    """What the bot says, at most as long as Discord allows."""
    try:
        return (await rooms.reply(channel, text, speaker))[:2000]
    except MemoryMCPError as error:
        return str(error)


def main() -> None:
    """Runs the bot."""
    import discord  # noqa: PLC0415  only the bot needs it

    intents = discord.Intents.default()
    intents.message_content = True
    client, rooms = discord.Client(intents=intents), Rooms(begin)

    @client.event
    async def on_message(message: discord.Message) -> None:
        if not message.author.bot:
            await message.channel.send(await answer(rooms, str(message.channel.id), message.author.display_name, message.content))

    client.run(os.environ["DISCORD_TOKEN"])


if __name__ == "__main__":
    main()
