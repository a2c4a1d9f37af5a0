"""Compare working memory's estimate of tokens with real tokenizers, and write it into the docs.

python -m benchmarks.tokens --write
"""

import argparse
import importlib
import os
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agentmem.messages import Message, Role, estimate_tokens
from benchmarks.report import put

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "reference.md"

TOKENIZERS = {"o200k (gpt-4o)": "gpt-4o", "cl100k (gpt-4)": "gpt-4"}

CHINESE = """\
昨天下午我和同事去了市中心的图书馆，想找几本关于城市交通的书。管理员告诉我们，三楼有一个新开的阅览室，\
周末也开放。我们在那里坐了两个小时，讨论了下个月的计划：先写一份报告，再请大家提意见，最后在六月底之前交给经理。\
回家的路上下雨了，公交车晚了二十分钟，不过大家的心情都很好。如果你有时间，请帮我看一看报告的第一部分，谢谢。\
"""  # noqa: RUF001 - Chinese has commas of its own
EMOJI = "".join(chr(code) for code in range(0x1F600, 0x1F640)) + "👩‍🚀👨‍👩‍👧🇳🇴🏳️‍🌈👍🏽"


def samples() -> dict[str, str]:
    """Return the texts by what they are: this project's own, and two written for it."""
    return {
        "English prose": (ROOT / "docs" / "decisions" / "0002-history-is-the-truth.md").read_text(),
        "Python code": (ROOT / "agentmem" / "loop.py").read_text()[:6_000],
        "JSON": (ROOT / "tests" / "data" / "trip.json").read_text()[:6_000],
        "Chinese": CHINESE,
        "emoji": EMOJI,
    }


def counter() -> Any:
    """Return litellm's counter, which has its tokenizers with it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("litellm").token_counter


def rows() -> list[list[str]]:
    """Measure: a line for each sample, with the ratio of the estimate to each tokenizer."""
    count = counter()
    found: list[list[str]] = []
    for name, text in samples().items():
        estimate = estimate_tokens(Message(id="m0", role=Role.USER, content=text))
        row = [name, str(len(text)), str(estimate)]
        for model in TOKENIZERS.values():
            tokens = count(model=model, text=text)
            row.append(f"{tokens} ({estimate / tokens:.2f})")
        found.append(row)
    return found


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="The estimate of tokens, and real tokenizers.")
    parser.add_argument("--write", action="store_true", help="write the table into the docs")
    options = parser.parse_args()
    titles = ["text", "characters", "estimate", *TOKENIZERS]
    measured = rows()
    table = Table(*titles)
    for row in measured:
        table.add_row(*row)
    Console().print(table)
    if options.write:
        lines = [titles, ["---"] * len(titles), *measured]
        put("benchmarks/tokens.py", "\n".join(f"| {' | '.join(line)} |" for line in lines), DOCS)


if __name__ == "__main__":
    main()
