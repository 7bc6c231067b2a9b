"""Signs that newer words turn older ones round: taken out and put back, kept and removed, held and let go."""

from __future__ import annotations

import re
from functools import lru_cache

MOST = 2000  # characters that are looked at
_LEAVES_OUT = re.compile(
    r"\b(?:skip|drop|exclude|omit|ignore|leave \w+(?: \w+){0,3} out|leave out|take \w+(?: \w+){0,3} out|remove|"
    r"delete|without|no|not|only"
    r"|don'?t (?:include|use|touch|add|show|change|send)|stays?|nur|ohne|kein\w*|nicht|raus|weglassen|lass \w+ weg|"
    r"sans|pas|seulement"
    r"|uniquement|enlève|retire|sin|solo|sólo|quita|no (?:incluyas|uses|toques)|saca|sem|só|apenas|tira|exclu[ai]|"
    r"não|senza|non|togli"
    r"|soltanto|escludi|без|только|не|убери|исключи|пропусти)\b|不要|不用|去掉|删掉|只|先不|除外|のみ|だけ|"
    r"しないで|除いて|外して|말고|빼|만 |제외"
    r"|بدون|فقط|لا ت|احذف|استثن",
    re.IGNORECASE,
)
_TAKES_IN = re.compile(
    r"\b(?:put \w+(?: \w+){0,3} back|bring \w+(?: \w+){0,3} back|back in|include|including|come along|after all|"
    r"too|as well|may|allowed"
    r"|are ok|is ok|is fine|are fine|both|again|can (?:stay|be used|have|see|use)|wieder (?:rein|mit|dazu)|auch|"
    r"doch|aussi|remets"
    r"|inclu[st]?|inclure|également|finalement|también|incluye|incluir|otra vez|de nuevo|também|inclui|"
    r"pode incluir|de novo|anche"
    r"|includi|di nuovo|rimetti|тоже|также|включи|верни|всё-таки|снова|можно)\b|也要|也可以|加回|放回|还是要|含め|"
    r"も(?:入れ|含|使)|戻し|도 (?:넣|포함|추가)|다시"
    r"|أيضا|أيضاً|أضف|مسموح",
    re.IGNORECASE,
)
_KEEPS = re.compile(
    r"\b(?:leave|keep|stays?|retain|preserve|untouched|for now|behalt\w*|lass|bleib\w*|garde[rz]?|laisse[rz]?|"
    r"conserve|deja|mantén|conserva"
    r"|mant[ée]m|deixa|mantenha|tieni|lascia|mantieni|оставь|сохрани|не трогай)\b|保留|留着|别动|不动|残し|"
    r"そのまま|유지|그대로|남겨|أبق|احتفظ|اترك",
    re.IGNORECASE,
)
_REMOVES = re.compile(
    r"\b(?:remove|drop|delete|get rid of|take \w+(?: \w+){0,3} (?:out|off)|kill|throw (?:it|that|them)? ?out|"
    r"replace|entfern\w*|lösch\w*|weg mit"
    r"|raus|supprime[rz]?|enlève|retire|vire|quita|elimina|borra|saca|remove|tira|apaga|exclui|rimuovi|togli|"
    r"elimina|cancella"
    r"|удали|убери|выкинь|снеси)\b|删掉|去掉|移除|拿掉|删除|削除|外して|消して|삭제|제거|빼|احذف|أزل",
    re.IGNORECASE,
)
_HOLDS = re.compile(
    r"\b(?:until i (?:say|tell|ok|approve|confirm)|till i (?:say|tell)|before i (?:say|approve)|not yet|no (?:code|"
    r"changes?|edits?|editing|writing) yet"
    r"|don'?t \w+(?: \w+){0,4} yet|hold off|for now,? (?:just|only|no)|(?:just|only) (?:plan|analy[sz]e|diagnos\w+|"
    r"look|read|discuss)\b"
    r"|read[- ]only|no (?:code|coding|edits?|editing|changes?) (?:before|until|till)|test mode|dry[- ]run only|"
    r"code freeze|change freeze"
    r"|only \w+(?: \w+){0,3} until|noch (?:nicht|kein\w*|nichts)|erst wenn ich|bis ich|vorerst|pas encore|"
    r"pour l'instant|tant que|jusqu'à ce que"
    r"|todavía (?:no|nada)|aún (?:no|nada)|por ahora|de momento|hasta que|por enquanto|ainda (?:não|nada)|até eu|"
    r"ancora (?:niente|non)"
    r"|per ora|finché non|пока (?:не|без|только)|ещё не|до моего)\b|先不要|先别|暂时(?:不|别)|等我|"
    r"まだ.{0,12}(?:ないで|しないで)|ひとまず|아직.{0,12}(?:말|마)|일단은?"
    r"|ليس بعد|لا تكتب|حتى أ(?:قول|وافق)|في الوقت الحالي",
    re.IGNORECASE,
)
_LETS_GO = re.compile(
    r"\b(?:go live|go ahead|go for it|you (?:can|may) (?:now |go ahead and )?(?:start|go|edit|write|deploy|code|"
    r"change|send|push|run|build|implement|touch|fix)"
    r"|now you (?:can|may)|(?:ok|okay|yes|now|please|and)?,? ?start (?:coding|implementing|writing|building|"
    r"editing)|implement it(?: now)?|lift (?:the|that)"
    r"|freeze is (?:over|lifted)|i (?:approve|confirm)|approved|ok to (?:edit|deploy|push|go|start)|freigegeben|"
    r"freigabe erteilt"
    r"|(?:jetzt )?(?:darfst|kannst) du (?:jetzt )?|leg (?:jetzt )?los|fang (?:jetzt )?an|tu peux (?:maintenant |"
    r"y aller|commencer|coder|modifier)|vas-y"
    r"|ya puedes|puedes (?:empezar|editar|escribir)|adelante|pode (?:corrigir|começar|editar|subir|fazer|escrever|"
    r"implementar|mexer)"
    r"|puoi (?:ora|adesso|iniziare|procedere|scrivere|modificare)|procedi|теперь можно|можешь (?:начинать|писать|"
    r"менять|править)|приступай)\b"
    r"|可以(?:开始|动手|写|改|上线|部署)了?|开始(?:写|改|做|实现)|动手吧|(?:書いて|始めて|実装して|"
    r"変更して)(?:ください|いいです|大丈夫です)|着手して"
    r"|이제 .{0,12}(?:해도|써도|시작|작성|구현)|시작해|يمكنك الآن|ابدأ (?:الآن|الكتابة|التنفيذ)|نفذ الآن",
    re.IGNORECASE,
)
_STILL_HELD = re.compile(r"\b(?:not|don'?t|no|until|nicht|pas|sin|não|non|не)\b|不|别|ない|마", re.IGNORECASE)


@lru_cache(maxsize=4096)
def _directions(text: str) -> tuple[bool, bool, bool, bool]:
    """Tells whether a text leaves out, takes in, keeps, removes."""
    signs = (_LEAVES_OUT, _TAKES_IN, _KEEPS, _REMOVES)
    out, into, keeps, removes = (sign.search(text) is not None for sign in signs)
    return out, into, keeps, removes


def turned_by(clause: str, newer: str) -> bool:
    """Tells whether newer words take back in what a clause leaves out, or the other way round.

    Both must speak about the same subject: this looks at the direction alone.
    """
    out, into, keeps, _ = _directions(clause)
    now_out, now_into, now_keeps, now_removes = _directions(newer[:MOST])
    if keeps and now_removes and not now_keeps:
        return True
    return (out and not into and now_into) or (into and not out and now_out)


@lru_cache(maxsize=2048)
def holds(text: str) -> bool:
    """Tells whether words forbid an act for the time being: "no code yet", "until I say so"."""
    return _HOLDS.search(text) is not None


@lru_cache(maxsize=512)
def lets_go(text: str) -> bool:
    """Tells whether words let go what was held: "go ahead", "you can edit now"; a bare "ok" or "continue" doesn't."""
    found = _LETS_GO.search(text[:400])
    return found is not None and _STILL_HELD.search(text[: found.start()]) is None
