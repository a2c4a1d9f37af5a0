"""How people take back what they said, or ask to forget it, in the languages it is tried with.

In a language that is missing here, such a removal is held, and a person applies it.
"""
# ruff: noqa: RUF001 - signs of many scripts

import re
from collections.abc import Iterable

from agentmem.dreaming.language.text import fold, negates

_ASKED = """
forget | delete | remove | erase | wipe | disregard | scratch that | take that back | take it back
don't remember | do not remember | don't store | do not store | don't keep | do not keep
stop remembering | vergiss | vergessen sie | lösch | lösche | забудь | забудьте | удали | удалите
сотри
"""
_ASKED_FIRST = """
oublie | oubliez | efface | supprime | olvida | olvídalo | borra | elimina | dimentica | cancella
esqueça | esquece | apaga
"""
"""Requests that are tales after a noun: "mi madre siempre olvida"."""
_OPENINGS = """
por favor s'il te vous plaît per favore please ahora ya maintenant alors pues y et e o ora allora
agora então mejor puis luego poi depois ok
"""
"""Words that may stand before those."""
_WRONG = """
wrong | incorrect | untrue | not true | isn't true | wasn't true | not right | isn't right
not correct | a mistake | my mistake | misspoke | joking | kidding | made it up | made that up
falsch | stimmt nicht | faux | falso | sbagliato | errado | неправда | неверно | ошибся | ошиблась
"""
_INSTEAD = """
actually | instead | rather | correction | no longer | anymore | from now on
changed | switched | moved | these days | nowadays | i meant | sondern | statt | stattdessen
nicht mehr | doch | eigentlich | en fait | plutôt | ne plus | au lieu | en realidad | en vez | ya no
invece | non più | na verdade | em vez | теперь | больше не | на самом деле | вместо
"""
_INSTEAD_UNSPACED = "其实 | 而是 | 不再 | 改成 | 现在 | 実は | 今は | もう | 아니라 | 이제"
_UNSPACED = re.compile(
    r"忘记|忘掉|忘了|删除|删掉|(?<!对)不对(?!称)|(?<![没不])错了"
    r"|(?:忘れて|消して)(?!し|た|い(?!ただ)|ま|は|も|な|る)"
    r"|削除(?!し(?:た|ま|な|て(?:し|た|い(?!ただ)|る|な|は))|され|せ|ず|済)"
    r"|間違い(?!な|あり|は|では|じゃ)"
    r"|(?:잊어|지워|삭제)(?![가-힣]{0,4}지 ?(?:마|말|않|못))(?!버렸|졌|했|됐|된)|(?<!안 )틀렸"
)
"""Not what is told ("忘れてしまった") or wanted not to be ("삭제하지 마세요")."""

_FIRST = "i i'd i'll we we'd we'll ich wir я мы"
_OTHERS = "they he she it who they'll he'll she'll er sie man он она они"
_WISHES = """
want like wish need ask asked prefer said meant i'd we'd möchte will bitte please хочу прошу
"""
"""What makes a request of "I": "I'd like to delete my address", not "I always forget it"."""
_ASKING = "did do does didn't if when how why whenever"
"""Words before "you" that ask or suppose: "did you forget?"."""
_NEAR = 4
"""How many words before a cue tell whose it is."""
_LEAD = 40
"""How many characters before a cue tell who says it."""
_ON = 300
"""How many characters after it tell of what."""
_ARTICLES = frozenset(["the", "a", "an"])
_OF_WHAT_IS_KNOWN = """
that that's this it it's is was you you've you're stored noted saved gave told said
"""
"""What makes of "the wrong number" a word about what is remembered."""


def takes_back(text: str) -> bool:
    """Whether a text takes something back or asks to forget it.

    That something has ended ("I stopped drinking coffee") is neither: what holds now must stand
    somewhere before the old fact goes. Nor is telling or asking of forgetting ("I always forget
    my keys", "did you forget?"), nor the opposite ("don't ever forget"), nor what others say
    ("he said: forget the dog"), nor what is asked for or wrong with a thing ("delete the drafts
    from the folder", "they sent the wrong tyre").
    """
    plain = fold(text)
    return any(
        _in_clause(found[0])
        for found in _CLAUSE.finditer(plain)
        if not _REPORTED.search(plain[max(0, found.start() - _LEAD) : found.start()])
    )


def corrects(text: str) -> bool:
    """Whether a text puts something in the place of what was so before."""
    return bool(_CORRECTS.search(fold(text)))


def _in_clause(clause: str) -> bool:
    return (
        any(_asked(clause, *found.span()) for found in _ASKS.finditer(clause))
        or any(_opens(clause[: found.start()]) for found in _ASKS_FIRST.finditer(clause))
        or any(_wrong(clause, found.start()) for found in _SAYS_WRONG.finditer(clause))
        or any(_unspaced(clause[: found.start()]) for found in _UNSPACED.finditer(clause))
    )


def _asked(clause: str, start: int, end: int) -> bool:
    words, after = _before(clause, start)[-_NEAR:], clause[end : end + _ON]
    if any(map(negates, words)) or _KEEPS.match(after):
        return False
    if _ON_A_THING.match(clause[start:end] + after):
        return False
    if _REPORTED.search(clause[max(0, start - _LEAD) : start]):
        return False
    who = next((word for word in reversed(words) if word in _SUBJECTS), "")
    if who == "you":
        before = words[: words.index("you")][-1:]
        return not _among(before, _ASKING)
    return not _among([who], _OTHERS) and (not _among([who], _FIRST) or _among(words, _WISHES))


def _opens(before: str) -> bool:
    return set(_OPENINGS.split()).issuperset(before.split())


def _wrong(clause: str, start: int) -> bool:
    words = _before(clause, start)
    if words[-1:] and words[-1] in _ARTICLES and not _among(words[:-1][-_NEAR:], _OF_WHAT_IS_KNOWN):
        return False
    return clause[-1] not in "?？" and not any(map(negates, words[-_NEAR:]))


def _before(clause: str, start: int) -> list[str]:
    return clause[max(0, start - 2 * _LEAD) : start].split()


def _unspaced(before: str) -> bool:
    near = _SORRY.sub("", before)[-8:]
    told = re.search("[我他她们].{0,3}$", near) and not re.search("[请要想让你]", near)
    return not told and not re.search("[别不勿没未]", near)


def _among(words: Iterable[str], known: str) -> bool:
    return not set(known.split()).isdisjoint(words)


def _any(words: str) -> str:
    parts = (part.strip() for part in re.split(r"[|\n]", words))
    return "|".join(re.escape(part) for part in parts if part)


_CLAUSE = re.compile(r"[^.,;:!?，。；：！？、]+[?？]?")
_SORRY = re.compile("对不起|不好意思")
_KEEPS = re.compile(
    r"(?:(?!\b(?:dass|daß|was|wie)\b).)*\b(?:nicht|nie|niemals)\b| (?:pas|jamais)\b"
)
_ON_A_THING = re.compile(
    r"(?:delete|remove|erase|wipe|lösch\w*|удали\w*|сотри) (?:[^\s]+ ){0,8}?"
    r"(?:from|off|out of|aus|von|из|с) "
    r"(?!(?:[^\s]+ ){0,3}(?:memor\w+|mind|profile|notes?|records?|facts?|data|database|store"
    r"|storage|files? (?:on|about)|what|gedächtnis|speicher|profil|notizen|daten|памяти"
    r"|заметок|профиля)\b)"
    r"(?!(?:now on|here|there|it|you)\b)"
)
_REPORTED = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!\bi just )(?<!\bi have )(?<!\bi've )(?<!\bich )(?<!\bwir )(?<!\bя )"
    r"\b(?:said|says|told (?:me|us|him|her|them)|asked|wrote|shouted|sagte|sagt|meinte|schrieb"
    r"|a dit|disait|dijo|dice|ha detto|disse|сказал[аи]?|говорит)(?: to)?[\s:,\"'«„]*$"
    r"|(?<!我)(?<!我们)说[\s：:，“\"]*$"
)
_SUBJECTS = frozenset(["you", *_FIRST.split(), *_OTHERS.split()])
_ASKS = re.compile(rf"\b(?:{_any(_ASKED)})\b")
_ASKS_FIRST = re.compile(rf"(?<![\w'])(?:{_any(_ASKED_FIRST)})\b(?! pas| jamais)")
_SAYS_WRONG = re.compile(
    r"(?<!went )(?<!goes )(?<!gone )(?<!going )(?<!you )(?<!you're )(?<!must be )"
    rf"\b(?:{_any(_WRONG)})\b(?! with)"
)
_CORRECTS = re.compile(rf"\b(?:{_any(_INSTEAD)})\b|(?:{_any(_INSTEAD_UNSPACED)})")
