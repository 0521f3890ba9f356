"""Secrets drawn from the expressions of rules, and texts that only look like some, both by a seed."""

import base64
import re
import string
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from re import _constants, _parser
from typing import Any

import phonenumbers

from memory_mcp.language.privacy import secrets as service_keys

_PRINTABLE = string.ascii_letters + string.digits + "!#$%&()*+,-./:;<=>?@[]^_{|}~ "
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: string.digits,
    _constants.CATEGORY_WORD: string.ascii_letters + string.digits + "_",
    _constants.CATEGORY_SPACE: " ",
    _constants.CATEGORY_NOT_SPACE: string.ascii_letters + string.digits,
}
# How often a repetition is drawn beyond its least.
_MORE_OFTEN = 20

_AROUND = [
    ("", ""),
    ("これを覚えておいて：", " です。"),
    ("鍵は「", "」だよ"),
    ("Please keep this for me: ", " and tell nobody."),
    ("昨日のメモ\n\n    ", "\n\nここまで"),
    ("Config:\n```\n", "\n```\nthat is all"),
    ("(", ")"),
    ("新しいのは", "、古いのは捨てた"),
]


# How people tell a password.
PHRASES = [
    "password: {}", "Password is {}.", "**Password:** {}", "password: **{}**", "password (admin): {}", "changed the password to {}",
    "my new password will be {}", "the password for the router is {}", "The password is now {}", "{} is the password", "{} is my new password",
    "pass: {}", "PW: {}", "API_KEY_PROD={}", "API_KEY2={}", "token -> {}", "| password | {} |", 'password = "{}"', "passphrase `{}`",
    "パスワードは{}です", "パスワードは、{}", "パスワード：{}", "パスワード:\n{}", "パスワード（管理者）：{}", "パスワード → {}", "パスワードが変わって{}になった",
    "パスワードを{}に変えた", "{} がパスワードです", "{}がパスワードです。", "ﾊﾟｽﾜｰﾄﾞ：{}", "「パスワード」は「{}」", "暗証番号は {} にした", "秘密鍵＝{}",
]  # fmt: skip


@dataclass(frozen=True)
class Secret:
    """A text with a secret in it, and what stands before and after the text of the rule."""

    rule: str
    text: str
    secret: str
    before: str
    after: str


def rules() -> list[service_keys.Rule]:
    """All rules that are in use, by name."""
    known = service_keys._rules()
    used = {rule.name: rule for group in (known.everywhere, *known.of_keyword) for rule in group}
    return [used[name] for name in sorted(used)]


def secrets(rule: service_keys.Rule, count: int) -> Iterator[Secret]:
    """Sentences with a key in the form of the rule."""
    random = Random(rule.name)
    tree = _parser.parse(rule.pattern.pattern, re.ASCII)
    for number in range(count):
        groups: dict[int, str] = {}
        text = _drawn(tree, random, groups)
        before, after = _AROUND[number % len(_AROUND)]
        if rule.keywords and not any(keyword in text.lower() for keyword in rule.keywords):
            before = f"{rule.keywords[0].capitalize()}！{before}"
        group = rule.secret_group or next((group for group in sorted(groups) if groups[group]), 0)
        yield Secret(rule.name, before + text + after, groups[group] if group else text, before, after)


def drawn(pattern: re.Pattern[str], random: Random) -> str:
    """A text that a regular expression matches."""
    return _drawn(_parser.parse(pattern.pattern), random, {})


def _drawn(tree: Sequence[Any], random: Random, groups: dict[int, str]) -> str:
    return "".join(_one(operation, argument, random, groups) for operation, argument in tree)


def _one(operation: Any, argument: Any, random: Random, groups: dict[int, str]) -> str:
    match operation:
        case _constants.LITERAL:
            return chr(argument)
        case _constants.NOT_LITERAL:
            return random.choice(string.ascii_letters)
        case _constants.ANY:  # meant as a dot wherever a rule has one outside of a set
            return "."
        case _constants.IN:
            return random.choice(_members(argument))
        case _constants.BRANCH:
            return _drawn(random.choice(argument[1]), random, groups)
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT:
            least, most, inner = argument
            return "".join(_drawn(inner, random, groups) for _ in range(random.randint(least, min(int(most), least + _MORE_OFTEN))))
        case _constants.SUBPATTERN:
            group, _, _, inner = argument
            text = _drawn(inner, random, groups)
            if group is not None:
                groups[group] = text
            return text
    return ""  # assertions


def _members(members: Sequence[Any]) -> list[str]:
    chosen: set[str] = set()
    for operation, argument in members:
        match operation:
            case _constants.LITERAL:
                chosen.add(chr(argument))
            case _constants.RANGE:
                chosen.update(map(chr, range(argument[0], argument[1] + 1)))
            case _constants.CATEGORY:
                chosen.update(_CATEGORIES[argument])
    if (_constants.NEGATE, None) in members:
        chosen = set(_PRINTABLE) - chosen
    return sorted(chosen)


def numbers(kind: str, count: int) -> Iterator[Secret]:
    """Sentences with a number of a kind that people are known or pay by."""
    random = Random(kind)
    for number in range(count):
        before, after = _AROUND[number % len(_AROUND)]
        label, written, *rest = _NUMBERS[kind](random)
        yield Secret(kind, before + label + written + "".join(rest) + after, written, before + label, after)


def _card(random: Random) -> tuple[str, str]:
    prefix, length = random.choice(_ISSUERS)
    digits = prefix + _characters(random, string.digits, length - len(prefix) - 1)
    total = sum(sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(reversed(digits)))
    digits += str(-total % 10)
    sizes = random.choice(_CARD_LAYOUTS[length])
    separator = random.choice(["-", " ", "－", "ー", ".", "  ", "\u2009"]) if len(sizes) > 1 else ""
    written = _grouped(digits, sizes, separator)
    return random.choice(["", "カード ", "Visa/", "card_", "支払いは"]), written


def _my_number(random: Random) -> tuple[str, str]:
    digits = _characters(random, string.digits, 11)
    remainder = sum(int(digit) * weight for digit, weight in zip(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), strict=True)) % 11
    digits += str(0 if remainder <= 1 else 11 - remainder)
    sizes = random.choice([(12,), (4, 4, 4)])
    return random.choice(["マイナンバーは", "個人番号：", "my number: "]), _grouped(digits, sizes, random.choice("- －"))


def _ssn(random: Random) -> tuple[str, str]:
    area = random.choice([area for area in range(1, 900) if area != 666])
    digits = f"{area:03}{random.randint(1, 99):02}{random.randint(1, 9999):04}"
    sizes = random.choice([(9,), (3, 2, 4)])
    return random.choice(["SSN: ", "social security number ", "社会保障番号は"]), _grouped(digits, sizes, random.choice("- －"))


def _phone(random: Random) -> tuple[str, str]:
    region = random.choice(sorted(phonenumbers.SUPPORTED_REGIONS))
    number = phonenumbers.example_number_for_type(region, random.choice([0, 1])) or phonenumbers.example_number(region)
    return random.choice(["", "電話は", "call "]), phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def _in_url(random: Random) -> tuple[str, str, str]:
    password = _characters(random, string.ascii_letters + string.digits + "!$%&*-_+", random.randint(4, 20))
    return random.choice(["postgres://", "https://", "接続先は amqp://"]), f"{_words(random, 1)}:{password}", "@example.com/x"


def _grouped(digits: str, sizes: Sequence[int], separator: str) -> str:
    begins = [sum(sizes[:place]) for place in range(len(sizes))]
    return separator.join(digits[begin : begin + size] for begin, size in zip(begins, sizes, strict=True))


# ISO/IEC 7812 ranges that the issuers publish.
_ISSUERS = [("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("2720", 16), ("34", 15), ("37", 15), ("3528", 16), ("3589", 16)]
_ISSUERS += [("300", 14), ("36", 14), ("38", 14), ("6011", 16), ("65", 16), ("644", 16), ("62", 16), ("62", 19)]
_CARD_LAYOUTS = {14: [(14,), (4, 6, 4)], 15: [(15,), (4, 6, 5)], 16: [(16,), (4, 4, 4, 4), (8, 8)], 19: [(19,), (4, 4, 4, 4, 3)]}
_NUMBERS = {"credit_card": _card, "my_number": _my_number, "ssn": _ssn, "phone": _phone, "url_credentials": _in_url}
KINDS_OF_NUMBERS = tuple(_NUMBERS)


def passwords(maker: str, count: int) -> Iterator[Secret]:
    """As many passwords of a maker as `count` in each of the phrases."""
    random = Random(maker)
    for phrase in PHRASES * count:
        password = _PASSWORDS[maker](random)
        before, after = phrase.split("{}")
        yield Secret(maker, before + password + after, password, before, after)


def _apple(random: Random) -> str:
    characters = [_characters(random, string.ascii_lowercase, 6) for _ in range(3)]
    digit, capital = random.sample(range(3), 2)
    place = random.randrange(6)
    characters[digit] = characters[digit][:place] + random.choice(string.digits) + characters[digit][place + 1 :]
    characters[capital] = characters[capital][:place] + characters[capital][place].upper() + characters[capital][place + 1 :]
    return "-".join(characters)


_HEX = "0123456789abcdef"
_LETTERS_AND_DIGITS, _SIGNS = string.ascii_letters + string.digits, "!@#$%^&*"
_PASSWORDS = {
    "Apple": _apple,
    "Chrome, 15 letters and digits": lambda random: _characters(random, _LETTERS_AND_DIGITS, 15),
    "Bitwarden, 14 letters and digits": lambda random: _characters(random, _LETTERS_AND_DIGITS, 14),
    "Bitwarden, 14 with signs": lambda random: _characters(random, _LETTERS_AND_DIGITS + _SIGNS, 14),
    "1Password, 20 with signs": lambda random: _characters(random, _LETTERS_AND_DIGITS + _SIGNS + "-_.", 20),
    "LastPass, 12 with signs": lambda random: _characters(random, _LETTERS_AND_DIGITS + _SIGNS, 12),
    "KeePass, 20 letters and digits": lambda random: _characters(random, _LETTERS_AND_DIGITS, 20),
    "openssl rand -hex 16": lambda random: _characters(random, _HEX, 32),
}
MAKERS = tuple(_PASSWORDS)


def lookalikes(count: int) -> Iterator[str]:
    """Ordinary sentences with a hash, an identifier, a picture or a number that opens nothing."""
    random = Random("lookalikes")
    for number in range(count):
        before, after = _AROUND[number % len(_AROUND)]
        yield before + _LOOKALIKES[number % len(_LOOKALIKES)](random) + after


def _characters(random: Random, alphabet: str, count: int) -> str:
    return "".join(random.choices(alphabet, k=count))


def _words(random: Random, count: int) -> str:
    return " ".join(random.choices(_WORDS, k=count))


_WORDS = (
    "the token of our friendship was a small ring and nobody knew which key opened it so we asked about her secret garden "
    "discord dropbox twitter password github airtable heroku slack linear access open bearer basic auth client private public"
).split()
_LOOKALIKES = [
    lambda random: f"会話の ID は {uuid.UUID(int=random.getrandbits(128))}",
    lambda random: f"commit {_characters(random, _HEX, 40)} を入れた",
    lambda random: f"sha256:{_characters(random, _HEX, 64)}",
    lambda random: f"md5 {_characters(random, _HEX, 32)} の画像",
    lambda random: f"![花](data:image/png;base64,{base64.b64encode(random.randbytes(300)).decode()})",
    lambda random: (
        f"型番は{_characters(random, string.ascii_uppercase, 3)}-{_characters(random, string.digits, 5)}{_characters(random, string.ascii_uppercase, 1)}"
    ),
    lambda random: f"JAN {_characters(random, string.digits, 13)}、ISBN 978-4-{_characters(random, string.digits, 8)}-0",
    lambda random: f"https://example.com/p/{_characters(random, string.ascii_letters + string.digits, 11)}?t={random.randint(1, 999)}s",
    lambda random: f"version {random.randint(0, 9)}.{random.randint(0, 40)}.{random.randint(0, 99)}-rc.{random.randint(1, 9)}",
    lambda random: (
        f"/var/log/{_characters(random, string.ascii_lowercase, 8)}/{random.randint(2001, 2030)}-{_characters(random, string.digits, 6)}.log"
    ),
    lambda random: f"Discord の ID は {_characters(random, string.digits, 18)}",
    lambda random: f"{_words(random, 9)}, {_words(random, 5)}.",
    lambda random: f"{_words(random, 1)}: {_words(random, 4)}; {_words(random, 2)} = {_words(random, 2)}",
    lambda random: f"パスワードは{random.choice(['忘れた', '紙に書いた', '明日変える', '教えない'])}。{_words(random, 3)}",
    lambda random: (
        f"注文番号: {_characters(random, string.digits, 4)}-{_characters(random, string.digits, 7)}-{_characters(random, string.digits, 7)}"
    ),
    lambda random: f"memory_{_characters(random, string.digits, 14)}_{_characters(random, _HEX, 8)} を見て",
]
