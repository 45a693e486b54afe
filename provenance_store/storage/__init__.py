"""Where a lake may lie other than in a folder of this machine: HDFS and S3, as paths. Imports errors alone."""
