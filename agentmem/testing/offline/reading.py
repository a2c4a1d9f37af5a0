"""What the offline model understands: fixed patterns of what people state about themselves.

`docs/offline-model.md` explains them. A line break inside a pattern, and the spaces after it, are
not part of it.
"""

# ruff: noqa: RUF001 - punctuation of other scripts is meant

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from agentmem.dreaming.named_dates import absolute
from agentmem.dreaming.text import fold, sentences, tokens
from agentmem.dreaming.timewords import TimeWord, relative
from agentmem.dreaming.words import CLOSED_CLASS

STATEMENTS = r"""
retraction  -               -                   forget (?:about |what i said about )?(?:my|the) (.+)
retraction  -               No longer {0}       i no longer (.+)
retraction  -               No longer {0}       i (?:do not|am not) (.+) any ?more.*
retraction  -               {clause}            ich (.+?) nicht mehr.*
retraction  -               {0} is cancelled    (?:my|our|the) (.+?) (?:is|was) cancel(?:led|ed).*
correction  -               {1}                 (?:.*\b(?:is|meant|said|am) )?not (.+?),? but (.+)
correction  -               {1}                 .*\bnicht (.+?),? sondern (.+)
correction  -               {1}                 .*\bno (?:es )?(.+?),? sino (.+)
correction  -               {1}                 .*不是(.+?)[,，]?而?是(.+)
correction  -               {0}                 (?:it is|make (?:it|that)|i meant) (.+)
profile     user_name       Is called {0}       (?:my name is|i am called|call me|i go by) (.+)
profile     user_name       {clause}            (?:ich heiße|mein name ist|me llamo|اسمي) (.+)
profile     user_name       {clause}            我(?:叫|的名字是)(.+)
profile     home_city       Lives in {0}        (?:i|we) live in (.+)
profile     home_city       Moved to {0}        (?:i|we) (?:have )?moved to (.+)
profile     home_city       {clause}            ich (?:wohne|lebe) (?:jetzt )?in (.+)
profile     home_city       {clause}            ich bin (?:jetzt )?nach (.+?) (?:um)?gezogen
profile     home_city       {clause}            (?:yo )?(?:ahora )?(?:vivo en|me mudé a) (.+)
profile     home_city       {clause}            我(?:现在)?(?:住在|搬到了?)(.+)
profile     home_city       {clause}            (?:أعيش|أسكن|انتقلت) (?:الآن )?(?:في|إلى) (.+)
profile     work_employer   Works at {0}        i (?:am )?work(?:ing)? (?:at|for) (.+)
profile     work_role       Works as {0}        i work as (.+)
profile     work_field      Works in {0}        i work in (.+)
profile     work_employer   {clause}            ich arbeite (?:jetzt )?bei (.+)
profile     work_role       {clause}            ich arbeite (?:jetzt )?als (.+)
profile     work_employer   {clause}            (?:yo )?(?:ahora )?trabajo en (.+)
profile     work_employer   {clause}            我(?:现在)?在(.+)工作
profile     work_employer   {clause}            أعمل (?:الآن )?في (.+)
profile     allergy_{0}     Is allergic to {0}  i am allergic to (.+)
profile     diet            Is {0}              i am (?:an? )?((?:vegan|vegetarian)\b.*)
profile     languages       Speaks {0}          i (?:can )?speak (.+)
preference  preference_{1}  {0}s {1}            i (?:really )?(like|love|prefer|hate|dislike) (.+)
preference  preference_{0}  Does not like {0}   i do not like (.+)
preference  preference_{0}  Cannot stand {0}    i cannot stand (.+)
preference  preference_{0}  {clause}            ich (?:mag|liebe|hasse) (.+)
preference  preference_{0}  {clause}            (?:me gustan?|prefiero|odio) (.+)
preference  preference_{0}  {clause}            我(?:最?喜欢|讨厌)(.+)
preference  preference_{0}  {clause}            (?:أحب|أفضل) (.+)
decision    decision_{0}    Decided: {0}        we (?:have )?(?:decided|agreed) (?:to|on|that) (.+)
decision    rule_{0}        From now on: {0}    from now on,? (.+)
profile     {0}_name        {0} is called {1}   my (.+?)(?: is called| is named|'s name is) (.+)
profile     {0}_name        {0} is called {1}   i have an? (\w+) (?:called|named) (.+)
profile     {1}             {1} is {0}          (?!this|that|it)(.+) is my (favou?rite .+)
profile     {0}             {0} is {1}          (?:my|our) (.+?) (?:is|are|changed to) (.+)
profile     {0}             {0} is {1}          the ((?:deadline|budget|code ?name)\b.*?) is (.+)
profile     {0}             {0} ist {1}         meine? (.+?) (?:ist|heißt) (.+)
profile     {0}             {0} es {1}          mi (.+?) (?:es|se llama) (.+)
profile     {0}             {0}是{1}             我的(.+?)[是叫](.+)
event       {0}             {0} is              (?:my|our|the) (.+?) (?:is|are|was|will be)
event       event_{0}       {0}                 (?:i|we) (?:am |are |will |have )?(.+)
event       event_{0}       {0}                 (?:my|our) (.+)
event       event_{0}       {0} {1}             the (.+?) ((?:starts|ends|comes|leaves|opens).*)
event       event_{0}       {clause}            (?:ich|wir|yo|我们?) ?(.+)
"""
"""Kind, key, value and clause of what is understood, tried in this order.

{0} and {1} are what the clause caught, {clause} is all of it. A retraction replaces the fact that
tells of {0}, or takes it back ("-"); a correction puts {1} in the place of {0}, or {0} in that of
what was said before. A value keeps the user's words, which the evidence is compared with.
"""


def regex(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of several lines, whatever the case."""
    return re.compile(re.sub(r"\n *", "", pattern), re.IGNORECASE)


_ROWS = [
    (kind, key, value, regex(clause))
    for kind, key, value, clause in (
        re.split(r" {2,}", row) for row in STATEMENTS.strip().split("\n")
    )
]

# What states nothing: questions, ifs, jokes, quotes, secrets.
_UNTOLD = regex(r"""
    [?？؟]\W*$|^\s*>|["“«][^"”»]*\b(?:i|i'm|my|we)\b|如果|密码|\b(?:if|unless|would|could|might
    |maybe|perhaps|imagine|suppose|pretend|wish|kidding|joking|lol|haha|wenn|falls|würde|vielleicht|si|ojalá|password|passwort|secret)\b
""")
_CLAUSES = regex(r"""
    [;；]\s*|(?:,? (?:and|but|so|und|aber|y|pero) |[,:] )(?=(?:i|i'm|i've|we|my|our|ich|meine?|mi|me
    |vivo|trabajo) )|[,，](?=我)|[,،]? و?(?=(?:أعيش|أسكن|أحب|أعمل|اسمي)\b)
""")
# What may stand before a statement.
_LEAD = regex(r"""
    ^(?:(?:(?:hi|hello|hey|well|ok|okay|so|and|but|also|oh|yes|no|sorry|actually|correction|wait|btw
    |by the way|fyi|for the record|please|remember|note|just so you know|that|now|in fact|hallo|hola
    |übrigens|eigentlich|además|por cierto|مرحبا|في الواقع)\b|你好|其实|对了)[\s,:!.，：！،–—-]*)+
""")
# Where what was caught ends, and what is no part of its end.
_END = regex(r"""
    (?:,? (?:because|since|so that|although|though|while|which)\b| and (?:i|it|he|she|work|live|have
    |like|love|am|my)\b| y (?:vive|trabaja)\b|[,，] ?(?![A-Z\d])| [–—-] |\().*
""")
_TAIL = regex(r"""
    (?:[\s.!,:。！，،"'”]|\b(?:now|these days|please|too|as well|by the way|again|instead|jetzt
    |ahora|on|in|at|by|from|until|for|am|im|el))+$
""")
_GAP = re.compile(r"(?<=[\u3040-\u9fff]) (?=[\u3040-\u9fff])")
_CORRECTS = regex(r"\b(?:actually|correction|sorry|meant|wait|eigentlich|en realidad)\b|其实")
# What is not worth keeping when it begins so: what is said of something, and what it is said of.
_VAGUE = regex(r"""
    (?:not|so|very|too|really|quite|just|getting|going|doing|being|having|good|bad|fine|ready|great
    |almost|always|been|a bit|a little|nice|here|back|that|it|this|what|how|why|to)\b
""")
_HOLLOW = regex(r"""
    (?:points?|guess|questions?|problem|bad|fault|turn|god|idea|have an?|been|think|want|need|wonder
    |forgot|asked|said|told|mean|hope)\b
""")
_SPELT_OUT = {
    "’": "'",
    r"\b(i)'m\b": r"\1 am",
    "'ve": " have",
    "'ll": " will",
    r"\bcan't": "cannot",
    "n't": " not",
    r"\b(it|that)'s": r"\1 is",
}


class Said(NamedTuple):
    """Something that a user states; a correction and a retraction have no key of their own."""

    kind: str
    quote: str
    key: str
    value: str
    caught: str
    """What the clause says of its subject: what a short correction takes the place of."""
    old: str
    """What is corrected or taken back; empty for what was said just before."""
    words: str
    happened: str


@lru_cache(maxsize=4096)  # the same conversation is read again for each answer in it
def said(text: str, day: date | None = None) -> tuple[Said, ...]:
    """Read what a user states in a text; nothing of questions, ifs, jokes and secrets.

    Args:
        text: What the user said.
        day: When, to make dates of time words; without it they stay as they are.
    """
    told = [sentence for sentence in sentences(text) if not _UNTOLD.search(sentence)]
    clauses = [(clause, sentence) for sentence in told for clause in _CLAUSES.split(sentence)]
    read = [_read(clause.strip(), sentence, day) for clause, sentence in clauses]
    return tuple(found for found in read if found)


def _read(clause: str, quote: str, day: date | None) -> Said | None:
    """Read a clause by the first pattern that catches something of it."""
    plain = clause
    for short, full in _SPELT_OUT.items():
        plain = re.sub(short, full, plain, flags=re.IGNORECASE)
    plain = _bare(_LEAD.sub("", plain))
    time = _time(plain, day)
    if time.words:
        plain = _bare(_GAP.sub("", " ".join(plain.replace(time.words, " ").split())))
    corrects = bool(_CORRECTS.search(clause))
    for kind, key, value, pattern in _ROWS:
        match = pattern.fullmatch(plain)
        if not match or (kind == "event" and time.iso in ("", str(day))):
            continue
        caught = [_bare(_END.sub("", part)) for part in match.groups()]
        if kind == "event" and key != "{0}" and plain.isascii() and len(tokens(plain)) < 3:
            continue  # "I moved": says too little by itself
        if kind == "correction" and len(caught) == 1 and not corrects:
            continue  # "it is great" corrects nothing
        if not all(caught) or _HOLLOW.match(caught[0]) or _VAGUE.match(caught[-1]):
            continue
        told = value.format(*caught, clause=_bare(_END.sub("", plain))) + _on(time.iso, key, value)
        return Said(
            kind="correction" if key != "-" and corrects else kind,
            quote=quote,
            key="" if key == "-" else key.format(*map(slug, caught)),
            value="" if value == "-" else told[:1].upper() + told[1:],
            caught=caught[-1],
            old=caught[0] if kind == "retraction" or len(caught) > 1 else "",
            words=time.words,
            happened=time.iso,
        )
    return None


def _time(text: str, day: date | None) -> TimeWord:
    """Return the first time of a text, unless it comes back every year."""
    if day is None or re.search(r"birthday|anniversary|geburtstag|cumpleaños", text, re.IGNORECASE):
        return TimeWord("", "")
    return next(iter([*relative(text, day), *absolute(text, day)]), TimeWord("", ""))


def _bare(text: str) -> str:
    return _TAIL.sub("", text).strip()


def slug(text: str) -> str:
    """Return the first three content words of a text as a part of a key."""
    words = [word for word in tokens(text.casefold()) if fold(word) not in CLOSED_CLASS]
    return "_".join(words[:3])[:60] or "note"


def _on(iso: str, key: str, value: str) -> str:
    """Return a date as the end of a value."""
    if not iso or value == "{clause}":  # whose language may not be English
        return iso and f" ({iso})"
    if key == "work_employer":
        return f" since {iso}"
    if "/" in iso:
        return f" from {iso.replace('/', ' to ')}"
    return f" on {iso}" if len(iso) == 10 else f" in {iso}"
