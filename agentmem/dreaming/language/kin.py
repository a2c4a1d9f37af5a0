"""How people speak of others: "my sister", in the languages it is tried with."""

import re

_SPACED = """
sisters? brothers? siblings? twin mother mom mum mam mommy mummy father dad daddy parents? wife
husband spouse partner girlfriend boyfriend fianc[eé]e? sons? daughters? child(?:ren)? kids?
(?:best )?friends? boss manager colleagues? coworkers? neighbou?rs? cousins? aunt uncle nieces?
nephews? grandm\\w+ grandfather grandpa grandparents? roommates? flatmates? teacher doctor ex
(?:mother|father|sister|brother)-in-law
schwester brüder bruder geschwister mutter mama vater papa eltern frau mann freund(?:in|e|innen)?
sohn tochter kinder kind chef(?:in)? kolleg(?:e|in|en) nachbar(?:in|n)? onkel tante oma opa
sœurs? frères? mère maman père femme mari ami(?:e|s|es)? copine copain fils filles? enfants?
hermanas? hermanos? madre mamá padre papá padres esposa esposo marido mujer novi[oa] amig[oa]s?
hij[oa]s? jef[ea]
sorella sorelle fratello fratelli mamma moglie marito amic[oa] figli[oa]? ragazz[oa]
irmãs? irmãos? mãe pai pais filh[oa]s?
сестра сёстры брат братья мама мать папа отец родители жена муж друг друзья подруга сын дочь
дети бабушка дедушка начальник коллега сосед соседка
"""
_UNSPACED = """
姐姐 妹妹 哥哥 弟弟 妈妈 母亲 爸爸 父亲 父母 妻子 丈夫 老公 老婆 儿子 女儿 孩子 朋友 同事 老板 邻居
爷爷 奶奶 (?:姉|妹|兄|弟|母|父|妻|夫|娘)(?=[さはがのも]) 両親 息子 友達 友人 上司 同僚
누나 언니 오빠 형(?=[은이의]) 동생 어머니 엄마 아버지 아빠 부모님 아내 남편 아들 딸 친구 상사 동료
"""
_ANY, _SIGNS = "|".join(_SPACED.split()), "|".join(_UNSPACED.split())
_MINE = (
    r"my|our|your|mein\w*|dein\w*|ihre?|unsere?|ma|mon|mes|ta|ton|votre|mis?|tus?|su|nuestr\w+"
    r"|mi[ao]|tu[ao]|meu|minha|tua?|мо[йяи]|тво[йяи]|наш\w*|ваш\w*"
)

KIN = re.compile(
    rf"\b(?:{_ANY}|family|relatives?|married|engaged|famil\w+|семь\w+|his|her|their|he|she|they)\b"
    rf"|{_SIGNS}|家人|家族|가족"
)
"""Words that a text about somebody else has, folded."""
OF_KIN = re.compile(
    r"^\W*(?:(?:and|so|well|yes|yeah|no|oh|because|that|und|et|y|e|и) )*"
    rf"(?:(?:{_MINE}) (?:\w+ )?(?:{_ANY})(?:'s)?\b(?! tongue| company)"
    rf"|(?:我们?|私|うち|俺|僕|우리|내|제)?(?:的|の)? ?(?:{_SIGNS}))"
)
"""How a clause begins that tells of somebody else, folded."""
OURSELVES = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|we|we're|we've|we'll|us|our|ich|mir|mich|wir|uns|je|moi|nous|yo"
    r"|mí|conmigo|nosotros|io|noi|eu|nós|comigo|я|мы|мне|меня|нас|мной)\b|\bj'|[和跟与同]我|我们|私も|나도"
)
"""Words by which a clause tells of the speaker as well, folded."""
OF_THEMSELVES = re.compile(
    r"^(?:'s)?(?: and (?:my |our )?\w+)?(?: \w+){0,2}? (?:"
    r"(?:is|are|was|were)\b(?! \w+ing (?:the|my|a)\b)"
    r"|(?:has|have|had)\b(?! \w+e[dn]\b)|(?:move[sd]?|moving) (?:to|from)"
    r"|(?:live|work|like|love|prefer|hate"
    r"|own|drive|eat|drink|speak|play|enjoy|use|need)(?:s|d|ed)?|stud(?:y|ies|ied)|does|doesn't|do|don't|can"
    r"|can't|never|wohn\w+|lebt|arbeite\w+|ist|sind|hat|haben|mag|isst|trinkt|zieht|habite\w*|vit|vivent"
    r"|travaille\w*|est|sont|a|aime\w*|viv\w+|trabaja\w*|es|son|tiene\w*|le gusta|è|sono|ha|hanno"
    r"|lavora\w*"
    r"|abita\w*|mora\w*|tem|gosta\w*|жив[её]т|живут|работа\w+|любит|есть|не)\b"
    r"|住|在|是|有|喜欢|爱|讨厌|工作|会|不|吃|喝|搬|働|好き|嫌|持|いる|いま|です|살|일하|좋아|싫어|있"
)
"""How it goes on where that is about them, and not what they did about something else."""
