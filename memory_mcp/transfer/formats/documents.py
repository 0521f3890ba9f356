"""Reads documents by libraries: pages of PDF, and Word, PowerPoint, HTML, EPUB, Markdown and plain text, in pieces that know their heading.

langchain-community's loaders read PDF; of Word and HTML they keep no heading, and of PowerPoint and EPUB they have none that works from wheels alone, so
markitdown makes Markdown of these. langchain's splitters cut both. Only this module knows the libraries: docs/decisions/0072.
"""

import html
import io
import logging
import re
import struct
import tempfile
import unicodedata
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.parsers.expat import ExpatError

from memory_mcp import extras
from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.flat_html import flattened
from memory_mcp.transfer.formats.import_rows import ImportItem
from memory_mcp.transfer.formats.json_stream import OTHER_FILES, each_file, ends_in
from memory_mcp.transfer.formats.sections import Piece, pieces
from memory_mcp.transfer.formats.sources import Source, check_kind, check_packed, whole
from memory_mcp.transfer.formats.text_files import PIECE_CHARACTERS, TEXT_SUFFIXES, decoded, file_fields, title_of
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from markitdown import DocumentConverterResult, StreamInfo
    from markitdown.converters import HtmlConverter

FORM = "document"
DOCUMENT_LIMIT_BYTES = 256 * 1024**2
HTML_SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
PDF, EPUB = ".pdf", ".epub"
# Pages that programs make of chats if nobody asks for JSON: as documents they would have neither speakers nor times.
_CHAT_PAGES = {
    b'class="message default clearfix': "Telegram Desktop",
    b'class="chatlog__': "DiscordChatExporter",
    b"<title>ChatGPT Data Export</title>": "ChatGPT",
}
# Of a PDF file with more pages that can't be read, the rest is refused as a whole.
UNREADABLE_PAGES_LIMIT = 20
PICTURES, SCANS = "pictures", "pages that are pictures without text (scans)"
SEPARATORS = ["\n\n", "\n", "。", "．", "! ", "? ", ". ", "！", "？", "、", " ", ""]
_DAMAGED = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RuntimeError, OSError, EOFError, SyntaxError),
    *(zlib.error, struct.error, zipfile.BadZipFile, ExpatError),
)
_LINK = re.compile(r"\[([^\[\]\n]{0,500})\]\(([^()\n]{0,2000})\)")
_PICTURE = re.compile(f"!{_LINK.pattern}")
_PICTURE_FILE = re.compile(r".{0,300}\.(?:png|jpe?g|gif|webp|bmp|svg|tiff?|heic|emf|wmf)", re.IGNORECASE | re.DOTALL)
_SLIDE = re.compile(r"<!-- Slide number: (\d{1,6}) -->")
_BEFORE_TITLE = re.compile(r"\A(.*?)(?:^|(?<=\|))(# [^\n]*\n?)", re.MULTILINE | re.DOTALL)  # also right behind the table of a chart
# A line of vertical text, as pages of PDF have it: a character of Chinese or Japanese in each line.
_VERTICAL = re.compile(r"^(?:[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\ufe10-\ufe4f\uff01-\uff9f][ \t]*(?:\n|\Z)){4,}", re.MULTILINE)
# The reading above a word in Word, the elements around it, and those of a computed text such as the number of a figure: the library knows none of them,
# and would leave the words in them out too.
_UNKNOWN_TO_LIBRARY = re.compile(rb"<w:rt>(?:[^<]++|<(?!/?w:rt>))*+</w:rt>|</?w:(?:ruby(?:Base)?|fldSimple)\b[^<>]*+>")
_EMPTY_TABLE = re.compile(r"\A(?=[^|]*\|)[\s|-]*")
# Titles that programs give, or that nobody has given.
_NO_TITLE = re.compile(
    r"(?:untitled|無題|microsoft (?:word|powerpoint|excel)|powerpoint|word 文書|スライド 1|document\d*\Z)", re.IGNORECASE
)
_TITLE = re.compile(rb"<dc:title>([^<]{1,2000})</dc:title>")
_DIAGRAM_TEXT = re.compile(rb"<a:t>([^<]+)</a:t>")
_WORD_BESIDE = re.compile(r"word/(?:comments|header\d*|footer\d*)\.xml")
_WORD_TEXTS = re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document, such as a page (from 1), and the kinds of what it has beside a text; or why there is none. The title is that of the document."""

    text: str = ""
    page: int | None = None
    title: str = ""
    unreadable: str = ""
    is_markdown: bool = True
    left_out: tuple[str, ...] = ()


def read(source: Source) -> Iterator[ImportItem]:
    """Yields a row for each piece of the documents. Without the libraries each is refused with the command that installs them."""
    yield from each_file(source, lambda name: _read_file(source, name), ends_in(*SUFFIXES))


def _read_file(source: Source, name: str) -> Iterator[ImportItem]:
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in SUFFIXES:
        yield ImportItem(name, left_out=OTHER_FILES)
        return
    extras.require(FORM_EXTRA, f"{name} can't be read")
    stem = title_of(name)
    fields = file_fields(name, source.changed(name))
    seen = Counter[tuple[str, ...]]()
    title = ""
    for part in _parts(whole(source, name, DOCUMENT_LIMIT_BYTES), name, suffix):
        where = f"{name}, page {part.page}" if part.page else name
        title = title or ("" if _NO_TITLE.match(part.title.strip()) else part.title.strip())
        if part.unreadable:
            yield ImportItem(where, refused=part.unreadable)
        elif part.page and not part.text.strip():
            yield ImportItem(where, left_out=SCANS if PICTURES in part.left_out else "pages without text")
        yield from (ImportItem(where, left_out=kind) for kind in part.left_out if kind != PICTURES or part.text.strip() or not part.page)
        for piece in _pieces(part):
            if _EMPTY_TABLE.fullmatch(piece.text) and not piece.headings:
                yield ImportItem(where, left_out="empty tables")
                continue
            identity = (name, str(part.page or ""), *piece.known_by)
            seen[identity] += 1
            told = {"title": title or stem, "page": part.page, "heading": " > ".join(piece.headings)}
            yield from import_rows.memory_rows(
                where,
                FORM,
                (*identity, str(seen[identity])),
                "\n\n".join(filter(None, (" > ".join(piece.headings), piece.text))),
                **{**fields, "source": title or stem, "kind": FORM},
                metadata={FORM: {field: value for field, value in told.items() if value}},
                origin={"file": name},
            )


def _pieces(part: Part) -> Iterator[Piece]:
    # Imported here: only documents need it, and it takes long.
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    cut = RecursiveCharacterTextSplitter(SEPARATORS, keep_separator="end", chunk_size=PIECE_CHARACTERS, chunk_overlap=0)
    if part.is_markdown:
        return pieces(part.text, cut)
    return (Piece([], text, (text,)) for text in cut.split_text(part.text))


def _marked(text: str, page: int | None = None, title: str = "") -> Part:
    """A part in Markdown. Of its links and pictures the words stay."""
    worded, pictures = _PICTURE.subn(_said_of_picture, text)
    return Part(_LINK.sub(r"\1", worded), page, title, left_out=(PICTURES,) * pictures)


def _said_of_picture(picture: re.Match[str]) -> str:
    """The description of a picture; nothing if that is the name of a file, or of the shape, which markitdown takes where none is given."""
    said = picture[1].strip()
    return "" if _PICTURE_FILE.fullmatch(said) or re.sub(r"\W", "", said) + ".jpg" == picture[2] else f" {said} "


def _parts(data: bytes, name: str, suffix: str) -> Iterator[Part]:
    try:
        yield from LOADERS[suffix](data, name)
    except RecursionError as error:
        raise InvalidInput("{} can't be read", "something in it is nested too deeply", "Take it out", name) from error
    except damage() as error:
        raise InvalidInput(
            "{} can't be read", "{}", "Open it, and save it again", name, str(error)[:200] or type(error).__name__
        ) from error


def _pdf(data: bytes, name: str) -> Iterator[Part]:
    """The pages of a PDF file. After one that can't be read the rest is read as a file of its own."""
    with warnings.catch_warnings():
        # The library says at its import that nobody maintains it any more. What follows from that is in docs/decisions/0072.
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_community.document_loaders import PyPDFLoader  # noqa: PLC0415  as above
    from pypdf import PdfReader  # noqa: PLC0415

    check_kind(data[max(data.find(b"%PDF", 0, 1024), 0) :][:1024], name, b"%PDF")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it mends is no matter of the reader of an import
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidInput("{} can't be read", "it has a password", "Save it without one", name)
    page, pages = 0, len(reader.pages)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "document.pdf")
        path.write_bytes(data)
        for _ in range(UNREADABLE_PAGES_LIMIT):
            reason = ""
            try:
                for loaded in PyPDFLoader(path).lazy_load():
                    page += 1
                    text = _VERTICAL.sub(_in_one_line, loaded.page_content)
                    pictures = 0 if text.strip() else len(reader.pages[page - 1].images)
                    left_out = (*[PICTURES] * pictures, *_annotations(reader.pages[page - 1]))
                    yield Part(text, page, str(loaded.metadata.get("title") or ""), is_markdown=False, left_out=left_out)
            except damage() as error:
                reason, page = str(error)[:200] or type(error).__name__, page + 1
            if not reason:
                return
            yield Part(page=page, unreadable=sentence("It can't be read: {}", reason))
            if page >= pages:
                return
            _write_rest(data, page, path)
    yield Part(
        page=page + 1, unreadable=sentence("It and the {} pages after it are not read, as too many before can't be.", pages - page - 1)
    )


def _annotations(page: Mapping[str, Any]) -> Iterator[str]:
    """The kinds of what somebody has written on a page."""
    with suppress(*damage()):
        for annotation in page.get("/Annots") or ():
            fields = annotation.get_object()
            if fields.get("/Subtype") in ("/Text", "/FreeText"):
                yield "comments"
            elif fields.get("/Subtype") == "/Widget" and str(fields.get("/V") or "").strip("/") not in ("", "Off"):
                yield "filled fields of a form"


def _in_one_line(column: re.Match[str]) -> str:
    """The characters of vertical text in one line, in the forms that they have in horizontal text."""
    return unicodedata.normalize("NFKC", "".join(column[0].split())) + "\n"


def _write_rest(data: bytes, page: int, path: Path) -> None:
    """Writes the pages after one as a file."""
    from pypdf import PdfReader, PdfWriter  # noqa: PLC0415  as above

    writer = PdfWriter()
    for following in PdfReader(io.BytesIO(data)).pages[page:]:
        writer.add_page(following)
    writer.write(path)


def damage() -> tuple[type[Exception], ...]:
    """What the libraries raise where a file is damaged, or made to harm."""
    from markitdown import MarkItDownException  # noqa: PLC0415  as above
    from pypdf.errors import PyPdfError  # noqa: PLC0415

    return (PyPdfError, MarkItDownException, *_DAMAGED)


def _by_markitdown(converter: str, suffix: str) -> Callable[[bytes, str], Iterator[Part]]:
    def load(data: bytes, name: str) -> Iterator[Part]:
        import markitdown  # noqa: PLC0415  as above
        from markitdown import converters  # noqa: PLC0415

        logging.getLogger("bs4").setLevel(logging.CRITICAL)  # as pypdf's
        if suffix in HTML_SUFFIXES:
            reader, data = _flat_converter(), _html(data, name)
        else:
            check_packed(data, name)
            data = _readable(data) if suffix == ".docx" else data
            reader = getattr(converters, converter)()
            reader._html_converter = _flat_converter()  # noqa: SLF001  it makes HTML of the file, and reads that
        made = reader.convert(io.BytesIO(data), markitdown.StreamInfo(extension=suffix, charset="utf-8"))
        title, text = made.title or _title_within(data, suffix), made.markdown
        if suffix == EPUB:
            _, _, text = text.partition("\n\n")  # it begins with the fields of the book
        before, *slides = _SLIDE.split(text)
        yield _marked(before, title=title)
        yield Part(left_out=tuple(_beside_text(data)) if suffix == ".docx" else ())
        diagrams = _diagrams(data) if slides else {}
        for number, slide in zip(slides[::2], slides[1::2], strict=True):
            yield _marked(_BEFORE_TITLE.sub(r"\2\1", slide) + diagrams.get(int(number), ""), int(number), title)

    return load


def _readable(data: bytes) -> bytes:
    """A Word file without the readings above its words and the elements that the library doesn't know."""
    with zipfile.ZipFile(io.BytesIO(data)) as before:
        texts = {name: before.read(name) for name in before.namelist() if _WORD_TEXTS.fullmatch(name)}
        if not any(map(_UNKNOWN_TO_LIBRARY.search, texts.values())):
            return data
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as after:
            for entry in before.infolist():
                name = entry.filename
                after.writestr(entry, _UNKNOWN_TO_LIBRARY.sub(b"", texts[name]) if name in texts else before.read(entry))
    return made.getvalue()


def _beside_text(data: bytes) -> Iterator[str]:
    """The kinds of what a Word file has beside its text: each comment, and each header and footer with a text."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for name in filter(_WORD_BESIDE.fullmatch, packed.namelist()):
            text = packed.read(name)
            is_comments = name.endswith("comments.xml")
            yield from (
                ["comments"] * text.count(b"<w:comment ")
                if is_comments
                else ["headers and footers"] * (b"<w:t>" in text or b"<w:t " in text)
            )


def _diagrams(data: bytes) -> dict[int, str]:
    """The texts in the diagrams (SmartArt) of each slide, which the library doesn't read."""
    from pptx import Presentation  # noqa: PLC0415  as above

    texts = dict[int, str]()
    for number, slide in enumerate(Presentation(io.BytesIO(data)).slides, start=1):
        for related in slide.part.rels.values():
            if related.reltype.endswith("/diagramData"):
                words = (html.unescape(word.decode(errors="replace")) for word in _DIAGRAM_TEXT.findall(related.target_part.blob))
                texts[number] = "\n\n".join(filter(None, (texts.get(number, ""), *words)))
    return {number: f"\n\n{text}" for number, text in texts.items()}


def _title_within(data: bytes, suffix: str) -> str:
    """The title among the properties of a file of Office."""
    if suffix not in (".docx", ".pptx"):
        return ""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        properties = packed.read("docProps/core.xml") if "docProps/core.xml" in packed.namelist() else b""
    found = _TITLE.search(properties)
    return html.unescape(found[1].decode(errors="replace")) if found else ""


def _flat_converter() -> "HtmlConverter":
    """A converter of HTML of any depth."""
    from markitdown import converters  # noqa: PLC0415  as above

    class FlatConverter(converters.HtmlConverter):
        def convert(self, file_stream: BinaryIO, stream_info: "StreamInfo", **options: Any) -> "DocumentConverterResult":
            page = file_stream.read().decode(stream_info.charset or "utf-8", errors="replace")
            in_utf8 = stream_info.copy_and_update(charset="utf-8")  # type: ignore[no-untyped-call]
            in_cells = {"keep_inline_images_in": ["td", "th", *(f"h{level}" for level in range(1, 7))]}
            return super().convert(io.BytesIO(flattened(page).encode()), in_utf8, **in_cells, **options)

    return FlatConverter()


def _html(data: bytes, name: str) -> bytes:
    """The page in UTF-8: in the encoding that it names, else in one that fits. Raises InvalidInput for that of a chat."""
    from bs4.dammit import EncodingDetector  # noqa: PLC0415  as above

    if program := next((program for mark, program in _CHAT_PAGES.items() if mark in data), None):
        raise InvalidInput(
            "{} is not read", "it is the page of a chat, by {}", "Import the .json of the export, or export the chat as JSON", name, program
        )
    named = EncodingDetector.find_declared_encoding(data, is_html=True)
    try:
        text = data.decode(named) if named else decoded(data, name)
    except (UnicodeDecodeError, LookupError):
        text = decoded(data, name)
    return text.encode(errors="replace")


def _text(data: bytes, name: str) -> Iterator[Part]:
    yield _marked(decoded(data, name).replace("\r\n", "\n"))


FORM_EXTRA = "documents"
LOADERS: dict[str, Callable[[bytes, str], Iterator[Part]]] = {
    PDF: _pdf,
    ".docx": _by_markitdown("DocxConverter", ".docx"),
    ".pptx": _by_markitdown("PptxConverter", ".pptx"),
    EPUB: _by_markitdown("EpubConverter", EPUB),
    **{suffix: _by_markitdown("HtmlConverter", suffix) for suffix in HTML_SUFFIXES},
    **dict.fromkeys(TEXT_SUFFIXES, _text),
}
# Texts are read as documents only if that is asked for.
OWN_SUFFIXES = frozenset(LOADERS) - TEXT_SUFFIXES
SUFFIXES = frozenset(LOADERS)
