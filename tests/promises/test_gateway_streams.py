"""Streams over the gateway: killed in the middle, and many at once beside recalls."""

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from processes import serving

from benchmarks.vendor import EVENTS, Answer, chunk, streamed, vendor

pytestmark = pytest.mark.slow

STREAMS = 50


def config(model):
    return json.dumps({"embeddings_model": None, "reranker_model": None, "llm": {"vendors": {"lab": {"url": model.url}}}})


def sent(text):
    return {"model": "lab/m", "stream": True, "messages": [{"role": "user", "content": text}]}


def memories(http, persona):
    found = http.get("/api/memories", headers={"X-Persona": persona}).raise_for_status().json()["memories"]
    return sorted(memory["content"] for memory in found)


def test_a_server_that_is_killed_in_mid_answer_has_stored_nothing_of_it_and_all_before(tmp_path, figure):
    killed = 0
    with vendor() as model:
        for ordinal in (1, 4, 30):
            may_go_on = threading.Event()

            def slowly(ordinal=ordinal, may_go_on=may_go_on):
                for _ in range(ordinal):
                    yield chunk({"content": "あ"})
                may_go_on.wait(60)
                yield from streamed("い")

            with serving(tmp_path, config(model)) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
                http.post("/v1/chat/completions", json=sent(f"話 {ordinal} を覚えて"), headers={"X-Persona": "nilou"}).raise_for_status()
                model.steps = [Answer(slowly(), content_type=EVENTS)]
                with http.stream("POST", "/v1/chat/completions", json=sent("途中の話"), headers={"X-Persona": "nilou"}) as answer:
                    next(answer.iter_bytes())
                    server.stop(signal.SIGKILL)
                    killed += 1
                may_go_on.set()
        with serving(tmp_path, config(model)) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
            said = [f"話 {ordinal} を覚えて" for ordinal in (1, 4, 30)]
            assert memories(http, "nilou") == sorted([*said, *(f"echo: {text}" for text in said)])
    figure("servers killed in mid-answer over the gateway", killed)


def test_many_streams_at_once_beside_recalls_each_keep_their_own_turn(tmp_path):
    everybody = threading.Barrier(STREAMS, timeout=90)

    def together(asked):
        def pieces():
            yield chunk({"content": "は"})
            everybody.wait()  # all streams are open at once
            yield from streamed(f"い、{asked['messages'][-1]['content']}")

        return Answer(pieces(), content_type=EVENTS)

    with vendor() as model, serving(tmp_path, config(model)) as server, httpx2.Client(base_url=server.url, timeout=120) as http:
        model.steps = [together] * STREAMS

        def talk(number):
            answer = http.post("/v1/chat/completions", json=sent(f"{number}番の話"), headers={"X-Persona": f"p{number}"})
            return answer.status_code, answer.text.endswith("data: [DONE]\n\n")

        def ask(number):
            return http.get("/api/recall", params={"query": "話"}, headers={"X-Persona": f"p{number}"}).status_code

        with ThreadPoolExecutor(STREAMS + 4) as pool:
            talks = [pool.submit(talk, number) for number in range(STREAMS)]
            asked = [pool.submit(ask, number) for number in range(2 * STREAMS)]
            assert {done.result() for done in talks} == {(200, True)}
            assert {done.result() for done in asked} <= {200, 503}  # a server with much else to do says so
        for number in range(STREAMS):
            assert memories(http, f"p{number}") == sorted([f"{number}番の話", f"はい、{number}番の話"])
