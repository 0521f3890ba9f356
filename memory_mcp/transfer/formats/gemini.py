"""Reads what Google keeps of Gemini: *My Activity* of Takeout, as JSON or as the page (HTML) that it is unless one asks. A prompt and its answer are
an activity, which says of which conversation it is only by the address that it links to."""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats.import_rows import moment, objects, text_in
from memory_mcp.transfer.formats.recognition import Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.turns import FILES, Message
from memory_mcp.transfer.formats.written_times import written_time

FORM = "gemini"
PAGES = (".html", ".htm")
# The styles of a page stand before its activities.
STYLES_LIMIT_BYTES, ACTIVITY_LIMIT_CHARACTERS, LONGEST_TIME = 1024**2, 4 * 1024**2, 60
_TAG = re.compile(r"<[^<>]{0,2000}+>")
_BLOCK_END = re.compile(r"(?i)</(?:p|li|h[1-6]|div|tr|pre|blockquote|ul|ol)>|<br ?/?>")
_CELL_END = re.compile(r"(?i)</t[dh]>(?=\s{0,9}<t[dh])")
_PROMPTED = re.compile(
    r"(?:Prompted|Said:?|Asked|送信したメッセージ[:：]|プロンプト[:：]|Eingegebener Prompt[:：]?|Prompt saisi ?[:：]?|Mensaje enviado[:：]?)[ \u00a0]?"
)
# What somebody did with an answer.
_OTHERWISE = re.compile(r"(?:Used|Created|Selected|Gave feedback|Viewed|Edited|Deleted|Shared)\b|フィードバック")
_CELL = '<div class="outer-cell'
_HEADING = re.compile(r'mdl-typography--title">([^<]{0,80})')
_BODY = re.compile(r'mdl-typography--body-1">((?:(?!mdl-typography--body-1">).)*?)</div>\s{0,9}<div class="content-cell', re.DOTALL)
_LINE_END = re.compile(r"<br ?/?>")
_FILE_LINE = re.compile(r"Attached \d{1,3} files?\.|- .{1,300}|.{0,20}\d{1,3}.{0,20}(?:ファイル|添付).{0,20}")


def _is_of_gemini(name: str) -> bool:
    return "gemini" in name.casefold() or name.strip() == "Bard"


def is_activity(fields: Mapping[str, Any]) -> bool:
    """Whether a JSON object is an activity of Gemini."""
    products = fields.get("products")
    named = [text_in(fields.get("header")), *map(text_in, products if isinstance(products, list) else ())]
    return "title" in fields and "time" in fields and any(map(_is_of_gemini, named))


def is_page(head: Head) -> bool:
    """Whether a page has activities of Gemini."""
    if head.suffix not in PAGES or b"mdl-" not in head.data:
        return False
    with head.opened() as file:
        text = file.read(STYLES_LIMIT_BYTES).decode(errors="replace")
    return _CELL in text and any(_is_of_gemini(heading[1]) for heading in _HEADING.finditer(text))


def session(activity: Mapping[str, Any]) -> str:
    """The conversation that an activity links to, else its day."""
    linked = text_in(activity.get("titleUrl")).partition("/app/")[2].removeprefix("c/")
    return linked or f"Gemini {(moment(activity.get('time')) or '')[:10]}"


def messages(activity: Mapping[str, Any]) -> list[Message]:
    """A prompt and its answer; of what somebody did otherwise at most the answer."""
    at, title = moment(activity.get("time")), text_in(activity.get("title"))
    details = {text_in(one.get("name")): text_in(one.get("value")) for one in objects(activity.get("details"))}
    answer = details.get("Response") or "\n\n".join(text_of(text_in(one.get("html"))) for one in objects(activity.get("safeHtmlItem")))
    prompt = details.get("Request") or _PROMPTED.sub("", title, count=1)
    is_prompt = "Request" in details or _PROMPTED.match(title) is not None or (bool(answer) and not _OTHERWISE.match(title))
    listed = activity.get("attachedFiles")
    files = (FILES,) * (len(listed) if isinstance(listed, list) and listed else bool(activity.get("imageFile")))  # a picture is listed, too
    asked = Message(True, prompt if is_prompt else "", id=f"{at} asked", said_at=at, left_out=files if is_prompt else ("notices",))
    return [asked, *([Message(False, answer, "", f"{at} answered", at)] if answer else [])]


def text_of(page: str) -> str:
    """The text of an answer."""
    return html.unescape(_TAG.sub("", _BLOCK_END.sub("\n", _CELL_END.sub(" ", page)))).strip()


def activities(source: Source, name: str, zone: ZoneInfo | None) -> Iterator[dict[str, Any]]:
    """The activities of a page, as JSON has them. Its times are in the zone that they name, or in this one.

    Raises:
        InvalidInput: it is not in UTF-8, or an activity is too long.
    """
    for cell in _cells(source, name):
        heading, body = _HEADING.search(cell), _BODY.search(cell)
        if heading and body and _is_of_gemini(html.unescape(heading[1])):
            yield _activity(body[1], zone)


def _cells(source: Source, name: str) -> Iterator[str]:
    rest = b""
    mark = _CELL.encode()
    for block in blocks(source, name):
        before, *cells = (rest + block).split(mark)
        yield from (cell.decode(errors="replace") for cell in [before, *cells][:-1])
        rest = mark + cells[-1] if cells else before
        if len(rest) > ACTIVITY_LIMIT_CHARACTERS:
            raise InvalidInput("{} is not read", "an activity in it is too long", "Ask Takeout for JSON", name)
    yield rest.decode(errors="replace")


def _activity(body: str, zone: ZoneInfo | None) -> dict[str, Any]:
    """An activity whose body has its lines: the prompt, the files with it, the time, the answer."""
    lines = _LINE_END.split(body)
    for number, line in enumerate(lines):
        words = text_of(line).replace("\u202f", " ").replace("\u00a0", " ")
        if number and words.count(":") > 1 and len(words) <= LONGEST_TIME and (at := written_time(words, zone)):
            said = [text_of(before).replace("\u00a0", " ") for before in lines[:number]]
            asked = [line for line in said[1:] if not _FILE_LINE.fullmatch(line)]
            answer = "<br>".join(lines[number + 1 :])
            files = [line for line in said[1:] if line.startswith("- ")]
            return {"title": "\n".join([said[0], *asked]).strip(), "time": at, "safeHtmlItem": [{"html": answer}], "attachedFiles": files}
    return {"title": text_of(body)}
