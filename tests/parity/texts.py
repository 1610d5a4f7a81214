"""Texts that ask different things of tokenizer and attention: prose, code, Chinese, repetition, many lengths."""

from __future__ import annotations

import random

PROSE = (
    "When Mary and John went to the store, John gave a drink to Mary. Later, when Mary and Tom went to the park, "
    "Tom gave a ball to"
)
CODE = "def mean(values: list[float]) -> float:\n    total = 0.0\n    for value in values:\n        total += value\n"
CHINESE = "猫吃鱼，狗吃肉，奥特曼打小怪兽。北京是中国的首都，今天的天气很好，我们去公园散步。"

TEXTS: dict[str, str] = {
    "two tokens": "Hi there",
    "one sentence": "The animal didn't cross the street because it was too tired.",
    "names": PROSE,
    "repeated words": "the cat saw the cat " * 12,
    "code": CODE * 3 + "\n\n" + CODE,
    "chinese": CHINESE,
    "long chinese": CHINESE * 3,
    "symbols": "1E1 2A 3E2 2024-01 <s> <b>x</b> &lt; $x^2$ 👩‍💻 ok \t\n\n  end",
    "arabic": "القط جلس على السجادة لأنه كان متعبا",
    "long prose": (PROSE + " the child, who threw it over the fence and into the river. ") * 10,
}


def repeated_random_ids(vocabulary: int, span: int, repeats: int) -> list[int]:
    """Random tokens, then the same again: what induction heads react to, and what float32 finds hardest."""
    generator = random.Random(11)
    return [generator.randrange(vocabulary // 10, vocabulary - 10) for _ in range(span)] * repeats
