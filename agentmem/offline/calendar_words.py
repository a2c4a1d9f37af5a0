"""Days, months, weekdays and numbers as words, in the languages that agentmem is tried with.

The offline model reads dates in these languages alone.
"""


def _words(table: dict[int, str]) -> dict[str, int]:
    return {word: meaning for meaning, words in table.items() for word in words.split(" | ")}


DAYS = _words(
    {
        -2: "the day before yesterday | day before yesterday | vorgestern | avant-hier | anteayer"
        " | l'altro ieri | anteontem | позавчера | 前天 | 一昨日 | おととい | 그저께",
        -1: "yesterday | last night | gestern | ayer | ieri | ontem | вчера | 昨天 | 昨日 | 어제",
        0: "today | tonight | this morning | this afternoon | this evening | heute | aujourd'hui"
        " | hoy | oggi | hoje | сегодня | 今天 | 今日 | 오늘",
        1: "tomorrow | demain | domani | amanhã | завтра | 明天 | 明日 | 내일",
        2: "the day after tomorrow | day after tomorrow | übermorgen | après-demain"
        " | pasado mañana | dopodomani | depois de amanhã | послезавтра | 后天 | 後天 | 明後日"
        " | 모레",
    }
)
"""Days as words, and how many days from the day of the message they lie.

German "morgen" and French "hier" stand apart: they are also "morning" and German for "here".
"""

WEEKS = _words(
    {
        -1: "last week | past week | letzte woche | la semaine dernière | la semana pasada"
        " | на прошлой неделе | 上周 | 上週 | 先週 | 지난주",
        0: "this week | diese woche | cette semaine | esta semana | на этой неделе | 本周 | 今週",
        1: "next week | nächste woche | la semaine prochaine | la próxima semana"
        " | на следующей неделе | 下周 | 下週 | 来週 | 다음 주",
    }
)
WEEKENDS = _words(
    {
        -1: "last weekend | past weekend | letztes wochenende",
        0: "this weekend | dieses wochenende",
        1: "next weekend | nächstes wochenende",
    }
)
MONTH_WORDS = _words(
    {
        -1: "last month | past month | letzten monat | le mois dernier | el mes pasado"
        " | в прошлом месяце | 上个月 | 上個月 | 先月 | 지난달",
        0: "this month | diesen monat | ce mois-ci | este mes | в этом месяце | 这个月 | 今月",
        1: "next month | nächsten monat | le mois prochain | el próximo mes"
        " | в следующем месяце | 下个月 | 下個月 | 来月 | 다음 달",
    }
)
YEAR_WORDS = _words(
    {
        -1: "last year | past year | letztes jahr | l'année dernière | el año pasado"
        " | в прошлом году | 去年 | 昨年 | 작년",
        0: "this year | dieses jahr | cette année | este año | в этом году | 今年 | 올해",
        1: "next year | nächstes jahr | l'année prochaine | el próximo año"
        " | в следующем году | 明年 | 来年 | 내년",
    }
)
PERIODS = {
    word: (unit, shift)
    for unit, words in (
        ("week", WEEKS),
        ("weekend", WEEKENDS),
        ("month", MONTH_WORDS),
        ("year", YEAR_WORDS),
    )
    for word, shift in words.items()
}
"""Weeks, weekends, months and years as words: what, and how many of them away."""

NUMBERS = _words(
    {
        1: "a | an | one | einem | einer | un | une | una | um | uma | 一",
        2: "two | a couple of | a couple | couple of | zwei | deux | dos | due | dois | duas"
        " | два | две | 两 | 兩 | 二",
        3: "three | drei | trois | tres | tre | três | три | 三",
        4: "four | vier | quatre | cuatro | quattro | quatro | четыре | 四",
        5: "five | fünf | cinq | cinco | cinque | пять | 五",
        6: "six | sechs | seis | sei | шесть | 六",
        7: "seven | sieben | sept | siete | sette | sete | семь | 七",
        8: "eight | acht | huit | ocho | otto | oito | восемь | 八",
        9: "nine | neun | neuf | nueve | nove | девять | 九",
        10: "ten | zehn | dix | diez | dieci | dez | десять | 十",
        11: "eleven",
        12: "twelve",
    }
)

UNITS = {
    stem: unit
    for unit, stems in (
        ("day", "day | tag | jour | día | dia | giorn | дн | день | 天 | 日 | 일"),
        ("week", "week | woche | semaine | semana | settiman | недел | 周 | 週 | 星期 | 주"),
        ("month", "month | monat | mois | mes | mês | месяц | 个月 | 個月 | か月 | ヶ月 | 개월"),
        ("year", "year | jahr | an | año | ano | год | лет | 年 | 년"),
    )
    for stem in stems.split(" | ")
}
"""The beginnings of the words for units of time, and the units."""

WEEKDAYS = _words(
    {
        0: "monday | mon | montag | lundi | lunes | lunedì | segunda-feira | понедельник",
        1: "tuesday | tues | tue | dienstag | mardi | martes | martedì | terça-feira | вторник",
        2: "wednesday | wed | mittwoch"
        " | mercredi | miércoles | mercoledì | quarta-feira | среду | среда",
        3: "thursday | thurs | thu | donnerstag"
        " | jeudi | jueves | giovedì | quinta-feira | четверг",
        4: "friday | fri | freitag"
        " | vendredi | viernes | venerdì | sexta-feira | пятницу | пятница",
        5: "saturday | sat | samstag | samedi | sábado | sabato | субботу | суббота",
        6: "sunday | sun | sonntag | dimanche | domingo | domenica | воскресенье",
    }
)

MONTHS = _words(
    {
        1: "january | jan | januar | janvier | enero | gennaio | janeiro | января",
        2: "february | feb | februar | février | febrero | febbraio | fevereiro | февраля",
        3: "march | mar | märz | mars | marzo | março | марта",
        4: "april | apr | avril | abril | aprile | апреля",
        5: "may | mai | mayo | maggio | maio | мая",
        6: "june | jun | juni | juin | junio | giugno | junho | июня",
        7: "july | jul | juli | juillet | julio | luglio | julho | июля",
        8: "august | aug | août | agosto | августа",
        9: "september | sept | sep | septembre | septiembre | settembre | setembro | сентября",
        10: "october | oct | oktober | octobre | octubre | ottobre | outubro | октября",
        11: "november | nov | novembre | noviembre | novembro | ноября",
        12: "december | dec | dezember | décembre | diciembre | dicembre | dezembro | декабря",
    }
)

_NEXT = """
next nächsten nächster kommenden prochain próximo próxima prossimo prossima следующий следующую
следующее
"""
NEXT = frozenset(_NEXT.split())
"""Words at a weekday that put it after today; all others but "this" put it before."""

WEEKS_AWAY = {
    sign: away
    for away, signs in ((-1, "上 先 지난"), (0, "这 這 本 今 이번"), (1, "下 来 來 다음"))
    for sign in signs.split()
}
"""Signs before "week" in scripts without spaces and in Korean."""
