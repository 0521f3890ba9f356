"""Whatever is sent to the routes beside MCP, the answer is one that their OpenAPI document announces; an import counts every line."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from fuzzing import SCALARS, TEXT, TREES, Fuzzed, explore, fuzzed
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

REASON_LENGTH = 500

# To schemathesis a body of JSON lines is a text.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")

ANNOUNCED = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with fuzzed(tmp_path_factory.mktemp("fuzzed")) as target:
        yield target


def import_lines(target: Fuzzed, body: bytes, persona: str = "fuzz") -> dict[str, Any]:
    told = target.sound(target.http.post("/api/import", content=body, headers={"X-Persona": persona}))
    assert set(told) - {"graph"} == {"persona", "stored", "already_known", "refused", "errors"}
    return told


def stored(told: dict[str, Any]) -> int:
    """How many lines an import stored: memories, and what else was stated about the graph, which is told only where there is any."""
    return int(told["stored"]) + int(told.get("graph", 0))


def export(target: Fuzzed, persona: str) -> bytes:
    return target.http.get("/api/export", params={"include_deleted": "true"}, headers={"X-Persona": persona}).raise_for_status().content


def test_every_route_answers_as_its_document_says(target, figure, thorough):
    before = target.cases
    import_lines(target, '{"content": "花の話"}'.encode())
    document = target.http.get("/api/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations()]
    session = requests.Session()  # a new connection for each case takes longer than most answers
    session.trust_env = False
    assert {operation.path for operation in operations} == set(document["paths"])
    for operation in operations:
        told = document["paths"][operation.path][operation.method]
        # A header's text can't be of a wrong type, and a body of lines has the test below to itself.
        can_be_wrong = any(parameter.get("in") == "query" for parameter in told.get("parameters", []))
        for mode in schemathesis.GenerationMode if can_be_wrong else [schemathesis.GenerationMode.POSITIVE]:

            def check(case: schemathesis.Case) -> None:
                answer = case.call(base_url=target.server.url, session=session, timeout=60)
                case.validate_response(answer, checks=ANNOUNCED)
                target.cases += 1

            explore(operation.as_strategy(generation_mode=mode), check, 150 if thorough else 8)
    target.assert_unharmed()
    figure("fuzz: routes by their OpenAPI document", f"{target.cases - before} cases, 0 failures")


MOMENTS = st.datetimes().map(lambda moment: moment.isoformat()) | st.sampled_from(
    ["昨日", "9999-12-31T23:59:59-12:00", "0001-01-01", "2025-13-01", ""]
)
FITTING = {
    "content": TEXT,
    "key": TEXT | st.sampled_from(["memory_1", "memory_2", "k" * 200, "k" * 201]),
    "created_at": MOMENTS,
    "updated_at": MOMENTS,
    "tags": st.lists(TEXT, max_size=4),
    "occurred_at": MOMENTS,
    "importance": st.floats(0, 1),
    "source": TEXT,
    "session_id": TEXT,
    "kind": st.sampled_from(["fact", "conversation", "experience", "summary", "FACT"]),
    "state": st.dictionaries(st.sampled_from(["emotion", "physical_state", "x"]) | TEXT, TEXT, max_size=3),
    "questions": st.lists(TEXT, max_size=3),
    "revision": st.integers(),
    "supersedes": TEXT | st.sampled_from(["memory_1", "memory_2"]),
    "deleted_at": MOMENTS,
    "usage_count": st.integers(),
    "last_used_at": MOMENTS,
}
PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
RIGHT = {
    **dict.fromkeys(("key", "source", "session_id", "supersedes"), PLAIN),
    **{name: FITTING[name] for name in ("importance", "kind")},
    **{
        name: st.datetimes().map(lambda moment: moment.isoformat())
        for name in ("created_at", "updated_at", "occurred_at", "deleted_at", "last_used_at")
    },
    **{name: st.lists(PLAIN, max_size=3) for name in ("tags", "questions")},
    **{name: st.integers(1, 2**31) for name in ("revision", "usage_count")},
    "state": st.dictionaries(st.sampled_from(["emotion", "environment"]), PLAIN),
}
WITH_WRONG_ONES = {name: fits | TREES for name, fits in FITTING.items()}
ROWS = st.fixed_dictionaries(
    {"content": TEXT}, optional={name: fits for name, fits in FITTING.items() if name != "content"}
) | st.fixed_dictionaries({}, optional={**WITH_WRONG_ONES, "contents": SCALARS})
LINES = (
    st.fixed_dictionaries({"content": PLAIN}, optional=RIGHT).map(lambda row: json.dumps(row).encode())
    | ROWS.map(lambda row: json.dumps(row).encode())
    | ROWS.map(lambda row: json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    | TREES.map(lambda tree: json.dumps(tree).encode())
    | st.binary(max_size=60)
    | st.sampled_from(
        [
            b"",
            b" ",
            b"\r",
            b"\xef\xbb\xbf{}",
            "\u3000".encode(),
            b"[" * 20_000,
            b'{"content":' * 20_000,
            b'{"revision": ' + b"9" * 5_000 + b"}",
        ]
    )
)


def is_worth_a_count(line: bytes) -> bool:
    """Blank lines are passed over; every other one is stored, known, or refused."""
    try:
        return bool(line.decode("utf-8-sig").strip())
    except UnicodeDecodeError:
        return True


def test_every_line_of_an_import_is_stored_or_refused_and_comes_out_as_it_went_in(target, figure, thorough):
    lines = 0

    def check(body: bytes) -> None:
        nonlocal lines
        told = import_lines(target, body)
        sent = body.split(b"\n")
        assert stored(told) + told["already_known"] + told["refused"] == sum(map(is_worth_a_count, sent))
        assert len(told["errors"]) == told["refused"]
        assert all(1 <= error["line"] <= len(sent) and 0 < len(error["reason"]) < REASON_LENGTH for error in told["errors"])
        lines += len(sent)

    explore(st.lists(LINES, max_size=8).map(b"\n".join), check, 2_500 if thorough else 150)
    written = export(target, "fuzz")
    again = import_lines(target, written, persona="copy")
    assert (stored(again), again["refused"]) == (len(written.splitlines()), 0), again["errors"][:3]
    assert export(target, "copy") == written
    target.assert_unharmed()
    figure("fuzz: import", f"{lines} lines, 0 failures; {stored(again)} stored, and exported as they went in")
