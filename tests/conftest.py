"""Settings that every test shares."""

import os
import sys

from hypothesis import settings

# The same examples on every run; HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Spark's workers would otherwise run the first python3 on the path, outside the environment.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
