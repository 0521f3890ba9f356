"""The conversation in a terminal: streamed Markdown, folded tool calls, and commands about the memory."""

import asyncio
import json
import logging
import tomllib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Collapsible, Input, Label, Markdown, Static
from textual.widgets.markdown import MarkdownStream

from memory_mcp.dates.format import Language
from memory_mcp.errors import MemoryMCPError
from memory_mcp.features.chat import events
from memory_mcp.features.chat.conversation import Conversation
from memory_mcp.features.chat.opening import Opening
from memory_mcp.store.files.durable_files import write_atomically
from memory_mcp.wording import in_language

SHOWN_LENGTH = 300
# A command gets the rest of its line. False ends the conversation.
Command = Callable[[str], Coroutine[Any, Any, bool | None]]
COMMANDS = ("help", "model", "persona", "why", "judge", "undo", "tools", "off", "again", "save", "quit")
YES, NO = frozenset({"y", "yes", "ｙ", "はい"}), frozenset({"", "n", "no", "ｎ", "いいえ"})


def run(opening: Opening, model: str | None, *, language: Language, off_record: bool = False, summary: bool = False) -> None:
    """Runs until the user ends it.

    Raises:
        MemoryMCPError: the conversation can't begin.
    """
    terminal = Terminal(opening, opening.conversation(model), language=language, off_record=off_record, summary=summary)
    # The log of a server in this process would be drawn over the conversation.
    kept, logging.root.handlers[:] = logging.root.handlers[:], [logging.NullHandler()]
    try:
        terminal.run()
    finally:
        logging.root.handlers[:] = kept
    if terminal.failure:
        raise terminal.failure


class Line(Input):
    """The line of input, with what was written before."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("up", "earlier(-1)", show=False), Binding("down", "earlier(1)", show=False)]

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder=placeholder, id="line")
        self._written: list[str] = []
        self._at = 0

    def keep(self, text: str) -> None:
        """Adds a text to those that the arrows bring back, and empties the line."""
        self._written.append(text)
        self._at = len(self._written)
        self.clear()

    def action_earlier(self, step: int) -> None:
        """Brings back what was written before or after what is shown."""
        self._at = min(max(self._at + step, 0), len(self._written))
        self.value = self._written[self._at] if self._at < len(self._written) else ""
        self.cursor_position = len(self.value)


class Terminal(App[None]):
    """One worker holds the conversation and takes the lines one after the other; only answers to questions don't wait for it."""

    CSS = """
    #said { padding: 0 1; }
    .user { color: $accent; margin-top: 1; }
    .note { color: $text-muted; }
    .failure { color: $error; }
    Markdown { margin: 0; padding: 0; background: transparent; }
    Collapsible { border: none; padding: 0; background: transparent; }
    #state { dock: bottom; color: $text-muted; padding: 0 1; }
    #line { dock: bottom; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "stop", show=False), Binding("ctrl+q", "leave", show=False, priority=True)]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        opening: Opening,
        conversation: Conversation,
        *,
        language: Language,
        off_record: bool,
        summary: bool,
    ) -> None:
        super().__init__()
        self._opening, self.conversation, self._language = opening, conversation, language
        self._words = _words(language)
        self._off_record, self._summary = off_record, summary
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._question: events.ApprovalNeeded | None = None
        self._recalled: dict[str, events.Recalled] = {}
        self._stream: MarkdownStream | None = None
        self._next: Conversation | None = None
        self.failure: MemoryMCPError | None = None
        self._commands: Mapping[str, Command] = {f"/{name}": getattr(self, f"_{name}") for name in COMMANDS}

    def compose(self) -> ComposeResult:
        """The conversation, the line, and the state."""
        yield VerticalScroll(id="said")
        yield Line(self._words["placeholder"])
        yield Label("", id="state", markup=False)

    def on_mount(self) -> None:
        """Begins the conversation."""
        self.query_one("#said", VerticalScroll).anchor()
        self.query_one(Line).focus()
        self.run_worker(self._converse(), exit_on_error=True)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Takes a line: the answer to a question at once, everything else in its turn. Anything but yes or no means no, and is also the next message."""
        text = event.value.strip()
        if self._question:
            self.conversation.answer(self._question.call.id, text.lower() in YES)
            self._ask(None)
            if text.lower() in YES | NO:
                self.query_one(Line).clear()
                return
        if text:
            self.query_one(Line).keep(text)
            self._lines.put_nowait(text)

    def action_stop(self) -> None:
        """Cancels the answer that is being given."""
        self.conversation.cancel()

    def action_leave(self) -> None:
        """Ends as /quit does."""
        self.conversation.cancel()
        self._lines.put_nowait("/quit")

    async def _converse(self) -> None:
        """One conversation after the other, until none follows."""
        try:
            while True:
                async with self.conversation as conversation:
                    self._state()
                    await self._say_note("ready", persona=conversation.persona, model=conversation.model)
                    for server, why in conversation.toolbox.missing.items():
                        await self._say_note("tools_left_out", server=server, why=why)
                    while await self._do(await self._lines.get()):
                        self._state()
                    await self._end(conversation)
                if self._next is None:
                    break
                self.conversation, self._next, self._recalled = self._next, None, {}
        except MemoryMCPError as error:
            self.failure = error
        self.exit()

    async def _end(self, conversation: Conversation) -> None:
        if self._summary and not self._off_record:
            await self._say_note("summarizing")
            await conversation.summarize()

    async def _do(self, line: str) -> bool:
        """Runs a line of input. False ends the conversation."""
        name, _, rest = line.partition(" ")
        command = self._commands.get(name)
        try:
            if command:
                return await command(rest.strip()) is not False
            if line.startswith("/"):
                await self._say_note("unknown", name=name)
            else:
                await self._turn(line, self.conversation.say(line, off_record=self._off_record))
        except MemoryMCPError as error:
            await self._say(in_language(str(error), self._language), "failure")
        return True

    async def _turn(self, line: str, turn: AsyncGenerator[events.Event]) -> None:
        self._recalled = {}
        await self._say(f"{self._words['user']}: {line}", "user")
        async for event in turn:
            await self._show(event)
        if self._stream:
            await self._stream.stop()
            self._stream = None

    async def _show(self, event: events.Event) -> None:
        match event:
            case events.TextPiece():
                if self._stream is None:
                    answer = Markdown(open_links=False)
                    await self._mount(answer)
                    self._stream = Markdown.get_stream(answer)
                await self._stream.write(event.text)
            case events.ApprovalNeeded():
                self._ask(event)
                arguments = _shortened(json.dumps(event.call.arguments, ensure_ascii=False))
                await self._say_note("asks", tool=event.call.name, server=event.server, arguments=arguments)
            case events.ToolResult():
                await self._show_result(event)
            case events.Retrying():
                await self._say_note("retrying", why=event.why, seconds=f"{event.seconds:.0f}")
            case events.CutOff():
                await self._say_note(f"cut_{event.why}", model=event.model)
            case events.Failed():
                await self._say(in_language(str(event.error()), self._language), "failure")
            case events.TurnEnded(outcome="cancelled"):
                self._ask(None)
                await self._say_note("cancelled")
            case events.Usage():
                self._state()

    async def _show_result(self, event: events.ToolResult) -> None:
        """The call in one line, which opens: what it was given, and what the model read."""
        if self._stream:
            await self._stream.stop()
            self._stream = None
        arguments = json.dumps(event.call.arguments, ensure_ascii=False)
        recalled = self._words["recalled"].format(count=len(event.recalled)) if event.recalled else ""
        title = " · ".join(filter(None, ["✗" if event.is_error else "", event.call.name, _shortened(arguments, 60), recalled]))
        text = Static(f"{arguments}\n{event.text}", markup=False)
        folded = Collapsible(text, title="")
        folded.title = Content(title).markup
        await self._mount(folded)
        self._recalled |= {memory.key: memory for memory in event.recalled if memory.key not in self._recalled}
        if event.stored:
            await self._say_note("stored", text=event.stored.text)

    async def _say_note(self, word: str, **parts: Any) -> None:
        await self._say(self._words[word].format(**parts), "note")

    async def _say(self, text: str, kind: str) -> None:
        await self._mount(Static(text, classes=kind, markup=False))

    async def _mount(self, widget: Widget) -> None:
        await self.query_one("#said", VerticalScroll).mount(widget)

    def _ask(self, question: events.ApprovalNeeded | None) -> None:
        self._question = question
        self.query_one(Line).placeholder = self._words["question" if question else "placeholder"]

    def _state(self) -> None:
        conversation, used = self.conversation, self.conversation.usage
        cost = f"{used.cost:.4f}" if used.cost is not None else ""
        tokens = self._words["usage"].format(input=f"{used.input_tokens:,}", output=f"{used.output_tokens:,}")
        off = "OFF" if self._off_record else ""
        self.query_one("#state", Label).update(" · ".join(filter(None, [off, conversation.persona, conversation.model, tokens, cost])))

    async def _help(self, _: str) -> None:
        await self._mount(Markdown(self._words["help"]))

    async def _model(self, name: str) -> None:
        if name:
            await self.conversation.switch_loaded(name)
        await self._say_note("model", model=self.conversation.model)

    async def _persona(self, name: str) -> bool:
        self._next = self._opening.conversation(self.conversation.model, name)
        return False

    async def _why(self, _: str) -> None:
        words: Mapping[str, str] = self._words["why"]
        for number, memory in enumerate(self._recalled.values(), start=1):
            reasons = [f"{words.get(name, name)} {value if value is not True else ''}".strip() for name, value in memory.why.items()]
            score = f"{memory.score:.2f} " if memory.score is not None else ""
            await self._say(f"{number}. {score}{memory.text} ({memory.when}): {', '.join(reasons)}", "note")
        if not self._recalled:
            await self._say_note("nothing_recalled")

    async def _judge(self, rest: str) -> None:
        """`NUMBER VERDICT`: the number that /why shows, and a verdict in either language."""
        number, _, wanted = rest.partition(" ")
        recalled = dict(enumerate(self._recalled.values(), start=1))
        words: Mapping[str, str] = self._words["verdicts"]
        memory = recalled.get(int(number)) if number.isdecimal() else None
        verdict = next((name for name, word in words.items() if wanted.strip() in (name, word)), None)
        if not memory or not verdict:
            await self._say_note("how_to_judge" if recalled else "nothing_recalled", verdicts=" / ".join(words.values()))
            return
        await self.conversation.judge(memory.key, verdict)
        await self._say_note("judged", text=memory.text, verdict=words[verdict])

    async def _undo(self, _: str) -> None:
        undone = await self.conversation.undo()
        await self._say_note("undone" if undone else "nothing_to_undo", text=undone.text if undone else "")

    async def _tools(self, _: str) -> None:
        for tool in self.conversation.toolbox.tools.values():
            state = "runs" if tool.reads_only else "allowed" if self.conversation.approvals.allows(tool.name) else "asked"
            await self._say(f"{tool.name} ({tool.server}): {self._words[state]}", "note")

    async def _off(self, _: str) -> None:
        self._off_record = not self._off_record
        await self._say_note("off" if self._off_record else "on")

    async def _again(self, text: str) -> None:
        asked = [(index, message) for index, message in enumerate(self.conversation.messages) if message.role == "user"]
        if not asked:
            await self._say_note("nothing_to_repeat")
            return
        index, old = asked[-1]
        line = text or old.text
        await self._turn(line, self.conversation.say(line, off_record=old.off_record, replacing=index))

    async def _save(self, name: str) -> None:
        path = _written(name or f"{self.conversation.session_id}.json", self.conversation.json())
        await self._say_note("saved", path=path)

    async def _quit(self, _: str) -> bool:
        return False


def _written(name: str, tree: Mapping[str, Any]) -> Path:
    path = Path(name).expanduser()
    write_atomically(path, json.dumps(tree, ensure_ascii=False, indent=2) + "\n")
    return path


def _shortened(text: str, length: int = SHOWN_LENGTH) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


@cache
def _words(language: Language) -> Mapping[str, Any]:
    tables = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    return dict(tables["ja" if language == "ja" else "en"])
