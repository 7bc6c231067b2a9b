"""What two texts have in common: their telling words, their clauses, and the values that one of them denies."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]+(?:[.'\-/][^\W_]+)*", re.UNICODE)
_HAN = re.compile("[\u3400-\u9fff\u30a0-\u30ff]+")
_CLAUSE = re.compile(r"[^.!?;,:\n。！？；，、：]+(?:[.,:](?=\S)[^.!?;,:\n。！？；，、：]+)*[.!?;。！？；]?")
_SENTENCE = re.compile(r"[^.!?;\n。！？；]+(?:[.](?=\S)[^.!?;\n。！？；]+)*[.!?;。！？；]?")
_NEGATION = re.compile(
    r"\b(?:not?|never|don'?t|do not|skip|without|nicht|kein\w*|nie|ohne|pas|jamais|sans|no|nunca|sin|não|sem|non|mai"
    r"|senza|не|нет|никогда|без)\b|不|别|没|ない|ず|말고|마|لا|بدون",
    re.IGNORECASE,
)
_VALUE = r"(?:(?:the|a|an|der|die|das|den|le|la|les|el|los|o|os|il|в)\s+)?[\"'`«„“]?([\w.#+/@-]{1,40})"
_DENIED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:not|instead of|rather than|nicht|statt|anstatt|pas|au lieu de|plutôt que|en vez de|em vez de|não|non"
        r"|invece di|вместо|не)\s+" + _VALUE,
        r"(?:不是|不用|而不是)\s*([\w]{1,8})",
        r"([\w.]{1,20})」?(?:ではなく|じゃなくて)",
        r"([\w.]{1,20}?)(?:이|가)? ?(?:말고|대신|아니라)",
        r"(?:بدلا من|ليس)\s+(\w+)",
    )
)
_COMMON = frozenset(
    """
    the and for with that this then than but not you your our are was were will would can could
    should must have has had use used using please just only also too from into onto about after
    before when where what which who why how all any some each every one two more most less same
    other again now still new old make made want need put keep let lets get add added take back out
    off over set work works done doing does did yes okay sure it's its i'm i'll don't dont doesn't
    instead actually sorry wait stop ref see note nor via etc per never always file files thing
    things task code line lines text way day days time und oder der die das den dem ein eine einen
    mit für von auf aus bei nach noch doch aber nur auch nicht kein keine bitte soll sollen muss ist
    sind war wird werden ich wir sie man alle alles jetzt immer mehr les des une pour avec dans sur
    pas plus que qui est sont sera tout tous aussi mais faut los las una para con por del como pero
    más solo sin esta está uma com não mas isso esse essa também quero что это как для или все всё
    только еще уже надо нужно чтобы che non della questo sono
    """.split()  # noqa: SIM905 (a paragraph is easier to keep than a list)
)
_SHORT = frozenset(  # two letters that tell nothing; others may be a name: HR, UI, EU
    """
    is it to of in on at by we he me my no so do go up us or as an be if am ok hi oh ah hm ja zu im da du er es
    ob um wo de la le un en et je tu il se ce sa ou ne si au su lo al el te mi yo una nos os em eu ao à é li di e
    i o a y ti ma ho ha hai ci vi cu mo bo vs id ex re pm cm kg km mb gb kb ms px не на по за из от до во со но
    да же ли бы то он мы вы я ты
    к в с у о и а لا في من ما يا لو هو هي أن إن
    """.split()  # noqa: SIM905
)
_COMMON_HAN = frozenset("不要 以后 可以 这个 那个 一个 我们 先做 现在 还是 就是 改成 必须 每个 所有 不用".split())  # noqa: SIM905


@lru_cache(maxsize=2048)
def telling_words(text: str) -> frozenset[str]:
    """Gives the words and numbers of a text that say what it is about; pairs of characters in Chinese and Japanese."""
    words = set()
    for found in _WORD.finditer(text[:4000].lower()):
        word = found[0]
        if word.isascii() and word.endswith("'s"):
            word = word[:-2]
        if any(char.isdigit() for char in word) or (len(word) > 1 and word not in _COMMON and word not in _SHORT):
            words.add(_stem(word))
    for found in _HAN.finditer(text[:4000]):
        run = found[0]
        words.discard(run)
        words |= {run[at : at + 2] for at in range(len(run) - 1)} - _COMMON_HAN
    return frozenset(words)


@lru_cache(maxsize=2048)
def subject_words(text: str) -> frozenset[str]:
    """Gives the telling words of a text that hold no digit: what it is about, and not how much."""
    return frozenset(word for word in telling_words(text) if not _DIGIT.search(word))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and word.isalpha() else word


@lru_cache(maxsize=1024)
def clauses(text: str) -> tuple[str, ...]:
    """Cuts a text at its marks of punctuation; each clause is a substring of the text."""
    found = (match[0].strip() for match in _CLAUSE.finditer(text[:8000]))
    return tuple(clause for clause in found if re.search(r"\w", clause))


@lru_cache(maxsize=1024)
def sentences(text: str) -> tuple[str, ...]:
    """Cuts a text at the ends of its sentences; each is a substring of the text."""
    found = (match[0].strip() for match in _SENTENCE.finditer(text[:8000]))
    return tuple(sentence for sentence in found if re.search(r"\w", sentence))


def denies(text: str) -> bool:
    """Tells whether a clause says that something shall not be."""
    return _NEGATION.search(text) is not None


@lru_cache(maxsize=1024)
def denied_values(text: str) -> frozenset[str]:
    """Gives the words that a text says do not hold: Y of `X, not Y`, `instead of Y`, `Yではなく`."""
    found: set[str] = set()
    for pattern in _DENIED:
        for match in pattern.finditer(text[:4000]):
            found |= telling_words(match[1])
    return frozenset(found)
