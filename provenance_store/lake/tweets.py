"""A synthetic Twitter lake: `tweets`, one JSON object a line, and the table `categories` of their hashtags.

A tweet has what the client of paper 003 kept: the author's handle, time, language and the full text. What is drawn:

- hashtags by Zipf's law over a vocabulary of 20,000, in Latin, Cyrillic, Greek, Japanese, Arabic and Hindi letters;
- how many a tweet has: none 40 %, one 31 %, two 16 %, three 8 %, four 3 %, five 2 %, with repetitions, 1.09 on average,
  which is what a collection filtered by topics looks like (of all public tweets fewer have any);
- upper and lower case at will, because people write `#Rain` and `#rain`.

Everything is invented, and follows from the seed alone. The table holds nine of ten hashtags, in lower case; the rest
have no category, as in any table kept by hand.
"""

import json
import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import accumulate, islice
from pathlib import Path

from provenance_store.errors import InputError
from provenance_store.lake import catalogue, layout

DATASET = "tweets"
CATEGORIES_DATASET = "categories"
CATEGORIES = (
    "sports", "movies", "music", "politics", "food", "travel", "science", "weather", "games", "fashion",
)  # fmt: skip
VOCABULARY = 20_000
ZIPF_EXPONENT = 1.07
HASHTAGS_PER_TWEET = (0.40, 0.31, 0.16, 0.08, 0.03, 0.02)

_DECLARED = Path(__file__).with_name("tweets.toml")
_BATCH = 10_000
_TWEETS_PER_FILE = 250_000
_HANDLES = 50_000
_TEXTS = 4_000
_FIRST_TIME = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
_SECONDS_BETWEEN = 0.4
_CATEGORISED = 0.9
_WORDS = {
    "en": "ra in sun mo ver la ki to ne sa pol ter bri gan do lu mi fen sha wel cor dan",
    "es": "ñan cia ción lé rí mar sol vi da ñe ca sa tó que lla ma pé rez go fú",
    "de": "über schö ner wet ter grü ße fuß ball mäd chen stra ße kö nig hü gel zeit",
    "ru": "по го да ми ру свет зи ма ле то но во сти кни га му зы ка",  # noqa: RUF001 - other alphabets are the point
    "el": "κα λη μέ ρα θά λασ σα νη σί φως μου σι κή λό γος",  # noqa: RUF001 - other alphabets are the point
    "ja": "雨 桜 東京 音楽 映画 さ く ら ね こ カ メ ラ 空 海 山",
    "ar": "سل ام شم س قم ر بح ر كت اب مو سي قى نو ر",
    "hi": "बा रिश सू रज गी त ना म दि ल्ली सं गी",
}
_SYLLABLES = {language: words.split() for language, words in _WORDS.items()}
_LANGUAGE_WEIGHTS = {"en": 40, "es": 16, "ja": 14, "ar": 8, "ru": 8, "de": 6, "hi": 5, "el": 3}


def generate(
    root: Path,
    *,
    count: int,
    seed: int,
    version: str | None = None,
    files: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> layout.Version:
    """Write `tweets` and `categories` under `root`, and what they are into its catalogue; again changes nothing.

    `progress` is told how many tweets were written since it was told last.
    """
    layout.refuse_remote(root)
    if count < 0:
        raise InputError(f"{count} tweets cannot be made: give a count of 0 or more.")
    if files is None:
        files = max(1, min(count, max(2, math.ceil(count / _TWEETS_PER_FILE))))
    if files < 1:
        raise InputError(f"{files} files cannot be made: give 1 or more.")
    name = version or f"n{count}-s{seed}"
    about = {"generator": "tweets", "count": count, "seed": seed, "files": files}
    vocabulary = _make_vocabulary(random.Random(f"vocabulary {seed}"))  # noqa: S311 - nothing secret is drawn
    categories = layout.version_of(root, CATEGORIES_DATASET, name)
    catalogue.extend(root, _DECLARED)
    if not layout.was_made(categories, about):
        with layout.new_version(categories, about) as folder:
            _write_categories(folder / "part-00000.jsonl", vocabulary, seed)
    tweets = layout.version_of(root, DATASET, name)
    if not layout.was_made(tweets, about):
        with layout.new_version(tweets, about) as folder:
            _write_tweets(folder, vocabulary, count=count, seed=seed, files=files, progress=progress)
    return tweets


def _make_vocabulary(rng: random.Random) -> list[str]:
    """Distinct hashtags without their `#`, the most used first."""
    languages, weights = list(_LANGUAGE_WEIGHTS), list(_LANGUAGE_WEIGHTS.values())
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        for language in rng.choices(languages, weights, k=VOCABULARY - len(words)):
            words["".join(rng.choices(_SYLLABLES[language], k=rng.randint(2, 5))).casefold()] = None
    return list(words)


def _write_categories(path: Path, vocabulary: list[str], seed: int) -> None:
    rng = random.Random(f"categories {seed}")  # noqa: S311 - nothing secret is drawn
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for hashtag in vocabulary:
            if rng.random() < _CATEGORISED:
                row = {"hashtag": hashtag, "category": rng.choice(CATEGORIES)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_tweets(
    folder: Path, vocabulary: list[str], *, count: int, seed: int, files: int, progress: Callable[[int], None]
) -> None:
    lines = _draw_lines(random.Random(f"tweets {seed}"), vocabulary, count)  # noqa: S311 - nothing secret is drawn
    for number in range(files):
        left = count * (number + 1) // files - count * number // files
        with (folder / f"part-{number:05d}.jsonl").open("wb", buffering=1 << 20) as file:
            while left:
                batch = list(islice(lines, min(left, _BATCH)))
                file.write("".join(batch).encode())
                left -= len(batch)
                progress(len(batch))


def _draw_lines(rng: random.Random, vocabulary: list[str], count: int) -> Iterator[str]:
    """Tweets as JSON lines. Pieces are drawn by the thousand and quoted once: a million tweets take seconds."""
    written = _spellings(vocabulary)
    by_rank = list(accumulate(1 / rank**ZIPF_EXPONENT for rank in range(1, len(written) + 1)))
    by_number = list(accumulate(HASHTAGS_PER_TWEET))
    numbers = range(len(by_number))
    handles = [f"{rng.choice(_SYLLABLES['en'])}{rng.choice(_SYLLABLES['en'])}_{n:05d}" for n in range(_HANDLES)]
    texts = _draw_texts(rng)
    for first in range(0, count, _BATCH):
        size = min(_BATCH, count - first)
        tags_of = rng.choices(numbers, cum_weights=by_number, k=size)
        tags = iter(rng.choices(written, cum_weights=by_rank, k=sum(tags_of)))
        authors, bodies = rng.choices(handles, k=size), rng.choices(texts, k=size)
        for number, (handle, (language, start, end), tagged) in enumerate(zip(authors, bodies, tags_of, strict=True)):
            time = datetime.fromtimestamp(_FIRST_TIME + int((first + number) * _SECONDS_BETWEEN), UTC)
            hashtags = f"{''.join([next(tags) for _ in range(tagged)])} " if tagged else ""
            yield (
                f'{{"handle":"{handle}","time":"{time:%Y-%m-%dT%H:%M:%SZ}","language":"{language}",'
                f'"text":"{start}{hashtags}{end}"}}\n'
            )


def _spellings(vocabulary: list[str]) -> list[str]:
    """Every third hashtag is written with a capital, where its script has any."""
    return [f" #{word.capitalize() if rank % 3 == 0 else word}" for rank, word in enumerate(vocabulary)]


def _draw_texts(rng: random.Random) -> list[tuple[str, str, str]]:
    """Language, and text before and after the hashtags, already quoted for JSON: line breaks and quotes occur."""
    languages = rng.choices(list(_LANGUAGE_WEIGHTS), list(_LANGUAGE_WEIGHTS.values()), k=_TEXTS)
    texts = []
    for language in languages:
        words = ["".join(rng.choices(_SYLLABLES[language], k=rng.randint(1, 3))) for _ in range(rng.randint(3, 14))]
        cut = rng.randint(1, len(words))
        end = rng.choice(["", "", "!", " 😀", '"', "\nRT", " C#", "\\o/"])
        texts.append((language, _quote(" ".join(words[:cut])), _quote(" ".join(words[cut:]) + end)))
    return texts


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
