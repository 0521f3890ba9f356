"""In whose language an answer says how long ago something was: that of the client, whatever the memory is written in."""

import pytest


def hearing(server, connect, name):
    """What a caller with these headers hears of a Japanese and an English memory of yesterday."""
    nilou = connect(server, name)
    nilou("remember", content="京都で蕎麦を食べた Kyoto", occurred_at="昨日")
    nilou("remember", content="A soba shop in Kyoto", occurred_at="yesterday")

    def ago(query, **headers):
        caller = connect(server, headers={"X-Persona": name, **headers})
        return {hit["ago"] for hit in caller("recall", query=query, mode="" if query else "recent")["hits"]}

    return ago


@pytest.fixture
def ago(server, connect, name):
    return hearing(server, connect, name)


def test_without_a_wish_it_is_that_of_the_query(ago):
    assert ago("京都 Kyoto はどう？") == {"昨日"}
    assert ago("What of Kyoto 2025?") == {"yesterday"}


def test_where_nothing_tells_it_is_that_of_each_memory(ago):
    assert ago("") == {"昨日", "yesterday"}


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("ja", {"昨日"}),
        ("en-US,en;q=0.9,ja;q=0.8", {"yesterday"}),
        ("fr, ja-JP;q=0.7, en;q=0.3", {"昨日"}),
        ("*", {"yesterday"}),
        ("fr", {"yesterday"}),
        ("ja;q=lots, en;q=0", {"yesterday"}),
    ],
)
def test_accept_language_goes_before_the_query(ago, header, said):
    assert ago("Kyoto", **{"Accept-Language": header}) == said


def test_config_goes_before_everything(own_server, connect):
    ago = hearing(own_server, connect, "nilou")
    own_server.configure(language="ja")
    assert ago("Kyoto", **{"Accept-Language": "en"}) == {"昨日"}
    own_server.configure(language="en")
    assert ago("京都") == {"yesterday"}


def test_the_context_and_a_revision_are_told_in_the_clients_language(server, connect, name):
    nilou = connect(server, headers={"X-Persona": name, "Accept-Language": "ja"})
    key = nilou("remember", content="A soba shop in Kyoto", occurred_at="yesterday")["key"]
    context = nilou("get_context")
    assert context["since_last_conversation"] == "1分未満"
    assert context["hits"][0]["ago"] == "昨日"
    assert nilou("revise", key=key, content="Two soba shops")["ago"] == "昨日"
