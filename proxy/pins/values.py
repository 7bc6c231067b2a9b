"""Values in a text, by sort: what "make it 12 then" and "it's the 19th now" may replace in older words."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

MOST = 4000  # characters that are looked at


def _table(text: str) -> dict[str, str]:
    """Reads `name: word word …` with words that may go on in further lines; `_` stands for a space."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in text.split():
        if word.endswith(":"):
            name = word[:-1]
            found[name] = []
        else:
            found[name].append(word.replace("_", " "))
    return {name: "|".join(words) for name, words in found.items()}


_NAMES = _table(  # names of months
    """
    month: jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august
        september october november december januar februar märz mai juni juli oktober dezember janvier
        février mars avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril
        mayo junio julio agosto septiembre octubre noviembre diciembre janeiro fevereiro março maio junho
        julho setembro outubro novembro dezembro gennaio febbraio aprile maggio giugno luglio settembre
        ottobre dicembre января февраля марта апреля мая июня июля августа сентября октября ноября декабря
        يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر
    """
)
_DAYS = _table(  # names of weekdays
    r"""
    mon: monday mondays montag lundi lunes segunda segunda-feira lunedì понедельник\w* 周一 星期一 月曜 월요일 الاثنين
    tue: tue tues tuesday tuesdays dienstag mardi martes terça terça-feira martedì вторник\w* 周二 星期二 火曜 화요일
        الثلاثاء
    wed: wed wednesday wednesdays mittwoch mercredi miércoles quarta quarta-feira mercoledì сред[уы] 周三 星期三 水曜
        수요일 الأربعاء
    thu: thu thur thurs thursday thursdays donnerstag jeudi jueves quinta quinta-feira giovedì четверг\w* 周四 星期四
        木曜 목요일 الخميس
    fri: fri friday fridays freitag vendredi viernes sexta sexta-feira venerdì пятниц[уы] 周五 星期五 金曜 금요일 الجمعة
    sat: saturday saturdays samstag sonnabend samedi sábado sabato суббот[уы] 周六 星期六 土曜 토요일 السبت
    sun: sunday sundays sonntag dimanche domingo domenica воскресень[ея] 周日 星期天 星期日 日曜 일요일 الأحد
    """
)
_UNITS = _table(  # units of measures
    r"""
    %: % percent prozent pour_cent por_ciento por_cento per_cento процент\w* パーセント 퍼센트
    money: € \$ £ ¥ eur euros? usd dollars? dólares dollari rub руб\w* 元 块 円 원 دولار يورو ct cents? reais
    ms: ms milliseconds? millisekunden миллисекунд\w* мс 毫秒 ミリ秒 밀리초
    s: s secs? seconds? sekunden? secondes? segundos? secondi секунд\w* 秒 초 ثانية ثوان
    min: mins? minutes? minuten? minutos? minuti минут\w* 分钟? 分間 분 دقيقة دقائق
    h: h hrs? hours? stunden? std heures? horas? ore ora час\w* 小时 時間 시간 ساعات? ساعة
    day: d days? tagen? tage jours? días? dias? giorni giorno день дня дней 天 日間 일간? أيام يوم
    week: weeks? wochen? semaines? semanas? settiman[ae] недел\w* 周 週間? 주 أسابيع أسبوع
    month: months? monaten? monate mois mes(?:es)? mês mesi месяц\w* 个月 か月 ヶ月 개월 달 أشهر شهر
    size: b kb mb gb tb kib mib gib bytes? go mo кб мб гб
    length: px pt em rem mm cm m km m2
    text: words? lines? pages? chars? characters? wörter zeilen seiten mots lignes palabras líneas linhas
        palavras righe parole слов\w* строк\w* 行 字 页 語 줄 أسطر كلمات?
    people: people persons? users? guests? personen leute personnes personas pessoas persone человек 人 명
    """
)
_MONTHS = f"(?:{_NAMES['month']})"
_DATES = (
    re.compile(
        r"\b(\d{1,2})(?:st|nd|rd|th|\.|º|er)?(?:\s*(?:-|–|to|and|&|bis|und|et|y|e|и)\s*(\d{1,2})(?:st|nd|rd|th|\.)?)?"
        rf"\s+(?:of |de |di )?{_MONTHS}\b"
    ),
    re.compile(rf"\b{_MONTHS}\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:\s*(?:-|–|to|and|&)\s*(\d{{1,2}})\b)?"),
    re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b"),
    re.compile(r"(\d{1,2}月\d{1,2}[日号]|\d{1,2}[号]|\d{1,2}월 ?\d{1,2}일)"),
    re.compile(r"\b(\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.(?:\d{2,4})?|\d{1,2}/\d{1,2}(?:/\d{2,4})?)(?!\w)"),
)  # fmt: skip
_TIMES = (
    re.compile(r"\b(\d{1,2}[:h]\d\d)\b(?!\.)"),
    re.compile(r"\b(\d{1,2} ?(?:am|pm|uhr|o'clock)|[àa] \d{1,2} ?h)\b"),
    re.compile(r"(\d{1,2}[点點時时시](?:半|\d{1,2}分)?)"),
)
_DAY_OF = {name: day for day, names in _DAYS.items() for name in names.split("|") if name.isalpha()}
_OTHER_DAYS = tuple(  # names in scripts that don't put spaces between words, and those with endings
    (day, re.compile("|".join(name for name in names.split("|") if not name.isascii()))) for day, names in _DAYS.items()
)
_LETTERS = re.compile(r"[^\W\d_]+")
_ANY_VALUE = re.compile(r"\d|@|://")
_UNIT_NAMES = tuple((unit, re.compile(rf"(?:{names})\Z")) for unit, names in _UNITS.items())
_MEASURE = re.compile(
    r"(?<![\w.,#/-])(?:(?P<sign>[$€£¥])\s?)?(?P<number>\d{1,9}(?:[.,]\d{1,6})?)(?P<k>k)?\s?-?"
    r"(?P<unit>[%€$£¥]|[^\W\d_]{1,13}2?)?(?![\w-])"
)
_HAN_MEASURE = re.compile(
    r"(\d{1,9}(?:\.\d+)?)\s?(个月|小时|分钟|毫秒|秒|天|周|元|块|行|字|页|人|時間|分間|ミリ秒|か月|週間|円|語|분|초|"
    r"시간|개월|일|주|원|줄|명)"
)
_NAMED_NUMBER = re.compile(
    r"(?:#|№|\b(?:issue|ticket|row|line|step|pr|no\.?|nr\.?|number|page|chapter|week|phase|question|q|task|option|"
    r"turn|part|file|id"
    r"|pid|zeile|schritt|seite|ligne|étape|paso|línea|passo|linha|riga|строка|шаг))\s*\d+"
)
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+)\b")
_ADDRESS = re.compile(
    r"((?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}|https?://[^\s\"'<>]{1,200}"
    r"|(?<![\w.-])(?:[\w-]{1,40}\.){1,5}(?:org|com|net|de|io|dev|fr|es|it|ru|cn|jp|kr)\b)"
)


class Value(msgspec.Struct, frozen=True):
    """One value: `sort` is a date, a weekday, a unit …; values of one sort may replace each other."""

    sort: str
    text: str


@lru_cache(maxsize=2048)
def values(text: str) -> frozenset[Value]:
    """Gives the values of a text; a number that names something (issue 88, line 3) is none."""
    low = text[:MOST].lower()
    found = {Value("weekday", _DAY_OF[word]) for word in _LETTERS.findall(low) if word in _DAY_OF}
    if not low.isascii():
        found |= {Value("weekday", day) for day, pattern in _OTHER_DAYS if pattern.search(low)}
    if not _ANY_VALUE.search(low):
        return frozenset(found)

    def taken(sort: str) -> Callable[[re.Match[str]], str]:
        def take(match: re.Match[str]) -> str:
            found.update(Value(sort, part) for part in match.groups() if part)
            return " "

        return take

    rest = _NAMED_NUMBER.sub(" ", low)
    for sort, patterns in (("address", (_ADDRESS,)), ("version", (_VERSION,)), ("date", _DATES), ("time", _TIMES)):
        for pattern in patterns:
            rest = pattern.sub(taken(sort), rest)
    found |= {Value(_unit(match[2]), match[1]) for match in _HAN_MEASURE.finditer(rest)}
    found |= {_measure(match) for match in _MEASURE.finditer(_HAN_MEASURE.sub(" ", rest))}
    return frozenset(found)


def _measure(match: re.Match[str]) -> Value:
    number = match["number"].replace(",", ".") + (match["k"] or "")
    unit = "money" if match["sign"] else _unit(match["unit"] or "")
    return Value(unit or "number", number)


@lru_cache(maxsize=1024)
def _unit(word: str) -> str:
    return next((unit for unit, pattern in _UNIT_NAMES if pattern.match(word)), "") if word else ""
