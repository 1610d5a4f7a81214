"""A text of any length that hardly repeats itself: sentences put together from word lists, the same every time."""

from __future__ import annotations

import random

WHO = [
    "teacher",
    "engineer",
    "gardener",
    "child",
    "pilot",
    "singer",
    "doctor",
    "farmer",
    "writer",
    "sailor",
    "baker",
    "judge",
    "painter",
    "driver",
    "nurse",
]
DID = [
    "found",
    "carried",
    "painted",
    "repaired",
    "sold",
    "remembered",
    "forgot",
    "opened",
    "measured",
    "followed",
    "lost",
    "described",
    "drew",
    "washed",
]
WHAT = [
    "letter",
    "bridge",
    "window",
    "engine",
    "song",
    "map",
    "garden",
    "clock",
    "story",
    "ladder",
    "basket",
    "mirror",
    "lamp",
    "river",
    "photograph",
    "violin",
]
WHERE = [
    "near the station",
    "behind the old mill",
    "in the morning",
    "after the storm",
    "at the market",
    "on the hill",
    "by the sea",
]
WORDS_PER_TOKEN = 1.0  # at least: the tokenizers in use need more than one token a word


def long_text(tokens: int) -> str:
    """Text that gives at least so many tokens."""
    generator = random.Random(5)
    sentences: list[str] = []
    words = 0
    while words < tokens * WORDS_PER_TOKEN:
        who, did, what, where = (generator.choice(part) for part in (WHO, DID, WHAT, WHERE))
        sentences.append(f"The {who} {did} {generator.randrange(2, 90)} {what}s {where}.")
        words += 8
    return " ".join(sentences)
