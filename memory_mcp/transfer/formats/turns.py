"""What is common to chats: who said what and when becomes a row, equal messages are numbered, and what a program wrote is counted."""

import codecs
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from itertools import chain
from typing import Any

from memory_mcp.llm.thoughts import without_thoughts
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import NO_OBJECT, ImportItem, ReadOptions, objects, text_in
from memory_mcp.transfer.formats.json_stream import each_file
from memory_mcp.transfer.formats.marks import without_marks
from memory_mcp.transfer.formats.recognition import HEAD_BYTES, Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.text_files import encoding_of, not_text
from memory_mcp.transfer.line_fields import FORMER_KEYS_LIMIT
from memory_mcp.wording import sentence

BRANCHES, HIDDEN = "messages of branches that are not shown", "system and hidden messages"
THOUGHTS, TOOLS, PICTURES, FILES = "thoughts", "uses of tools", "pictures and files", "contents of files"
FORWARDS = "forwarded messages beside a text"
# The parts of a message by their types in the programs of assistants: what is said, and the kinds of what isn't.
_SAID = frozenset({"text", "input_text", "output_text", "voice_note", "REQUEST", "RESPONSE"})
_NOT_SAID = dict.fromkeys(("think", "thinking", "THINK"), THOUGHTS) | dict.fromkeys(("image", "image_file", "image_url", "file"), PICTURES)
# A longer line is read in pieces of this length.
LINE_CHARACTERS = 1_000_000

# What programs write for what is no text, by its kind; the words without brackets and in lower case.
MEDIA: Mapping[str, str] = {
    "photos": "写真 画像 photo photos image picture 照片 圖片 图片 사진 รูป รูปภาพ foto fotos bild imagen imagem immagine jpg jpeg png heic webp gif",
    "videos": "動画 video videos ビデオ 影片 视频 視頻 동영상 วิดีโอ vídeo mp4 mov 3gp m4v avi mkv webm",
    "stickers": "スタンプ sticker stickers ステッカー 貼圖 贴图 스티커 สติกเกอร์ stiker aufkleber autocollant figurinha webp",
    "voice messages": "ボイスメッセージ 音声 audio voice 語音訊息 语音信息 음성메시지 음성 เสียง áudio opus ogg m4a mp3 aac wav amr",
    "contacts": "連絡先 contact 聯絡資訊 联系人 연락처 vcf",
    "polls": "アンケート poll polls umfrage encuesta sondage enquete sondaggio 投票 투표",
    "albums": "アルバム album albums 相簿 相册 앨범 อัลบั้ม",
    "events": "イベント event events 活動 活动 일정",
    "gifts": "プレゼント ギフト gift gifts 禮物 礼物 선물 ของขวัญ",
    "locations": "位置情報 location 位置訊息 位置 위치 ตำแหน่ง standort ubicación",
    "files": "ファイル ドキュメント 文書 file document 檔案 文件 파일 ไฟล์ dokument documento pdf docx doc xlsx xls pptx ppt zip txt csv",
}
_KIND_OF = {word: kind for kind, words in reversed([*MEDIA.items()]) for word in words.split()}
_TWO_WORDS = {
    "voice message": "voice messages",
    "video message": "videos",
    "view once photo": "photos",
    "video note": "videos",
    "contact card": "contacts",
}
_LATIN = re.compile(r"\A[A-Za-z]+")
_SUFFIX = re.compile(r"\.([A-Za-z0-9]{2,5})$")


def media_kind(words: str) -> str | None:
    """The kind that a program's word for a picture or the like, or the name of a file, stands for."""
    name = words.strip("[]［］<>‎ 　").casefold()
    suffix = _SUFFIX.search(name)
    return _KIND_OF.get(suffix[1] if suffix else name) or _TWO_WORDS.get(name)


def kind_in_words(words: str) -> str | None:
    """The kind that a sentence of a program is about, by any word of it, or by its beginning in languages without spaces: 画像は含まれていません,
    GIFは含まれていません."""
    names = [words, words.rpartition(":")[2], *words.replace(":", " ").split(), *_LATIN.findall(words)[:1]]
    known = next((kind for name in names if (kind := media_kind(name))), None)
    return known or next((kind for word, kind in _KIND_OF.items() if not word.isascii() and words.startswith(word)), None)


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said. `said_at` is ISO text; `identity` tells it from all others of the same format, and `former` are identities under which it
    may be stored instead; `left_out` are the kinds of what it has beside its text."""

    speaker: str | None
    text: str
    said_at: str | None
    session: str
    identity: tuple[str, ...]
    role: str | None = None
    left_out: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()  # else the format's name
    former: tuple[tuple[str, ...], ...] = ()


def turn_items(form: str, where: str, turn: Turn) -> Iterator[ImportItem]:
    """The row of a turn, and what is left out of it. One with neither is counted, too."""
    for kind in turn.left_out:
        yield ImportItem(where, left_out=kind)
    if not turn.text.strip() and not turn.left_out:
        yield ImportItem(where, left_out="messages without a text")
    yield from import_rows.memory_rows(
        where,
        form,
        turn.identity,
        turn.text,
        source=turn.speaker,
        role=turn.role,
        session_id=turn.session,
        occurred_at=turn.said_at,
        kind="conversation",
        tags=[*(turn.tags or (form,))],
        origin=turn.origin,
        former=[(form, *identity) for identity in turn.former],
    )


def message_items(form: str, where: str, message: Any, turn_of: Callable[[Mapping[str, Any]], Turn]) -> Iterator[ImportItem]:
    """The rows of a message of a JSON file, which has to be an object."""
    if isinstance(message, dict):
        yield from turn_items(form, where, turn_of(message))
    else:
        yield ImportItem(where, refused=NO_OBJECT)


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation with an assistant, by the user or by the assistant of this name; without a role the two take turns."""

    by_user: bool | None
    text: str
    speaker: str = ""
    id: str = ""
    said_at: str | None = None
    left_out: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    number: str = ""  # what one without an id is told from the others by, else its place
    former: tuple[tuple[str, str], ...] = ()  # sessions, and ids or numbers in them, under which it may be stored instead


def quoted(text: str) -> str:
    """What somebody passes on of another, each line with the mark of a quotation."""
    return "\n".join(f"> {line}" for line in text.split("\n")) if text.strip() else ""


def is_said(part: Mapping[str, Any]) -> bool:
    """Whether a part of a message is a text of whoever wrote it."""
    return text_in(part.get("type")) in _SAID


def said_in(content: object, text_at: str = "text") -> tuple[str, list[str]]:
    """What a message says, a text or the parts of one, and the kinds of the parts that are none."""
    if isinstance(content, str):
        return content, []
    parts = objects(content)
    said = [part.get(text_at) for part in parts if is_said(part)]
    texts = [text_in(value.get("value") if isinstance(value, dict) else value) for value in said]
    kinds = [_NOT_SAID.get(text_in(part.get("type")), TOOLS) for part in parts if not is_said(part)]
    return "\n\n".join(text for text in texts if text.strip()), kinds


def conversation_items(
    form: str,
    where: str,
    session: str,
    title: str,
    messages: Iterable[Message],
    options: ReadOptions,
    names: tuple[str, str],
    begun: str | None,
) -> Iterator[ImportItem]:
    """The rows of a conversation with an assistant: the user's name is that of the options, else the message's, else the first of `names`, else
    `user`; the assistant's is the message's, else the second. Messages without a time have that of the beginning."""
    for number, message in enumerate(messages, start=1):
        by_user = message.by_user if message.by_user is not None else number % 2 == 1
        speaker = (options.me or message.speaker or names[0] or "user") if by_user else message.speaker or names[1]
        said = message.text if by_user else without_thoughts(message.text)
        turn = Turn(
            speaker,
            said if by_user else without_marks(said),
            message.said_at or begun,
            session,
            (session, message.id or message.number or str(number)),
            import_rows.role_of(speaker, by_user),
            (*message.left_out, *[THOUGHTS] * (said is not message.text)),
            {"conversation": session, "title": title, "message": message.id, **message.origin},
            former=message.former,
        )
        yield from turn_items(form, f"{where}, message {number}", turn)


def named_by_newest(names: Sequence[str]) -> Sequence[str]:
    """The names that a conversation may have had while its newest message named it, given those of its messages, first to last: of long ones the latest."""
    return names[-FORMER_KEYS_LIMIT + 1 :]


def path_to_last(nodes: Mapping[str, Mapping[str, Any]], last: Any, parent: str, said_at: Callable[[str], Any]) -> list[str]:
    """The ids of the branch that ends with `last`, or else of that with the latest end, first to last. It ends even if the parents form a cycle."""

    def upwards(node_id: Any) -> Iterator[str]:
        passed: set[str] = set()
        while isinstance(node_id, str) and node_id in nodes and node_id not in passed:
            passed.add(node_id)
            yield node_id
            node_id = nodes[node_id].get(parent)

    def ended_at(leaf: str) -> Any:  # an end without a time is as late as what is before it
        return next((at for node_id in upwards(leaf) if (at := said_at(node_id))), said_at(leaf))

    if not (isinstance(last, str) and last in nodes):
        inner = {name for node in nodes.values() if isinstance(name := node.get(parent), str)}
        last = max([name for name in nodes if name not in inner] or nodes, key=ended_at, default=None)
    return [*upwards(last)][::-1]


class Equals:
    """Numbers messages that are the same, in the order of the file: a longer export of a chat gives them the same numbers."""

    def __init__(self) -> None:
        self._day, self._counts = "", Counter[tuple[str, ...]]()

    def number(self, day: str, *same: str) -> str:
        """The number among those of the day; what is counted is forgotten when another day begins."""
        if day != self._day:
            self._day, self._counts = day, Counter()
        self._counts[same] += 1
        return str(self._counts[same])


def in_zone(local: datetime, zone: tzinfo | None) -> str:
    """A local time as ISO text, with the offset of the zone; without a zone it has none, and the server's counts."""
    return local.replace(tzinfo=zone).isoformat()


def zoned(time: str | None, zone: tzinfo | None) -> str | None:
    """ISO text with the offset of the zone if it has none; what is none stays."""
    with suppress(ValueError):
        return time if time is None or (local := datetime.fromisoformat(time)).tzinfo else in_zone(local, zone)
    return time


def text_lines(source: Source, name: str) -> Iterator[tuple[int, str]]:
    """Yields (number, line) of a text file, without line ends and marks, in pieces if a line is very long.

    Raises:
        InvalidInput: the file is no text, or can't be read.
    """
    with source.open(name) as file:
        encoding = encoding_of(file.read(HEAD_BYTES))
    if encoding is None:
        raise not_text(name)
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(errors="replace"), translate=True)
    rest, number = "", 1
    for block in chain(blocks(source, name), [b""]):
        *complete, rest = (rest + decoder.decode(block, final=not block)).split("\n")
        for line in complete:
            yield number, line
            number += 1
        if len(rest) > LINE_CHARACTERS or (rest and not block):
            yield number, rest
            rest = ""


class FurtherLines:
    """The lines of one message, of which a program takes no more than `limit` characters: what follows in its file is no message of it."""

    def __init__(self, first: str, limit: int) -> None:
        self.lines = [first]
        self.left_out = 0
        self._room = limit

    def add(self, line: str) -> None:
        """Keeps a line, or counts it where the message is full."""
        self._room -= len(line) + 1
        if self._room < 0:
            self.left_out += 1
        else:
            self.lines.append(line)

    def too_long(self, where: str) -> Iterator[ImportItem]:
        """The refusal of what was counted."""
        if self.left_out:
            yield ImportItem(
                where,
                refused=sentence(
                    "{} lines after it are not read (a long line counts in parts): no message of this program is so long.",
                    f"{self.left_out:,}",
                ),
            )


def files_read(source: Source, recognizes: Callable[[Head], bool], read: Callable[[str], Iterator[ImportItem]]) -> Iterator[ImportItem]:
    """What `read` yields for each file that is recognized; a single file always is. Others are left out: what they are is told by the messages."""
    return each_file(source, read, lambda name: recognizes(Head(source, name)))
