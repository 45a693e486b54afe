"""What the DICs write is as the catalogue that the generators write tells."""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from provenance_store.lake import layout, orders, tweets
from provenance_store.lake.checking import find_faults
from provenance_store.lake.records import lines_of
from provenance_store.settings import Settings
from spark_apps.dics import category_totals, order_report
from spark_apps.dics.hashtag_count import find_hashtags


def test_a_lake_with_all_that_the_dics_make_has_no_fault(spark_session: SparkSession, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    orders.generate(settings.lake, count=100, seed=1)
    lines = lines_of(tweets.generate(settings.lake, count=50, seed=1))
    counts = Counter(hashtag for _, line in lines for hashtag, _ in find_hashtags(0, line.decode()))
    with layout.new_version(layout.version_of(settings.lake, "hashtag_counts", "r1"), {}) as folder:
        text = "".join(f"{hashtag}\t{count}\n" for hashtag, count in counts.items())
        (folder / "part-00000").write_text(text, encoding="utf-8")
    category_totals.JOB.execute(settings, spark_session, run="r2")
    order_report.JOB.execute(settings, spark_session, run="r3")
    assert len(layout.list_datasets(settings.lake)) == 8
    assert list(find_faults(settings.lake)) == []
