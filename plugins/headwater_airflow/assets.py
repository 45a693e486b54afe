"""The datasets of the lake as Airflow's assets: an event of one tells the version that is new."""

from airflow.sdk import Asset


def lake_asset(dataset: str) -> Asset:
    """The asset of a dataset."""
    return Asset(name=dataset, uri=f"headwater://lake/{dataset}", group="lake")


TWEETS = lake_asset("tweets")
HASHTAG_COUNTS = lake_asset("hashtag_counts")
CATEGORY_TOTALS = lake_asset("category_totals")
ORDERS = lake_asset("orders")
COUNTRY_TOTALS = lake_asset("country_totals")
TOP_ORDERS = lake_asset("top_orders")
