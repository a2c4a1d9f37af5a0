"""Word lists for cases of dreams, in two scripts; a second set shows that nothing was fitted."""

import random
from dataclasses import dataclass

_WORDS: dict[tuple[str, int], dict[str, str]] = {
    ("en", 1): {
        "name": "Ada Lovell, Bruno Keller, Chidi Okafor, Dana Whitlock",
        "city": "Bergen, Porto, Kyoto, Leeds",
        "town": "Oslo, Lisbon, Osaka, York",
        "food": "peanuts, shrimp, lentils, walnuts",
        "firm": "Acme, Northwind, Globex, Initech",
        "rival": "Umbrella, Contoso, Hooli, Stark",
        "pet": "Momo, Rex, Pixel, Biscuit",
        "hobby": "climbing, chess, pottery, sailing",
        "colour": "purple, orange, crimson, teal",
        "shade": "cyan, yellow, maroon, olive",
        "job": "nurse, welder, translator, surveyor",
        "number": "17, 42, 305, 88",
    },
    ("en", 2): {
        "name": "Edda Brink, Faisal Rahman, Greta Olin, Hugo Marsh",
        "city": "Turin, Galway, Split, Quito",
        "town": "Milan, Cork, Zadar, Cuenca",
        "food": "almonds, oysters, chickpeas, mangoes",
        "firm": "Vandelay, Tyrell, Aperture, Cyberdyne",
        "rival": "Wonka, Duff, Oscorp, Soylent",
        "pet": "Ziggy, Nala, Tofu, Waffle",
        "hobby": "fencing, knitting, rowing, origami",
        "colour": "magenta, indigo, scarlet, amber",
        "shade": "turquoise, beige, lavender, coral",
        "job": "baker, pilot, librarian, carpenter",
        "number": "23, 64, 512, 91",
    },
    ("zh", 1): {
        "name": "李娜, 王强, 陈静, 赵磊",
        "city": "杭州, 成都, 青岛, 厦门",
        "town": "苏州, 重庆, 大连, 福州",
        "food": "花生, 海虾, 扁豆, 核桃",
        "firm": "华兴公司, 北风公司, 远航公司, 金桥公司",
        "rival": "蓝海公司, 天河公司, 东方公司, 长城公司",
        "pet": "毛毛, 旺财, 豆豆, 饼干",
        "hobby": "攀岩, 围棋, 陶艺, 帆船",
        "colour": "紫色, 橙色, 深红色, 青色",
        "shade": "蓝色, 黄色, 栗色, 橄榄色",
        "job": "护士, 焊工, 翻译, 测量员",
        "number": "17, 42, 305, 88",
    },
    ("zh", 2): {
        "name": "周敏, 吴昊, 郑洁, 孙涛",
        "city": "昆明, 西安, 长沙, 哈尔滨",
        "town": "大理, 洛阳, 武汉, 长春",
        "food": "杏仁, 牡蛎, 鹰嘴豆, 芒果",
        "firm": "新星公司, 大同公司, 瑞丰公司, 海通公司",
        "rival": "明珠公司, 银河公司, 宏图公司, 泰山公司",
        "pet": "雪球, 小虎, 豆腐, 团子",
        "hobby": "击剑, 编织, 划船, 折纸",
        "colour": "洋红色, 靛蓝色, 猩红色, 琥珀色",
        "shade": "松绿色, 米色, 薰衣草色, 珊瑚色",
        "job": "面包师, 飞行员, 图书管理员, 木匠",
        "number": "23, 64, 512, 91",
    },
}


@dataclass(frozen=True)
class Words:
    """The words of one case, chosen by its seed."""

    language: str
    chosen: dict[str, str]

    def text(self, english: str, chinese: str) -> str:
        """Return the text of this case's language, its words filled in."""
        return (chinese if self.language == "zh" else english).format(**self.chosen)


def words(language: str, seed: int, number: int) -> Words:
    """Choose words: seed 1 is for every day, seed 2 is looked at before a release only."""
    lists = _WORDS[language, 2 if seed == 2 else 1]
    chance = random.Random(f"{seed}/{number}")
    return Words(language, {kind: chance.choice(some.split(", ")) for kind, some in lists.items()})
