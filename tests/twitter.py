"""What the Twitter workflow must give, computed from the lake's files alone."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from provenance_store.lake.layout import resolve
from provenance_store.lake.records import lines_of

HASHTAG = re.compile(r"(?<!\w)#([\w\u0300-\u036f\u0900-\u0963\u0966-\u0dff]+)")


@dataclass(frozen=True)
class Workflow:
    """One run through both DICs: the versions of each dataset, by reference."""

    lake: Path
    tweets: str
    categories: str
    counts: str
    totals: str

    def tags(self) -> dict[str, list[str]]:
        """The hashtags of each tweet."""
        return {
            record: [tag.casefold() for tag in HASHTAG.findall(json.loads(line)["text"])]
            for record, line in lines_of(resolve(self.lake, self.tweets))
        }

    def expected_counts(self) -> dict[str, int]:
        """How often each hashtag occurs."""
        return dict(Counter(tag for tags in self.tags().values() for tag in tags))

    def expected_totals(self) -> dict[str, int]:
        """How often the hashtags of each category occur."""
        totals: Counter[str] = Counter()
        for tag, count in self.expected_counts().items():
            if (category := self._category_of().get(tag)) is not None:
                totals[category] += count
        return dict(totals)

    def written(self, reference: str) -> dict[str, int]:
        """What a DIC wrote: names with their numbers."""
        lines = (line.decode().rsplit("\t", 1) for _, line in lines_of(resolve(self.lake, reference)))
        return {name: int(number) for name, number in lines}

    def behind_totals(self) -> dict[str, dict[str, set[str]]]:
        """For each record of the totals, the records that it was made from, by dataset."""
        table = {record: json.loads(line) for record, line in lines_of(resolve(self.lake, self.categories))}
        rows = {row["hashtag"]: record for record, row in table.items()}
        counts = {line.decode().rsplit("\t", 1)[0]: r for r, line in lines_of(resolve(self.lake, self.counts))}
        tweets = defaultdict(set)
        for record, tags in self.tags().items():
            for tag in tags:
                tweets[tag].add(record)
        found = {}
        for record, line in lines_of(resolve(self.lake, self.totals)):
            category = line.decode().rsplit("\t", 1)[0]
            tags = [tag for tag, of in self._category_of().items() if of == category and tag in counts]
            found[record] = {
                "hashtag_counts": {counts[tag] for tag in tags},
                "categories": {rows[tag] for tag in tags},
                "tweets": {tweet for tag in tags for tweet in tweets[tag]},
            }
        return found

    def _category_of(self) -> dict[str, str]:
        rows = (json.loads(line) for _, line in lines_of(resolve(self.lake, self.categories)))
        return {row["hashtag"]: row["category"] for row in rows}
