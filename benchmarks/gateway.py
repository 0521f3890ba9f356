"""A fortnight of two characters over the gateway: whether each turn is stored once, whether the model sees what it needs, and what that costs.

    python -m benchmarks.gateway [--embedder multilingual-e5-small] [--pairs 200]

Clients send the whole conversation each time, ask again, edit and go back, as chat front ends do; the vendor is a small server that answers
at once. Then what the gateway adds to the time before the first byte, in pairs of a call of the vendor itself and one through the gateway.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from benchmarks.server import NO_MODELS, running
from benchmarks.vendor import Vendor, vendor
from memory_mcp.language.budget import estimate_tokens

BEGINNING = datetime(2026, 4, 1, 3, tzinfo=UTC)
DAYS = 14
# What is said on one day, what is asked on a later one, and the word that its answer needs.
SAKURA = [
    ("祖母が長野で林檎を作っているんだ", "うちの祖母って何を育ててたっけ", "林檎"),
    ("海老にアレルギーがあるから食べられない", "ぼくが食べられないものって何だった", "海老"),
    ("猫の名前はミケにした", "飼ってる猫、何て呼んでる？", "ミケ"),
    ("来月から経理部に異動になった", "ぼくの仕事の部署ってどこになるんだっけ", "経理部"),
    ("姉が札幌で美容師をしている", "姉の職業を覚えてる？", "美容師"),
    ("高校のときは卓球部だった", "学生のころの部活、何だったかな", "卓球部"),
    ("誕生日は五月五日だよ", "ぼくの誕生日いつだか分かる？", "五月五日"),
    ("自転車は赤いのを買った", "自転車の色は何にしたっけ", "赤い"),
    ("好きな作家は宮沢賢治だ", "好きな作家の話をしたよね、誰だった？", "宮沢賢治"),
    ("実家は金沢の駅の近くにある", "実家ってどこの町だったかな", "金沢"),
    ("朝はいつも味噌汁を飲む", "朝に必ず飲むものは何？", "味噌汁"),
    ("ギターを習い始めて三年になる", "習っている楽器は何だったっけ", "ギター"),
    ("苦手な虫は蜘蛛だ", "苦手な虫の話、覚えてる？", "蜘蛛"),
    ("車の免許は二十歳で取った", "免許を取ったのは何歳のとき？", "二十歳"),
    ("大学では建築を学んだ", "大学の専攻は何だったか言える？", "建築"),
    ("叔父が沖縄で民宿をやっている", "叔父さんの宿はどこだった？", "沖縄"),
    ("毎週水曜は歯医者に行く", "歯医者に行く曜日はいつだっけ", "水曜"),
    ("初めて飼った犬はポチという柴犬だった", "最初に飼った犬の名前は？", "ポチ"),
    ("甘いものでは羊羹がいちばん好きだ", "甘いもので何がいちばん好きだった？", "羊羹"),
    ("引っ越し先は三階の部屋に決めた", "引っ越し先の部屋は何階？", "三階"),
    ("眼鏡は黒縁のものにした", "眼鏡はどんなのを選んだっけ", "黒縁"),
    ("合唱団でバスを歌っている", "合唱団で歌っているパートは？", "バス"),
    ("同僚の田中さんは釣りが趣味だ", "田中さんの趣味は何だった？", "釣り"),
    ("去年の夏は富士山に登った", "去年の夏に登った山はどこ？", "富士山"),
    ("枕は蕎麦殻のものがいい", "枕は何がいいって言ったっけ", "蕎麦殻"),
    ("結婚式の曲はカノンにする", "結婚式で流す曲は決めたよね、何？", "カノン"),
]
NILOU = [
    ("My brother Tom repairs old clocks in Leeds.", "What does my brother do for a living?", "clocks"),
    ("I can't stand coriander, it tastes like soap.", "Which herb is it that I dislike?", "coriander"),
    ("We named the parrot Captain.", "What's the name of our parrot again?", "Captain"),
    ("I start at the bakery on Mill Road next month.", "Where do I start my new job?", "bakery"),
    ("My daughter plays the cello in the youth orchestra.", "Which instrument does my daughter play?", "cello"),
    ("I grew up in a lighthouse in Cornwall.", "Where did I grow up?", "lighthouse"),
    ("My anniversary is on the ninth of June.", "When is my anniversary?", "ninth"),
    ("The new kitchen tiles are going to be green.", "What color did we choose for the kitchen tiles?", "green"),
    ("I broke my left wrist skating as a child.", "Which bone did I break skating?", "wrist"),
    ("My favorite film is Casablanca.", "Which film do I love most?", "Casablanca"),
    ("I take the number seven tram to work.", "Which tram do I take to work?", "seven"),
    ("My neighbor Olga keeps bees on her roof.", "What does my neighbor Olga keep on the roof?", "bees"),
    ("I'm learning Welsh on Thursdays.", "Which language am I learning?", "Welsh"),
    ("My blood type is AB negative.", "Do you remember my blood type?", "negative"),
    ("Our boat is called Marigold.", "What's our boat called?", "Marigold"),
    ("I proposed to Ana in Lisbon.", "In which city did I propose to Ana?", "Lisbon"),
    ("My allergy is to penicillin.", "Which medicine am I allergic to?", "penicillin"),
    ("I keep the spare key under the blue flowerpot.", "Where do I keep the spare key?", "flowerpot"),
    ("Dad's old truck was a Bedford.", "What make was Dad's old truck?", "Bedford"),
    ("My thesis was about medieval bridges.", "What was my thesis about?", "bridges"),
    ("Grandpa taught me to play chess.", "Which game did Grandpa teach me?", "chess"),
    ("My lucky number is thirteen.", "What's my lucky number?", "thirteen"),
    ("The dentist told me to floss with waxed tape.", "What did the dentist tell me to use?", "waxed"),
    ("I always order dumplings at Wong's.", "What do I always order at Wong's?", "dumplings"),
    ("My first car was a yellow Beetle.", "What was my first car?", "Beetle"),
    ("I'm reading a biography of Darwin.", "Whose biography am I reading?", "Darwin"),
]
FILLERS = {
    "さくら": ("今日は少し疲れた、{n}時間も歩いたから", "昼は{n}人でそばを食べに行ったよ", "雨の音を聞きながら{n}ページ読んだ"),
    "Nilou": (
        "I walked for {n} hours today and I'm a bit tired.",
        "There were {n} of us at lunch today.",
        "It rained, so I read {n} pages.",
    ),
}
CHARACTERS = {
    "さくら": ("おはよう", "あなたはさくら。やさしく話す。", SAKURA),
    "Nilou": ("Good morning!", "You are Nilou, a dancer.", NILOU),
}


@dataclass
class Line:
    """What the user says; `needed`: the word that the model has to see."""

    text: str
    needed: str = ""


@dataclass
class Played:
    """What came of it: the user's texts as each conversation ended, how many questions had what they needed, and tokens per turn."""

    said: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in CHARACTERS})
    turns: int = 0
    asked: int = 0
    answered: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    tokens_new: list[int] = field(default_factory=list)
    tokens_all: list[int] = field(default_factory=list)


def day_of(name: str, day: int) -> Iterator[Line]:
    """What the user says to a character on a day: a greeting, new facts, questions about earlier ones, and other things."""
    greeting, _, facts = CHARACTERS[name]
    told, asked = facts[2 * day : 2 * day + 2], facts[2 * (day - 1) : 2 * day] if day else ()
    yield Line(greeting)
    fillers = FILLERS[name]
    for number, (fact, _, _) in enumerate(told):
        yield Line(fact)
        yield Line(fillers[(day + number) % len(fillers)].format(n=day + 2 + number))
    for _, question, needed in asked:
        yield Line(question, needed)


class Client:
    """A chat front end: it keeps the conversation, and sends all of it each time."""

    def __init__(self, http: httpx2.Client, name: str, model: Vendor, played: Played) -> None:
        self._http, self._name, self._model, self._played = http, name, model, played
        self.messages = [{"role": "system", "content": CHARACTERS[name][1]}]
        self._seen = 0

    def say(self, line: Line) -> None:
        """A turn, and whether the model saw what it needs."""
        self.messages.append({"role": "user", "content": line.text})
        self.again()
        put = [m["content"] for m in self._model.messages if m["role"] == "system"][1:]
        whole = "\n".join(m["content"] for m in self._model.messages if m["role"] != "assistant" and m["content"] != line.text)
        tokens = sum(map(estimate_tokens, put))
        self._played.turns += 1
        self._played.tokens_new.append(max(tokens - self._seen, 0))
        self._played.tokens_all.append(tokens)
        self._seen = tokens
        if line.needed:
            self._played.asked += 1
            (self._played.answered if line.needed in whole else self._played.missed).append(line.text)

    def again(self) -> None:
        """Another answer to the last message, streamed."""
        sent = {"model": "lab/m", "stream": True, "messages": self.messages}
        answer = self._http.post("/v1/chat/completions", json=sent, headers={"X-Persona": quote(self._name)}).raise_for_status()
        events = [json.loads(event[6:]) for event in answer.text.splitlines() if event.startswith("data: {")]
        said = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
        self.messages.append({"role": "assistant", "content": said})

    def regenerate(self) -> None:
        del self.messages[-1:]
        self.again()

    def go_back(self, turns: int) -> None:
        del self.messages[-2 * turns :]


def play(http: httpx2.Client, model: Vendor, set_clock: Callable[[datetime], None], *, seed: int = 19) -> Played:
    """Play the fortnight. Every few turns something is asked for again, edited, or left for another turn."""
    chance, played = random.Random(seed), Played()
    for day in range(DAYS):
        for hour, name in enumerate(CHARACTERS):
            client = Client(http, name, model, played)
            lines = list(day_of(name, day))
            for number, line in enumerate(lines):
                set_clock(BEGINNING + timedelta(days=day, hours=hour, minutes=number))
                if number >= 2 and chance.random() < 0.12:  # edited: first something else stood there
                    client.say(Line(f"{line.text} ({chance.randint(1000, 9999)})"))
                    client.go_back(1)
                if number >= 3 and chance.random() < 0.08:  # two turns that are left again
                    client.say(Line(f"{line.text} [{chance.randint(1000, 9999)}]"))
                    client.say(Line(f"… [{chance.randint(1000, 9999)}] {line.text}"))
                    client.go_back(2)
                client.say(line)
                if chance.random() < 0.15:
                    client.regenerate()
            played.said[name] += [message["content"] for message in client.messages if message["role"] == "user"]
    return played


def stored(http: httpx2.Client, name: str) -> list[str]:
    """What the user said, as it is stored for a character."""
    texts: list[str] = []
    query: dict[str, Any] = {"limit": 200, "kind": "conversation"}
    while True:
        page = http.get("/api/memories", params=query, headers={"X-Persona": quote(name)}).raise_for_status().json()
        texts += [memory["content"] for memory in page["memories"] if memory["source"] == "user"]
        if "next" not in page:
            return texts
        query["after"] = page["next"]


def added_ms(http: httpx2.Client, model: Vendor, pairs: int) -> tuple[float, float]:
    """The medians of what the gateway adds before the first byte, in milliseconds, and of its ratio to the vendor's own first byte."""
    own, through = [], []
    with httpx2.Client() as direct:
        for number in range(pairs):
            _, _, facts = CHARACTERS["さくら"]
            said = [
                {"role": "system", "content": "あなたはさくら。"},
                {"role": "user", "content": f"{facts[number % len(facts)][1]} {number}"},
            ]
            own.append(_first_byte(direct, f"{model.url}/chat/completions", "m", said))
            through.append(_first_byte(http, "/v1/chat/completions", "lab/m", said))
    differences = [(with_ - without) * 1e3 for with_, without in zip(through, own, strict=True)]
    ratios = [with_ / without for with_, without in zip(through, own, strict=True)]
    return statistics.median(differences), statistics.median(ratios)


def _first_byte(http: httpx2.Client, url: str, model: str, messages: list[dict[str, str]]) -> float:
    begun = time.perf_counter()
    sent = {"model": model, "stream": True, "messages": messages}
    with http.stream("POST", url, json=sent, headers={"X-Persona": quote("さくら")}) as answer:
        pieces = answer.iter_bytes()
        next(pieces)
        taken = time.perf_counter() - begun
        for _ in pieces:
            pass
    return taken


def figures(played: Played, kept: dict[str, list[str]]) -> dict[str, Any]:
    """The figures of a fortnight."""
    return {
        "turns": played.turns,
        "stored_once": all(sorted(kept[name]) == sorted(played.said[name]) for name in CHARACTERS),
        "of_others": sum(text in kept[name] for name in CHARACTERS for other in CHARACTERS if other != name for text in played.said[other]),
        "needed_seen": round(len(played.answered) / played.asked, 3),
        "tokens_put_in_per_turn_median": statistics.median(played.tokens_new),
        "tokens_in_request_median": statistics.median(played.tokens_all),
        "missed": played.missed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder")
    parser.add_argument("--pairs", type=int, default=200)
    arguments = parser.parse_args()
    with vendor() as model, tempfile.TemporaryDirectory() as directory:
        clock = Path(directory, "clock")
        clock.write_text(BEGINNING.isoformat())
        settings = {**NO_MODELS, "embeddings_model": arguments.embedder, "llm": {"vendors": {"lab": {"url": model.url}}}}
        with running(settings, clock=clock) as server, httpx2.Client(base_url=server.url, timeout=120) as http:
            while arguments.embedder and http.get("/ready").json()["models"]["embedder"]["state"] != "loaded":
                time.sleep(0.5)
            played = play(http, model, lambda now: clock.write_text(now.isoformat()) and None)
            result = figures(played, {name: stored(http, name) for name in CHARACTERS})
            print(json.dumps({"benchmark": "gateway", "embedder": arguments.embedder, **result}, ensure_ascii=False))
            added, ratio = added_ms(http, model, arguments.pairs)
            print(json.dumps({"benchmark": "gateway", "added_before_first_byte_ms": round(added, 2), "ratio": round(ratio, 2)}))


if __name__ == "__main__":
    main()
