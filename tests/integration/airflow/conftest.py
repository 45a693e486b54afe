"""Airflow as a library: it makes its files in a folder of its own, which has to be named before it is imported."""

import os
import tempfile

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-"))
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
