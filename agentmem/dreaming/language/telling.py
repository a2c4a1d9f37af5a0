"""In which sense a clause tells something: asked, supposed, denied, over, or of somebody else.

A guess for the languages it is tried with; in another one a clause counts as a plain statement.
"""
# ruff: noqa: RUF001 - words of many scripts

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import takewhile

from agentmem.dreaming.language.kin import KIN, OF_KIN, OF_THEMSELVES, OURSELVES
from agentmem.dreaming.language.text import fold, names, sentences, stems


@dataclass(frozen=True)
class Told:
    """A clause that tells something.

    Attributes:
        words: Which of the stems looked for it has.
        senses: What makes it no plain statement of the speaker's own.
        whom: The stems of the name of whom it tells instead, where it has one.
    """

    words: frozenset[str]
    senses: frozenset[str]
    whom: frozenset[str] = frozenset()


def tellings(text: str, words: Collection[str]) -> Iterator[Told]:
    """Yield the clauses of a text that have some of these stems."""
    wanted = frozenset(words)
    for sentence in sentences(text):
        for part in filter(str.strip, _SPLIT.split(sentence)):
            if shared := wanted.intersection(stems(part)):
                other = _other(part, shared)
                senses = {*_senses(part, shared), *(["another"] if other is not None else [])}
                yield Told(shared, frozenset(senses), other or frozenset())


def states(text: str, told: Told, sense: str) -> bool:
    """Whether a text itself says in that sense what a clause says."""
    if _SAYS[sense].search(fold(text)):
        return True
    return any(sense in other.senses for other in tellings(text, told.words))


def affirms(text: str) -> bool:
    """Whether a message begins with a yes."""
    return bool(_YES.match(fold(text)))


def denies(text: str) -> bool:
    """Whether a message begins with a no."""
    return bool(_NO.match(fold(text)))


def _senses(clause: str, shared: frozenset[str]) -> Iterator[str]:
    text = fold(clause)
    if (text[-1:] in "?？؟" or _ASKS.search(text)) and not _REQUEST.search(text):
        yield "asked"
    places = [at.start() for at in re.finditer(r"[\w'.]+", text) if shared & set(stems(at[0]))]
    for sense, marks in (("supposed", _SUPPOSED), ("denied", _DENIED), ("over", _OVER)):
        if any(_reaches(text, mark, max(places, default=0)) for mark in marks.finditer(text)):
            yield sense


def _reaches(text: str, mark: re.Match[str], place: int) -> bool:
    """Whether a mark is about the word at a place: not beyond an "and", or another "I"."""
    if _UNSPACED.search(mark[0]):
        return True
    if place < mark.start():
        return mark[0] in _FINAL and not text[mark.end() : mark.end() + 9].strip(" .!?")
    if place - mark.end() > _REACH:
        return False
    between = text[mark.end() : place]
    before = text[max(0, mark.start() - _REACH) : mark.end()]
    subjects = bool(_SUBJECT.search(before)) + len(_SUBJECT.findall(between))
    return subjects < 2 and not _BREAK.search(between)


def _other(clause: str, shared: frozenset[str]) -> frozenset[str] | None:
    """Return the name of whom a clause tells, if it is not the speaker; None if it is."""
    text, parts = fold(clause), clause.split()
    if (found := OF_KIN.match(text)) and OF_THEMSELVES.search(text[found.end() :]):
        rest, start = text[found.end() :], len(found[0].split())
    elif (found := _NAMED.match(text)) and clause[:1].isupper() and parts[0] not in _NOBODY:
        rest, start = text, 0
    else:
        return None
    if OURSELVES.search(rest) or not shared.intersection(stems(rest)):
        return None
    named = takewhile(lambda word: word[:1].isupper(), parts[start : start + 2])
    return frozenset(names(" ".join(named)))


_REACH = 60
"""Characters at most between a mark and what it is about."""
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_SPLIT = re.compile(
    r"[,;:](?=\s)|[()、，；：]| [-–—] |—|\b(?:but|whereas|sondern|aber|mais|pero|sino)\b"
    r"| но |但是?|而是",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"\b(?:and|because|since|so|then|only|just|instead|rather|except|und|weil|nur|et|y|solo|e|и"
    r"|только)\b"
)
_SUBJECT = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|we|my|ich|wir|je|я|мы)\b")
_NAMED = re.compile(
    r"\w+ (?:lives|works|likes|loves|prefers|hates|owns|drives|eats|drinks|speaks|studies|wohnt"
    r"|arbeitet|habite|travaille|vive|trabaja|lavora|mora|живет|живёт|работает)\b"
)
_NOBODY = frozenset(["He", "She", "It", "Er", "Es", "Il", "Elle", "On", "Он", "Она", "Who", "That"])
_ASKS = re.compile(
    r"^(?:(?:so|and|well|hey|hm+|ok|or) )*(?:do|does|did|am|is|are|was|were|have|has|should|would"
    r"|will|can|could|may|what|where|who|which|when|why|how) (?:i|my|we|our|he|she|it|they)\b"
    r"|\b(?:wonder(?:ing)?|ask(?:ing|ed)?|unsure|not sure|don't know|tell me|say)"
    r" (?:if|whether)\b"
    r"|\b(?:frage mich|weiß nicht|sag mir) ?,? ?ob\b|\bme demande si\b|\bme pregunto si\b"
    r"|\bmi chiedo se\b|\bme pergunto se\b|吗$|是不是|是否|[ですま]か$|까$"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will|won't) you\b|\bd(?:o|id|on't) you (?:know|mind|note|remember|see)\b"
    r"|\bdid i (?:mention|show|tell)\b"
    r"|\bplease\b|\bshall (?:we|i)\b"
    r"|\b(?:can|could) (?:we|i (?:have|get))\b"
    r"|\b(?:right|ok|okay|you know)\W*$"
    r"|\b(?:kannst|könntest|würdest|weißt) du\b|\b(?:können|könnten|würden) sie\b|\bbitte\b"
    r"|\b(?:peux|pourrais|sais)-tu\b|\b(?:pouvez|pourriez|savez)-vous\b|\btu (?:peux|pourrais)\b"
    r"|\b(?:puedes|podrías|puede|sabías)\b|\b(?:puoi|potresti|sapevi)\b|\bvocê pode\b"
    r"|\b(?:можешь|можете|мог бы|могли бы|пожалуйста)\b"
    r"|请|你能|能不能|可以.{0,20}吗|くれ|もらえ|いただけ|주[실시세]"
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|assuming|as though|as if|wish|wished)"
    r" (?:that )?(?:i|we|my|our)(?:'d|'m|'re)?\b"
    r"|^if\b|\b(?:might|maybe|perhaps|possibly)\b|\b(?:i|we|you|he|she|it|they) (?:may|could)\b"
    r"|^may (?!\d|of\b)|\b(?:considering|thinking (?:of|about))\b"
    r"|\b(?:falls|wenn|ob) (?:ich|wir)\b|\b(?:vielleicht|eventuell|womöglich)\b"
    r"|\bsi (?:j'|je|nous|yo)\b|\bsi (?:viv|estuv|tuv|fu)\w+"
    r"|\b(?:peut-être|quizás?|tal vez|forse|talvez)\b"
    r"|\bse (?:io|eu|viv\w+ss\w*|foss\w*)\b"
    r"|\bесли (?:бы )?(?:я|мы)\b|\b(?:возможно|наверное|может быть)\b"
    r"|如果|假如|要是|也许|可能|或许|もし|かもしれ|만약|[ㄹ을] ?수도|아마"
)
_DENIED = re.compile(
    r"(?:\b(?:not|never(?! been (?:\w+er|so|more)\b)|cannot|neither|nor|without"
    r"|no longer|none of)\b"
    r"|\b(?!don't (?:forget|mind|worry)|can't wait|couldn't)\w+n't\b"
    r"|(?<!^)\bno\b(?! (?:doubt|problem|wonder|matter))|^no (?!i\b|i'm|my\b|it\b|it's|we\b|the\b)"
    r"(?=\w))"
    r"(?! (?:only|just|far|until|long ago)\b)"
    r"(?: (?:think|believe|know|say|said|mean|sure|claim)(?: that| if| whether)?(?: i| we)?\b)?"
    r"|\b(?:nicht|nie|niemals|kein\w*|ohne|pas|jamais|sans|nunca|jamás|sin|non|mai|senza|não|nem|sem"
    r"|не|нет|никогда|без|niet|geen|nooit|inte|aldrig|ikke|aldri)\b|\bn(?:e |')(?=\w)"
    r"|(?<=\w )no (?=\w)|^no (?=(?:vivo|soy|tengo|trabajo|como|bebo|me|es)\b)"
    r"|(?<![差对忍])不(?!错|好意|过|但|仅|久|同|得不|客气)|没(?!问题|错|关系)|[沒無无]"
    r"|(?<!かもしれ)(?<!なら)(?<!間違い)(?<!違い)ない(?!と)|ません|なかった|않|(?<![가-힣])안 |아니"
)
_FINAL = frozenset(["not", "nicht", "nie", "inte", "ikke", "niet", "pas"])
"""Words that turn round what stands before them, at a clause's end."""
_OVER = re.compile(
    r"(?<!i'm )(?<!am )(?<!are )(?<!is )(?<!was )(?<!get )(?<!got )(?<!getting )\bused to\b"
    r"|\b(?:formerly|previously|former|no longer|in the past|years ago|as a (?:child|kid))\b"
    r"|\b(?:früher|ehemals|ehemalige[rn]?|damals|autrefois|anciennement|jadis|antes|solía"
    r"|anteriormente|prima|antigamente|costumava|раньше|прежде|бывш\w+)\b"
    r"|以前|曾经?|过去|昔|かつて|예전|전에는"
)
_SAYS = {
    "asked": re.compile(
        r"[?？؟]|\b(?:ask\w*|wonder\w*|question\w*|unsure|curious|interest\w*|want\w*|look\w*"
        r"|search\w*|consider\w*|plan\w*|need\w*|inquir\w*|enquir\w*|whether|unclear|unknown|frag\w+"
        r"|ob|demand\w+|pregunt\w+|chied\w+|pergunt\w+|спра?ш\w+|спросил\w*|интерес\w+)\b"
        r"|问|想|質問|聞|知り|물어|궁금"
    ),
    "supposed": re.compile(
        r"\b(?:if|may|might|maybe|perhaps|possib\w+|potential\w*|consider\w*|think\w*|plan\w*"
        r"|want\w*|wish\w*|would|could|hop\w+|imagin\w+|hypothet\w+|unsure|undecided|vielleicht|falls"
        r"|überleg\w+|möcht\w+|würde|könnte|erwäg\w+|peut-être|pourrait|envisag\w+|quizás?|podría"
        r"|forse|talvez|возможно|может|думает|хотел\w*|бы)\b"
        r"|如果|也许|可能|考虑|或许|想|もし|かも|検討|考え|아마|만약|고려|수도"
    ),
    "denied": re.compile(
        r"\b(?:no|none|not|never|false|without|dislik\w+|avoid\w*|hat(?:e|es|ed)|allerg\w+|refus\w*"
        r"|stopp?\w*|quit|left|former\w*|unable|lack\w*|intoleran\w*|free|against|only|except|ex"
        r"|nein|mag kein\w*|früher|ancien\w*|ex-\w+)\b|n't\b|\bnon-|^(?:0|нет|不|否|いいえ|아니)"
    ),
    "over": re.compile(
        r"\b(?:\w{2,}ed|was|were|had|been|past|until|till|before|ago|ex|once|grew|left|went|kept"
        r"|not|no|former\w*|previous\w*|früher|war|hatte|wohnte|arbeitete|bis|avant|ancien\w*"
        r"|antes|hasta|prima|fino|até|раньше|до|жил\w*|был\w*|работал\w*)\b|n't\b|过|曾|前|た|었|았|했"
    ),
    "another": KIN,
}
"""How a value says such a thing in other words than the clause: "dislikes", "lived", "unsure"."""
_YES = re.compile(
    r"\W*(?:(?:yes|yeah|yep|yup|sure|right|correct|exactly|indeed|i do|i am|it is|ja|genau|stimmt"
    r"|oui|exact|sí|si|sì|claro|esatto|sim|да|верно|конечно)\b|是|对|對|嗯|はい|ええ|うん|そう|네|예|응|맞)"
)
_NO = re.compile(
    r"\W*(?:(?:no|nope|nah|not|never|wrong|nein|non|não|нет|nee|nei|nej)\b|don't\b|do not\b"
    r"|不|没|否|いいえ|いえ|違|아니)"
)
