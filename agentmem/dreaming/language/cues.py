"""How people take back what they said, or ask to forget it, in the languages it is tried with.

In a language that is missing here, such a removal is held, and a person applies it.
"""

import re

from agentmem.dreaming.language.text import fold

_ASKED = """
forget | delete | remove | erase | wipe | disregard | scratch that | take that back | take it back
don't remember | do not remember | don't store | do not store | don't keep | do not keep
stop remembering | vergiss | vergessen sie | lösch | lösche | oublie | oubliez | efface | supprime
olvida | olvídalo | borra | elimina | dimentica | cancella | esqueça | esquece | apaga
забудь | забудьте | удали | удалите | сотри
"""
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
_UNSPACED = """
忘记 | 忘掉 | 忘了 | 删除 | 删掉 | 不对 | 错了 | 忘れて | 削除 | 消して | 間違い
잊어 | 지워 | 삭제 | 틀렸
"""
_UNLESS = ("n't", "not", "never", "no", "не")
"""Words before it that turn a request round: "don't forget", "не забудь"."""


def takes_back(text: str) -> bool:
    """Whether a text takes something back or asks to forget it.

    That something has ended ("I stopped drinking coffee") is neither: what holds now must stand
    somewhere before the old fact goes.
    """
    return bool(_TAKES_BACK.search(fold(text)))


def corrects(text: str) -> bool:
    """Whether a text puts something in the place of what was so before."""
    return bool(_CORRECTS.search(fold(text)))


def _any(words: str) -> str:
    parts = (part.strip() for part in re.split(r"[|\n]", words))
    return "|".join(re.escape(part) for part in parts if part)


_TAKES_BACK = re.compile(
    "".join(rf"(?<!{word} )" for word in _UNLESS)
    + rf"(?<!n')\b(?:{_any(_ASKED)})\b(?! nicht| pas)"
    + rf"|\b(?:{_any(_WRONG)})\b|(?<!别)(?<!不要)(?<!勿)(?:{_any(_UNSPACED)})"
)
_CORRECTS = re.compile(rf"\b(?:{_any(_INSTEAD)})\b|(?:{_any(_INSTEAD_UNSPACED)})")
