"""Documents become pieces that know their title, page and heading; what can't be read of one is named."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pptx import Presentation
from pypdf import PdfWriter

from memory_mcp import extras
from memory_mcp.errors import InvalidInput, NotInstalled
from memory_mcp.transfer.formats import Format, documents
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format, parts_of
from memory_mcp.transfer.formats.sources import SMALL_BYTES
from memory_mcp.transfer.formats.table import ROWS

MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def pdf(pages: Sequence[str | bytes], title: str = "Guide", font: bytes = b"/Type1 /BaseFont /Helvetica") -> bytes:
    """A PDF file of pages with a line of text each, or with such a stream, of which nobody knows how it is packed."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{4 + 2 * number} 0 R' for number in range(len(pages)))}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype %s >>" % font,
    ]
    for number, page in enumerate(pages):
        stream = page if isinstance(page, bytes) else f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET".encode()
        packing = b"/Filter /Unknown " if isinstance(page, bytes) else b""
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (5 + 2 * number),
            b"<< %s/Length %d >>\nstream\n%s\nendstream" % (packing, len(stream), stream),
        ]
    data, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info << /Title ({title}) >> >>\nstartxref\n{len(data)}\n%%EOF"
    return data + head + trailer.encode()


def packed(files: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def docx(*paragraphs: tuple[str, str]) -> bytes:
    """A Word file of paragraphs with their styles."""
    styled = (f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>' for style, text in paragraphs)
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{WORD_TYPE}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" Type="{OFFICE}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{MAIN}"><w:body>{"".join(styled)}</w:body></w:document>',
        }
    )


def pptx(*slides: tuple[str, str]) -> bytes:
    data, show = io.BytesIO(), Presentation()
    for title, text in slides:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    show.save(data)
    return data.getvalue()


def epub(title: str, chapter: str) -> bytes:
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="content.opf"/></rootfiles></container>',
            "content.opf": f'<package xmlns:dc="d"><metadata><dc:title>{title}</dc:title></metadata>'
            '<manifest><item id="c" href="c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>',
            "c.xhtml": f"<html><body>{chapter}</body></html>",
        }
    )


HTML = "<html><head>{}<title>灯台の手引き</title><script>x()</script></head><body><h1>歴史</h1><p>百年前に建てられた。</p><h2>塗装</h2><p>五月に塗る。</p></body></html>"


def read(path: Path, data: bytes) -> list[ImportItem]:
    path.write_bytes(data)
    assert detect_format(path) is Format.DOCUMENT
    return list(ROWS[Format.DOCUMENT].read(path, ReadOptions(), print))


def told(items: list[ImportItem]) -> list[tuple[str, dict[str, Any], str]]:
    return [(item.row["source"], item.row["metadata"]["document"], item.row["content"]) for item in items if item.row]


def refused(items: list[ImportItem]) -> list[tuple[str, str]]:
    return [(item.where, item.refused) for item in items if item.refused]


@pytest.mark.parametrize(
    ("name", "data", "pieces"),
    [
        ("a.pdf", pdf(["A lighthouse.", "", "Painted in May."]), [({"page": 1}, "A lighthouse."), ({"page": 3}, "Painted in May.")]),
        (
            "a.docx",
            docx(("Heading1", "灯台の歴史"), ("", "百年前に建てられた。"), ("Heading2", "塗装"), ("", "五月に塗る。")),
            [
                ({"heading": "灯台の歴史"}, "灯台の歴史\n\n百年前に建てられた。"),
                ({"heading": "灯台の歴史 > 塗装"}, "灯台の歴史 > 塗装\n\n五月に塗る。"),
            ],
        ),
        (
            "a.pptx",
            pptx(("灯台", "百年前"), ("塗装", "五月")),
            [({"page": 1, "heading": "灯台"}, "灯台\n\n百年前"), ({"page": 2, "heading": "塗装"}, "塗装\n\n五月")],
        ),
        ("a.epub", epub("灯台の本", "<h1>一章</h1><p>白い。</p>"), [({"heading": "一章"}, "一章\n\n白い。")]),
        *(
            (
                name,
                HTML.format(head).encode(encoding),
                [({"heading": "歴史"}, "歴史\n\n百年前に建てられた。"), ({"heading": "歴史 > 塗装"}, "歴史 > 塗装\n\n五月に塗る。")],
            )
            for name, head, encoding in (
                ("a.html", "", "utf-8"),
                ("b.htm", "", "cp932"),
                ("c.html", '<meta charset="euc-jp">', "euc-jp"),
                ("d.html", '<meta charset="nonsense">', "utf-8-sig"),
            )
        ),
    ],
)
def test_a_document_is_read_in_pieces_that_know_where_they_stand(tmp_path: Path, name: str, data: bytes, pieces: Any) -> None:
    items = read(tmp_path / name, data)
    found = told(items)
    assert [({field: value for field, value in about.items() if field != "title"}, text) for _, about, text in found] == pieces
    titles = {".pdf": "Guide", ".epub": "灯台の本", ".html": "灯台の手引き", ".htm": "灯台の手引き"}
    assert {source for source, _, _ in found} == {about["title"] for _, about, _ in found} == {titles.get(Path(name).suffix, "a")}
    assert {(item.row["kind"], item.row["session_id"]) for item in items if item.row} == {("document", name)}
    assert [item.where for item in items if item.left_out == "pages without text"] == (["a.pdf, page 2"] if name == "a.pdf" else [])
    assert [item.row["key"] for item in read(tmp_path / name, data) if item.row] == [item.row["key"] for item in items if item.row]


def test_texts_are_read_as_documents_if_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# 歴史\n\n百年前。\n", encoding="utf-8")
    assert detect_format(path) is Format.TEXT
    assert told(list(ROWS[Format.DOCUMENT].read(path, ReadOptions(), print))) == [
        ("a", {"title": "a", "heading": "歴史"}, "歴史\n\n百年前。")
    ]


def test_a_heading_without_text_of_its_own_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# 一章\n\n## 五月五日は誕生日\n## 節\n節の文\n\n# 付録\n", encoding="utf-8")
    found = told(list(ROWS[Format.DOCUMENT].read(path, ReadOptions(), print)))
    assert [text for _, _, text in found] == ["一章 > 五月五日は誕生日", "一章 > 節\n\n節の文", "付録"]


def test_a_slide_has_its_title_wherever_it_stands(tmp_path: Path) -> None:
    data, show = io.BytesIO(), Presentation()
    for title, height in (("章扉", None), ("下の題", 5_000_000)):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = title
        if height:
            slide.shapes.title.top = height
            slide.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "上の文"
    picture = io.BytesIO()
    Image.new("RGB", (2, 2)).save(picture, "PNG")
    for described in ("image.png", "灯台の絵"):
        shape = show.slides.add_slide(show.slide_layouts[6]).shapes.add_picture(picture, 0, 0)
        shape._element.nvPicPr.cNvPr.set("descr", described)
    show.save(data)
    items = read(tmp_path / "a.pptx", data.getvalue())
    assert [text for _, _, text in told(items)] == ["章扉", "下の題\n\n上の文", "灯台の絵"]
    left_out = [(item.where, item.left_out) for item in items if item.left_out]
    assert left_out == [("a.pptx, page 3", documents.SCANS), ("a.pptx, page 4", "pictures")]


def test_furigana_in_word_leaves_its_words(tmp_path: Path) -> None:
    text = "山田"
    ruby = (
        f"</w:t></w:r><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>やまだ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>{text}</w:t></w:r></w:rubyBase>"
        "</w:ruby></w:r><w:r><w:t>さん"
    )
    assert [content for _, _, content in told(read(tmp_path / "a.docx", docx(("", f"今日、{ruby}"))))] == ["今日、山田さん"]


def test_of_a_page_the_unseen_is_left_out_and_pictures_are_counted(tmp_path: Path) -> None:
    page = (
        '<p>前</p><img src="x" alt="写真の説明"><noscript>JSを有効に</noscript><template>雛形</template>後<table><tr><th>絵</th></tr>'
        '<tr><td><img src="y.png" alt="y.png">灯台</td></tr></table><noscript>終わりがない'
    )
    items = read(tmp_path / "a.html", page.encode())
    ((_, _, text),) = told(items)
    assert text.split() == ["前", "写真の説明", "後", "|", "絵", "|", "|", "---", "|", "|", "灯台", "|", "終わりがない"]
    assert [item.left_out for item in items if item.left_out] == ["pictures", "pictures"]


def test_the_table_of_contents_of_a_book_is_left_out(tmp_path: Path) -> None:
    contents = '<nav class="x" epub:type="toc"><ol><li>目次の行</li></ol></nav><nav><p>本文</p></nav>'
    assert [text for _, _, text in told(read(tmp_path / "a.epub", epub("本", contents)))] == ["本文"]


def test_vertical_text_of_a_page_is_a_line(tmp_path: Path) -> None:
    column = "".join(f" 0 -14 Td <{character.encode('utf-16-be').hex()}> Tj" for character in "縦書きの文︒")
    page = pdf([f") Tj{column} ("], font=b"/Type0 /Encoding /UniJIS-UTF16-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 >>]")
    assert [text for _, _, text in told(read(tmp_path / "a.pdf", page))] == ["縦書きの文。"]


def test_a_scan_and_a_password_are_said(tmp_path: Path) -> None:
    scan, locked = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (9, 9)).save(scan, "PDF")
    assert [item.left_out for item in read(tmp_path / "scan.pdf", scan.getvalue())] == [documents.SCANS]
    writer = PdfWriter(io.BytesIO(pdf(["One."])))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    assert refused(read(tmp_path / "b.pdf", locked.getvalue())) == [
        ("b.pdf", "b.pdf can't be read: it has a password. Save it without one.")
    ]


def test_long_texts_are_cut_at_the_ends_of_sentences(tmp_path: Path) -> None:
    sentence = "灯台は百年前に建てられ、毎年五月に塗り直される。"
    found = told(read(tmp_path / "a.docx", docx(("", sentence * 300))))
    assert len(found) > 3
    assert all(text.endswith("。") and len(text) <= documents.PIECE_CHARACTERS for _, _, text in found)
    assert "".join(text for _, _, text in found) == sentence * 300


def test_a_page_that_cannot_be_read_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    bad = b"packed in a way that nobody knows"
    items = read(tmp_path / "a.pdf", pdf(["One.", bad, "Three.", bad]))
    assert [(about["page"], text) for _, about, text in told(items)] == [(1, "One."), (3, "Three.")]
    assert [(where, reason.partition(":")[0]) for where, reason in refused(items)] == [
        ("a.pdf, page 2", "It can't be read"),
        ("a.pdf, page 4", "It can't be read"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.pdf", b"no PDF", "can't be read"),
        ("a.pdf", b"%PDF-1.7\n%%EOF", "can't be read"),
        ("a.docx", b"no zip", "can't be read"),
        ("a.docx", packed({"word/document.xml": "<a/>"}), "can't be read"),
        ("a.docx", packed({"_rels/.rels": "<a", "word/document.xml": "<a/>"}), "can't be read"),
        ("a.docx", packed({"word/document.xml": b"0" * (SMALL_BYTES + 1)}), "expands to"),
        ("a.pptx", packed({"ppt/presentation.xml": "x"}), "can't be read"),
        ("a.epub", packed({"mimetype": "application/epub+zip"}), "can't be read"),
        (
            "a.epub",
            packed({"META-INF/container.xml": '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><container>&d;</container>'}),
            "can't be read",
        ),
    ],
)
def test_a_hostile_document_is_refused_in_a_sentence(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    items = read(tmp_path / name, data)
    ((_, said),) = refused(items)
    assert reason in said
    assert told(items) == []


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h1>見出し</h1>前" + "<div>" * 50_000 + "奥" + "</div>" * 50_000 + "<p>後", "前\n\n奥\n\n後"),
        ("<h1>見出し</h1>" + "<p>段落" * 3_000, "\n\n".join(["段落"] * 3_000)),  # their ends are left out
        ("<h1>見出し</h1><script>'<div>'.repeat(9)</script>" + "<script><div><!--" * 3_000, ""),
        ("<h1>見出し</h1><table>" + "<tr><td>あ<td>い" * 2 + "</table>", "|  |  |\n| --- | --- |\n| あ | い |\n| あ | い |"),
        ("<h1>見出し</h1><ruby>灯台<rp>(</rp><rt>とうだい</rt><rp>)</rp></ruby>に<RUBY>猫<rt>ねこ</ruby>がいた", "灯台に猫がいた"),
    ],
)
def test_a_page_keeps_its_headings_however_deep_it_is(tmp_path: Path, page: str, text: str) -> None:
    for name, data in (("a.html", page.encode()), ("a.epub", epub("本", page))):
        shown = "".join(part.text for part in documents._parts(data, name, Path(name).suffix))
        assert shown.strip() == f"# 見出し\n\n{text}".strip()


def test_without_the_libraries_the_refusal_has_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.EXTRAS, "documents", ("a_module_that_nobody_has",))
    with pytest.raises(NotInstalled, match=r'pip install "persona-memory-mcp\[documents\]"'):
        read(tmp_path / "a.pdf", pdf(["One."]))


def test_a_folder_of_documents_is_read_with_its_other_files_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["One."]))
    (tmp_path / "b.bin").write_bytes(b"x")
    assert detect_format(tmp_path) is Format.DOCUMENT
    items = list(ROWS[Format.DOCUMENT].read(tmp_path, ReadOptions(), print))
    assert [text for _, _, text in told(items)] == ["One."]
    assert [(item.where, item.left_out) for item in items if item.left_out] == [("b.bin", "other files")]
    assert json.dumps([item.row for item in items])


@pytest.mark.parametrize(
    ("message", "program"),
    [
        ('<div class="message default clearfix" id="message1"><div class="text">やあ</div></div>', "Telegram Desktop"),
        ('<div class="chatlog__message-group"><div class="chatlog__content">やあ</div></div>', "DiscordChatExporter"),
        ("<title>ChatGPT Data Export</title><script>var jsonData = [];</script>", "ChatGPT"),
    ],
)
def test_the_page_of_a_chat_is_refused_with_the_form_that_has_its_speakers(tmp_path: Path, message: str, program: str) -> None:
    path = tmp_path / "messages.html"
    path.write_text(f"<html><body>{message}</body></html>", encoding="utf-8")
    (item,) = ROWS[Format.DOCUMENT].read(path, ReadOptions(), print)
    to_do = "Import the .json of the export, or export the chat as JSON."
    assert item.refused == f"messages.html is not read: it is the page of a chat, by {program}. {to_do}"


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize(
    ("files", "kinds", "texts"),
    [
        ({"a.html": "<h1>歴史</h1>百年前", "表.csv": "内容\n柿\n", "絵.jpg": ""}, ["document", "csv"], ["歴史\n\n百年前", "柿"]),
        ({"a.html": "<p>百年前", "表.csv": "内容\n柿\n"}, ["document", "csv"], ["百年前", "柿"]),
        ({"表.csv": "内容\n柿\n", "b/表.tsv": "内容\n桃\n"}, ["csv"], ["桃", "柿"]),
    ],
)
def test_documents_and_tables_are_read_side_by_side(
    tmp_path: Path, files: dict[str, str | bytes], kinds: list[str], texts: list[str], is_zip: bool
) -> None:
    path = tmp_path / ("a.zip" if is_zip else "a")
    if is_zip:
        path.write_bytes(packed(files))
    for name, text in {} if is_zip else files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(str(text))
    parts = parts_of(path)
    assert [part.format for part in parts] == kinds
    items = [item for part in parts for item in ROWS[part.format].read(part.at, ReadOptions(), print)]
    assert [item.row["content"] for item in items if item.row] == texts
    assert [(item.where, item.refused, item.left_out) for item in items if not item.row] == [("絵.jpg", "", "other files")][
        : "絵.jpg" in files
    ]


def test_a_zip_with_files_of_another_kind_is_refused_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(packed({"README.html": "x", **{f"{number}.bin": "x" for number in range(5)}}))
    with pytest.raises(InvalidInput, match=r"it holds 0\.bin, 1\.bin, 2\.bin, 3\.bin, 4\.bin, …"):
        detect_format(tmp_path / "b.zip")
    (tmp_path / "c.zip").write_bytes(packed({}))
    with pytest.raises(InvalidInput, match=r"^[^/]*holds nothing to import"):
        detect_format(tmp_path / "c.zip")


def test_a_zip_of_texts_and_tables_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(packed({"日記.txt": "百年前", "表.csv": "内容\n柿\n"}))
    items = [item for part in parts_of(tmp_path / "a.zip") for item in ROWS[part.format].read(part.at, ReadOptions(), print)]
    assert [item.row["content"] for item in items if item.row] == ["百年前", "柿"]
