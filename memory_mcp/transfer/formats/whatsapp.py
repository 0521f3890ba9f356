"""Reads the text that WhatsApp exports of a chat, of iOS and Android, in any language.

Which of two numbers is the day is decided from all of the file. A mark (U+200E) stands before what the program wrote; Android has none, but
puts it in angle brackets, or names a file. langchain-community's WhatsAppChatLoader knows few forms of dates, and joins all into one text.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import PurePosixPath

from memory_mcp.transfer.formats.clock import TIME, DayOrder, at_time, day_of_phone, hour_of
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, role_of
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source
from memory_mcp.transfer.formats.turns import (
    Equals,
    FurtherLines,
    Turn,
    in_zone,
    kind_in_words,
    media_kind,
    text_lines,
    turn_items,
)

FORM = "whatsapp"
PROGRAM = "WhatsApp"
MARK = "\u200e"
# The app takes at most 65,536 characters in a message.
MESSAGE_CHARACTERS = 70_000
_OTHER_MARKS = dict.fromkeys(map(ord, "\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"), None) | dict.fromkeys(
    map(ord, "\u00a0\u202f\u2009"), " "
)
_DATE = r"(?P<first>\d{1,4})(?:[/.\-] ?|[年년] ?)(?P<middle>\d{1,2})(?:[/.\-] ?|[月월] ?)(?P<last>\d{1,4})[.日일]?"
_START = re.compile(rf"{MARK}?(?P<open>\[)?{_DATE}(?:,|،)? {{0,2}}{TIME}(?:\]| [\-–—]) (?P<rest>.*)", re.DOTALL)
# A name has no quotation marks that are still open, unless many messages have it: Ken changed the subject from "a: b".
_LEAST_MESSAGES = 3
_NAME = re.compile(r'\A(?:[^„“「『«"]|„[^“]*“|“[^”]*”|「[^」]*」|『[^』]*』|«[^»]*»|"[^"]*")*')
_FILE = re.compile(r"(\S.{0,120}\.[A-Za-z0-9]{2,5}) \([^()]{1,60}\)")
_BRACKETED = re.compile(r"<([^<>]{1,80})>")
_EDITED = re.compile(
    r" ?<(?:This message was edited|このメッセージは編集されました|Diese Nachricht wurde bearbeitet\.?|Se editó este mensaje\.?)>$"
)
_DELETED = re.compile(
    r"(?:You deleted this message|This message was deleted(?: by admin .{1,60})?|このメッセージ[はを]削除(?:されました|しました)|メッセージ[をは]削除(?:しました|されました)|"
    r"(?:Du hast diese|Diese) Nachricht (?:wurde )?gelöscht|Eliminaste este mensaje|Se eliminó este mensaje|Ce message a été supprimé|"
    r"Vous avez supprimé ce message|(?:Essa m|M)ensagem (?:foi )?apagada|Você apagou esta mensagem|(?:Questo messaggio è stato|Hai) eliminato(?: questo messaggio)?|"
    r"삭제된 메시지입니다|이 메시지는 삭제되었습니다|(?:[此這]則?|)訊息已刪除|你已刪除[此這]則?訊息|[此该]消息已删除|您?已?删除了?[此该这]条?消息|"
    r"(?:यह संदेश|आपने यह (?:संदेश|मैसेज)|यह मैसेज) (?:हटा दिया गया(?: था)?|हटाया)|Dit bericht (?:is|werd) verwijderd|Je hebt dit bericht verwijderd|"
    r"(?:Вы удалили данное сообщение|Данное сообщение удалено)|Bu mesaj silindi|Bu mesajı sildiniz|Pesan ini telah dihapus|Anda menghapus pesan ini|"
    r"تم حذف هذه الرسالة|حذفت هذه الرسالة|คุณลบข้อความนี้|ข้อความนี้ถูกลบ)[.。।]?"
)
_CALL = re.compile(
    r"(?:missed|voice|video|group) call|通話|不在着信|(?:Sprach|Video)anruf|[Ll]lamada|[Aa]ppel (?:vocal|vidéo)|[Cc]hamada|통화|未接",
    re.IGNORECASE,
)
# What Android writes like a text.
_UNMARKED = re.compile(
    r"(?P<poll>POLL:\n.{1,300}\nOPTION: )|(?P<place>(?:live )?location(?: shared|: https?://maps\S+)\s*\Z)|(?P<call>Missed (?:group )?(?:voice|video) call\.?\Z)|Waiting for this message\.",
    re.DOTALL,
)
_KIND_OF_UNMARKED = {"poll": "polls", "place": "locations", "call": "calls", None: "messages that did not arrive"}
# What every chat begins with names calls, too: メッセージと通話はエンドツーエンドで暗号化されています。
_ENCRYPTED = re.compile(r"crypt|暗号|加密|암호|schlüssel|cifrad|cript|chiffr|crittogr|sleutel|एन्क्रिप्ट|مشفر", re.IGNORECASE)
_TITLE = re.compile(r"^(?:WhatsApp[\- ]?Chat(?: -|[\- ](?:with|mit|con|com|avec))?|WhatsApp ?Chat|WhatsApp) ", re.IGNORECASE)


@dataclass(slots=True)
class _Message:
    number: int
    start: re.Match[str]
    rest: FurtherLines


def recognizes(head: Head) -> bool:
    """By a first message of this form; a file that was renamed, by two of them."""
    starts = [bool(_START.match(_plain(line))) for line in head.text.splitlines()[:40] if line.strip()]
    return bool(starts) and starts[0] and (sum(starts) > 1 or len(starts) == 1)


def _plain(line: str) -> str:
    return line.translate(_OTHER_MARKS)


def read_file(source: Source, name: str, options: ReadOptions) -> Iterator[ImportItem]:
    """Yields a row for each message. A day of a chat is a session."""
    path = PurePosixPath(name)
    title = _TITLE.sub("", (path.parent.name or source.label) if path.stem == "_chat" else path.stem).strip("_ ")
    open_names = Counter[str]()
    day_in = _order(_starts(source, name, open_names))
    names = {speaker for speaker, count in open_names.items() if count >= _LEAST_MESSAGES}
    equals = Equals()
    for message in _messages(source, name):
        where = f"{name}, line {message.number}"
        said_at = _moment(message.start, day_in)
        if said_at is None:
            yield ImportItem(where, refused="It has no day or no time that there is; days of the Islamic calendar are not read.")
            continue
        speaker, text, kinds = _said("\n".join(message.rest.lines), names)
        written, day = message.start[0][: message.start.start("rest")].strip(f"{MARK} "), said_at.date().isoformat()
        turn = Turn(
            speaker,
            text,
            in_zone(said_at, options.zone),
            " ".join(filter(None, (PROGRAM, title, day))),
            (written, speaker or "", text, equals.number(day, written, speaker or "", text)),
            role_of(speaker, by_user=True),
            kinds,
            {"chat": title, "line": message.number},
        )
        yield from turn_items(FORM, where, turn)
        yield from message.rest.too_long(where)


def _messages(source: Source, name: str) -> Iterator[_Message]:
    message: _Message | None = None
    for number, raw in text_lines(source, name):
        line = _plain(raw)
        if start := _START.match(line):
            if message:
                yield message
            message = _Message(number, start, FurtherLines(start["rest"], MESSAGE_CHARACTERS))
        elif message:
            message.rest.add(line)
    if message:
        yield message


def _starts(source: Source, name: str, open_names: Counter[str]) -> Iterator[re.Match[str]]:
    """The beginnings of the messages. Of what stands before their texts, what has open quotation marks is counted."""
    for message in _messages(source, name):
        speaker, _ = _parted(f"{message.rest.lines[0]}\n")
        open_names.update([speaker] if speaker and not _NAME.fullmatch(speaker) else [])
        yield message.start


def _parted(rest: str) -> tuple[str | None, str]:
    """What stands before the text of a message, such as a name, and the text."""
    for separator in (": ", ":\n"):
        speaker, colon, text = rest.removeprefix(MARK).partition(separator)
        if colon and len(speaker) <= 100 and "\n" not in speaker:
            return speaker, text
    return None, ""


def _said(rest: str, open_names: Container[str]) -> tuple[str | None, str, tuple[str, ...]]:
    """Who says what in the text of a message, and the kinds of what the program wrote in it. Without a speaker all of it is the program's."""
    speaker, text = _parted(rest)
    if speaker is None or not (_NAME.fullmatch(speaker) or speaker in open_names):
        return None, "", ("calls" if _is_call(rest) else "notices",)
    said = _EDITED.sub("", text.rstrip())
    return speaker, *(_marked(said) if MARK in said else _unmarked(said))


def _marked(said: str) -> tuple[str, tuple[str, ...]]:
    """The text before a mark, and the kind of what the program wrote behind it."""
    text, _, by_program = said.partition(MARK)
    # A document has its name before the mark, and between marks how long it is.
    text, by_program = ("", by_program.rpartition(MARK)[2]) if text.rstrip().endswith("•") else (text, by_program)
    is_edited = text.strip() and by_program.startswith("<") and media_kind(by_program) is None and ":" not in by_program
    return text, () if is_edited or not by_program.strip() else (_kind(by_program),)


def _unmarked(text: str) -> tuple[str, tuple[str, ...]]:
    """The text of a message without marks, and the kind of what Android wrote in it."""
    first, _, caption = text.partition("\n")
    if file := _FILE.fullmatch(first):
        return caption, (media_kind(file[1]) or "files",)
    if _BRACKETED.fullmatch(first):
        return caption, (_kind(first),)
    if _DELETED.fullmatch(text.strip()):
        return "", ("deleted messages",)
    if notice := _UNMARKED.match(text):
        return "", (_KIND_OF_UNMARKED[notice.lastgroup],)
    return "" if text.strip() == "null" else text, ()


def _kind(words: str) -> str:
    """The kind of what the program wrote in place of a text, in the words of any language."""
    if _DELETED.fullmatch(words.strip()):
        return "deleted messages"
    if _is_call(words):
        return "calls"
    return kind_in_words(words.strip("<> ")) or ("pictures and files" if "<" in words else "notices")


def _is_call(words: str) -> bool:
    return _CALL.search(words[:200]) is not None and not _ENCRYPTED.search(words[:200])


def _order(starts: Iterator[re.Match[str]]) -> Callable[[int, int, int], date | None]:
    """How the three numbers of the file's dates are a day: where the year doesn't come first, decided from all of them, in doubt by the form."""
    order, last, is_year_first = DayOrder(), None, False
    for last in starts:
        first, middle, year = (int(last[part]) for part in ("first", "middle", "last"))
        is_year_first = is_year_first or first > 31
        order.add(first, middle, year)
    if is_year_first:
        return day_of_phone
    is_american = last and last["after"] and last["after"].isupper() and last[0].lstrip(f"{MARK}[").count("/") > 1
    if order.is_day_first(in_doubt=not is_american):
        return lambda first, second, third: day_of_phone(third, second, first)
    return lambda first, second, third: day_of_phone(third, first, second)


def _moment(start: re.Match[str], day_in: Callable[[int, int, int], date | None]) -> datetime | None:
    day = day_in(*(int(start[part]) for part in ("first", "middle", "last")))
    hour, minute, second = hour_of(int(start["hour"]), start["before"], start["after"]), int(start["minute"]), int(start["second"] or 0)
    return at_time(day, hour, minute, second)
