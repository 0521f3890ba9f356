"""Times of day as phones of any language write them: 午後9:05, 9.05 PM, 오후 9:05."""

_MORNING = "am a.m. 午前 上午 凌晨 早上 清晨 오전 vorm. π.μ. πμ ص ق.ظ öö sa pd pg fm f.m. de. पूर्वाह्न ก่อนเที่ยง пр.об."
_EVENING = "pm p.m. 午後 下午 晚上 中午 傍晚 오후 nachm. μ.μ. μμ م ب.ظ ös ch md ptg em e.m. du. अपराह्न หลังเที่ยง сл.об."
_HALVES = {word: first for words, first in ((_MORNING, 0), (_EVENING, 12)) for word in words.split()}
_WORD = r"[^\s\d\[\]:,\-\t]{1,12}(?: m\.)?"
# A time with a word or two before it or one after it, of which one may say which half of the day it is in.
TIME = rf"(?P<before>(?:{_WORD} ?){{0,2}})(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?(?: ?(?P<after>{_WORD}))?"


def hour_of(hour: int, *words: str | None) -> int:
    """The hour from 0 to 23, given the words beside the time."""
    named = {word.replace(" ", "").casefold() for beside in words if beside for word in (beside, *beside.split())}
    half = next((_HALVES[word] for word in named if word in _HALVES), None)
    return hour if half is None else hour % 12 + half
