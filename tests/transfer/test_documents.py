"""Documents become pieces that know their title, page and heading; what can't be read of one is named."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_text_splitters import RecursiveCharacterTextSplitter
from PIL import Image
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part as PptxPart
from pptx.opc.packuri import PackURI
from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

from memory_mcp import extras
from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import Format, documents, sections
from memory_mcp.transfer.formats.flat_html import DEEPEST, PUT_IN, flattened
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions
from memory_mcp.transfer.formats.readers import detect_format, parts_of
from memory_mcp.transfer.formats.sources import SMALL_BYTES
from memory_mcp.transfer.formats.table import ROWS
from memory_mcp.transfer.formats.worker import Asked, Failed, answers
from memory_mcp.wording import in_japanese

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


def packed_again(data: bytes, **files: str) -> bytes:
    """A file of Office with other files in it, by their names without folders and endings."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(made, "w") as after:
        for entry in before.infolist():
            after.writestr(entry, before.read(entry))
        for name, text in files.items():
            after.writestr(f"{'docProps' if name == 'core' else 'word'}/{name}.xml", text)
    return made.getvalue()


def test_spaces_of_every_width_and_the_indentation_of_code_and_lists_stay(tmp_path: Path) -> None:
    page = "<h1>第一章　はじめに</h1><p>氏名　山田　100&nbsp;km a&emsp;b<pre>def f():\n    return 1</pre><ul><li>外<ul><li>内</li></ul></li></ul>"
    ((_, told_of_it, text),) = told(read(tmp_path / "a.html", page.encode()))
    assert told_of_it["heading"] == "第一章　はじめに"
    assert text.split("\n\n")[1].split("  \n") == ["氏名　山田　100 km a b", "```\ndef f():\n    return 1\n```", "* 外\n  + 内"]


@pytest.mark.parametrize(
    "text", ["氏名　山田　太郎", "100\u00a0km", "見え\u200bない", "段落\u3000\n\n\u3000次の段落", "```\n    字下げ\n```"]
)
def test_a_piece_is_known_by_its_printable_characters(tmp_path: Path, text: str) -> None:
    """As it was when the library that cut pages deleted all others."""
    (piece,) = sections.pieces(text, RecursiveCharacterTextSplitter(chunk_size=2_000, chunk_overlap=0))
    blocks = ["\n".join("".join(filter(str.isprintable, line.strip())) for line in block.split("\n")) for block in text.split("\n\n")]
    assert piece.known_by == ("  \n".join(blocks),)


def test_what_joins_and_parts_letters_stays_and_changes_no_key(tmp_path: Path) -> None:
    texts = ("می\u200cخواهم 👨\u200d👩\u200d👧", "میخواهم 👨👩👧")
    shown, plain = (item.row for text in texts for item in read(tmp_path / "a.html", f"<p>{text}</p>".encode()) if item.row)
    assert shown["content"].endswith(texts[0])
    assert shown["key"] == plain["key"]


def test_a_line_break_on_a_slide_is_a_space(tmp_path: Path) -> None:
    assert [text for _, _, text in told(read(tmp_path / "a.pptx", pptx(("今年の\v目標", "売上\v二倍"))))] == ["今年の 目標\n\n売上 二倍"]


def test_a_computed_text_of_word_is_read(tmp_path: Path) -> None:
    number = '</w:t></w:r><w:fldSimple w:instr=" SEQ 図 "><w:r><w:t>1</w:t></w:r></w:fldSimple><w:r><w:t xml:space="preserve"> 売上'
    assert [text for _, _, text in told(read(tmp_path / "a.docx", docx(("", f"図{number}"))))] == ["図1 売上"]


def test_what_a_word_file_has_beside_its_text_is_counted_and_its_title_is_its_source(tmp_path: Path) -> None:
    data = packed_again(
        docx(("", "本文")),
        core="<cp:coreProperties><dc:title>計画 &amp; 予定</dc:title></cp:coreProperties>",
        comments=f'<w:comments xmlns:w="{MAIN}"><w:comment w:id="1"/><w:comment w:id="2"/></w:comments>',
        header1="<w:hdr><w:t>頭</w:t></w:hdr>",
        footer1="<w:ftr/>",
    )
    items = read(tmp_path / "a.docx", data)
    assert [source for source, _, _ in told(items)] == ["計画 & 予定"]
    assert [item.left_out for item in items if item.left_out] == ["comments", "comments", "headers and footers"]


@pytest.mark.parametrize(
    ("cells", "lines"),
    [
        ('<tr><td rowspan="2">油</td><td>1L</td></tr><tr><td>2L</td></tr><tr><td>酢<td>3L', ["| 油 | 1L |", "|  | 2L |", "| 酢 | 3L |"]),
        ("<tr><td>油<td rowspan=3>1L<tr><td>酢<tr><td>塩<tr><td>糖<td>2L", ["| 油 | 1L |", "| 酢 |  |", "| 塩 |  |", "| 糖 | 2L |"]),
        ("<tr><td rowspan=2 colspan=2>油<td>1L<tr><td>2L", ["| 油 | | 1L |", "|  |  | 2L |"]),
    ],
)
def test_cells_stay_in_their_columns_below_one_that_reaches_down_and_keep_their_keys(tmp_path: Path, cells: str, lines: list[str]) -> None:
    (row,) = (item.row for item in read(tmp_path / "a.html", f"<table>{cells}</table>".encode()) if item.row)
    assert row["content"].split("\n")[2:] == lines
    (without,) = (item.row for item in read(tmp_path / "a.html", f"<table>{cells.replace('rowspan', 'x')}</table>".encode()) if item.row)
    assert row["key"] == without["key"]


def test_a_table_that_reaches_down_without_end_is_read(tmp_path: Path) -> None:
    page = "<table>" + "<tr>" + "<td rowspan=9999>x" * 40 + "<tr><td>y" * 1_000 + "</table>"
    assert sum(text.count("y") for _, _, text in told(read(tmp_path / "a.html", page.encode()))) == 1_000


def test_a_cell_reaches_down_in_its_own_table_however_deep_it_is() -> None:
    inner = "<table><tr><td>a<td>b<tr><td>c<td>d</table>"
    page = f"<table><tr><td rowspan=2>x<td>{inner}<tr><td>y</table>"
    assert flattened(page).count(PUT_IN) == 1
    assert flattened("<table>" * 200_000) == "<table>" * DEEPEST


def test_a_table_of_empty_cells_is_left_out(tmp_path: Path) -> None:
    items = read(tmp_path / "a.html", b"<p>x<table><tr><td><td><tr><td><td></table>")
    assert [text.split()[0] for _, _, text in told(items)] == ["x"]
    items = read(tmp_path / "b.html", b"<table><tr><td><td><tr><td><td></table>")
    assert [item.left_out for item in items] == ["empty tables"]


def test_controls_of_a_page_stand_apart_and_change_no_key(tmp_path: Path) -> None:
    page = "<p>名前<textarea>下書き</textarea><select><option>東京<option>大阪</select><math><mi>x</mi><mo>=</mo></math><img src=x alt=絵>"
    (with_controls,) = (item.row for item in read(tmp_path / "a.html", page.encode()) if item.row)
    assert with_controls["content"].split() == ["名前", "下書き", "東京", "大阪", "x=", "絵"]
    (without,) = (item.row for item in read(tmp_path / "a.html", "<p>名前下書き東京大阪x= 絵".encode()) if item.row)
    assert with_controls["key"] == without["key"]


def test_the_diagram_of_a_slide_is_read_and_a_title_below_a_chart_is_its_heading(tmp_path: Path) -> None:
    show = Presentation()
    drawn = show.slides.add_slide(show.slide_layouts[6])
    part = PptxPart(
        PackURI("/ppt/diagrams/data1.xml"),
        "application/xml",
        drawn.part.package,
        b"<a:t>&lt;\xe4\xbc\x81\xe7\x94\xbb&gt;</a:t><a:t>x</a:t>",
    )
    drawn.part.relate_to(part, "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData")
    charted = show.slides.add_slide(show.slide_layouts[5])
    charted.shapes.title.text, charted.shapes.title.top = "頁の題", 5_000_000
    values = CategoryChartData()
    values.categories = ["東"]
    values.add_series("売上", (1.5,))
    charted.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9, 9, values)
    show.save(tmp_path / "made.pptx")
    first, second = told(read(tmp_path / "a.pptx", (tmp_path / "made.pptx").read_bytes()))
    assert first[2] == "<企画>  \nx"
    assert second[1]["heading"].startswith("頁の題")
    assert second[2].endswith("| 東 | 1.5 |")


def test_what_somebody_wrote_on_a_page_is_counted(tmp_path: Path) -> None:
    writer, made = PdfWriter(io.BytesIO(pdf(["One."]))), io.BytesIO()
    for kind, value in (("/Text", "x"), ("/Widget", "Yamada"), ("/Widget", ""), ("/Link", "x")):
        fields = {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject(kind),
            NameObject("/V"): TextStringObject(value),
        }
        writer.pages[0][NameObject("/Annots")] = ArrayObject([*writer.pages[0].get("/Annots", []), DictionaryObject(fields)])
    writer.add_metadata({"/Title": "untitled"})
    writer.write(made)
    items = read(tmp_path / "名.pdf", made.getvalue())
    assert [item.left_out for item in items if item.left_out] == ["comments", "filled fields of a form"]
    assert [source for source, _, _ in told(items)] == ["名"]


def test_a_file_of_scans_alone_says_what_it_has_instead_of_texts(tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "scan.pdf", "PDF")
    *_, failed = answers(Asked(tmp_path / "scan.pdf", Format.AUTO, "nilou"))
    assert isinstance(failed, Failed)
    assert f"all of it is left out: {documents.SCANS}: 1. Of scans, make texts first (OCR)" in str(failed.refusal)
    assert "スキャン）: 1）" in str(in_japanese(str(failed.refusal)))
    (tmp_path / "a.csv").write_text(",,\n,,\n")
    *_, of_table = answers(Asked(tmp_path / "a.csv", Format.AUTO, "nilou"))
    assert isinstance(of_table, Failed)
    assert str(of_table.refusal).endswith("all of it is left out: empty tables: 1.")
    assert in_japanese(str(of_table.refusal)) == "インポートできるものがありません（読まなかったもの: 空の表: 1）。"


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
    ((where, reason),) = refused(read(tmp_path / "a.pdf", pdf(["One."])))
    assert where == "a.pdf"
    assert 'pip install "persona-memory-mcp[documents]"' in reason


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
