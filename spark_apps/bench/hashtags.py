"""The hashtag count under a name that the benchmark chooses, so that its stream is a topic of its own."""

from spark_apps.dics import hashtag_count

# The driver puts its own in this place; workers take only the functions from here.
JOB = hashtag_count.JOB
