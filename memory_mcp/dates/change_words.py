"""The words by which plans and facts move, change and are called off, and the endings by which that is settled, in Japanese and English.

Who looks for a change, of a day (`dates/changed_plans.py`), of a plan (`language/moved_plans.py`) or of anything (`language/changes.py`), takes the
words from here: one more of them is a word on one line. All are parts of regular expressions.
"""

from memory_mcp.characters import HAN, KATAKANA

# Nouns: 中止になった, 来週に延期した.
CALLED_OFF = "中止|取りやめ|取り止め|キャンセル|お流れ|白紙|見送り"
POSTPONED = "延期|順延|日延べ|前倒し|後ろ倒し|先延ばし|リスケ|振替|振替え|振り替え"
# Stems of verbs: 時間が変わった, 来週にずらしてもらった. 気を取り直した moves nothing, 火曜に取り直した does.
MOVES = "変[わえ]|延[びば]|伸[びば]|早[まめ]|ずれ|ずら|移[っりしさ]|繰り(?:[上下]げ|延べ)"
_MOVES_TO_DAY = f"{MOVES}|取り直|組み直|動か|繰り越"
_NOUNS_TO_DAY = f"変更|移動|延長|{POSTPONED}"
TO_DAY = f"{_NOUNS_TO_DAY}|{_MOVES_TO_DAY}"

# What follows a verb that tells what has happened; where it is settled, たら is no condition. 変え is a stem, 変わっ one with っ.
HAPPENED = "(?:た(?!い|く|がっ)|て(?!ほし|欲し|も(?!ら))|ちゃ|まし[たて])"
BEHIND_STEM = "[っりしされら]{0,2}"
DONE = f"(?!たら(?!しい)){HAPPENED}"
BECAME = f"な(?:っ{DONE}|りま[しす])"
_STEM_DONE = f"{BEHIND_STEM}(?:{DONE}|ます)"
ENDS = r"(?![\w・/／」』])"
# What follows a noun that is settled: 中止だって, 延期との連絡, but not 中止かも, キャンセル料.
SETTLED = (
    rf"(?={DONE}|(?:す?ることに|に)?(?:{BECAME}|(?:し|さ[れせ])(?:{DONE}|ます)|(?:なり|し|され)、)|が?決|だ(?:そう|って|[よと]|(?!\w))"
    rf"|で(?!き|は|も)|って|らしい|みたい|の(?:連絡|知らせ)|と(?![りか思し])|に?{ENDS})"
)

# What has no longer the day that it had.
OFF = (
    rf"(?:{CALLED_OFF}|{POSTPONED}){SETTLED}|流れ(?<=[はがもで、]流れ){DONE}|ず(?:れ込|[れら]{_STEM_DONE})|日(?:程|にち|取り)[がをはも]?(?:変更{SETTLED}|変[わえ]{_STEM_DONE})"
    rf"|曜日[がをはも]?(?:変更{SETTLED}|変[わえ]{_STEM_DONE})|[無な]し(?<=[{HAN}{KATAKANA}はがも、][無な]し)(?=に(?:{BECAME}|し{DONE})|だって|って|らしい|です|{ENDS})"
)
# Behind a day and に.
MOVED_TO = rf"(?:{_NOUNS_TO_DAY}){SETTLED}|(?:{_MOVES_TO_DAY}){_STEM_DONE}|ずれ込|{BECAME}|し(?!て(?!もら)){DONE}"

ENGLISH_OFF = "cancell?ed|called off|scrapped"
ENGLISH_PUT_OFF = "postponed|put off|rescheduled|delayed|pushed(?: back)?|brought forward"
# Of a plan only with its new day: "moved to Tuesday".
ENGLISH_MOVED = "moved|changed|shifted|switched|bumped"
