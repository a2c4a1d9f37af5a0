"""Small words of the languages that agentmem is tried with; another language works without.

A word missing here weighs a little more in a comparison than it should, and nothing breaks.
"""
# ruff: noqa: RUF001 - words and signs of many scripts

_ENGLISH = """
a about after again all also am an and any are as at be because been before being but by can could
did do does doing done for from get gets getting got had has have having he her here hers him his
how i i'd i'll i'm i've if in into is it it's its just let me might more most much must
my of off ok okay on only or other our ours out over own please really she should since so some such
than thanks that that's the their theirs them then there these they this those through to too up
us use user user's users very was we we're were what when where which while who whom why will with
would yes you you're your yours actually well still now
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da dann das dass dem den der des die dir doch du durch
ein eine einem einen einer er es für habe haben hat hatte ich ihm ihn ihr im in ins ist ja kann mal
man mein meine mich mir mit nach noch nun nur ob oder schon sehr sein seine sich sie sind so um und
uns unser vom von vor war warum was wenn wer werden wie wir wird wo zu zum zur nutzer benutzer
"""
_ROMANCE = """
à al au aux avec c'est ce ces cette d' dans de des du e el elle en es est esta este et eu fait il
ils j'ai je l' la las le les leur lo los ma mais me mes mi mon mas más nos notre nous o os ou où
par para pero pour por qu' que qui se sa son sont su sur sus te tu un una une uno vous y è che con
da del della di dei i gli ho io mio mia per più sono uma um meu minha com
utilisateur usuario utente usuário
"""
_OTHERS = """
من في على إلى عن مع و هو هي هذا هذه أنا ان أن قد كان में है हैं का की के को से मैं हूँ था थी
ve bir bu o ben da de ile için ο η το οι τα του της και σε στο στη στην είναι να με
הוא היא אני של את עם על זה i w na z do się jest to een het van op met ik och att som en ett jag
jeg og å på er
"""
_RUSSIAN = """
а без бы был была были было в вам вас во вот все вы где да для до его ее её если есть еще ещё же за
и из или им их к как ко когда кто ли меня мне мой моя мы на над нам нас но о об он она они от по
под при с сейчас со так там то того тоже только ты у уже чем что это этот я пользователь
"""
CLOSED_CLASS = frozenset(" ".join((_ENGLISH, _GERMAN, _ROMANCE, _RUSSIAN, _OTHERS)).split())
"""Words that carry grammar, not content, folded."""
