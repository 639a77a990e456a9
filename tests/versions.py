"""What holds with present versions of the libraries only."""

import numpy as np
import pytest

__all__ = ["present_versions"]

# Minimisers stop elsewhere in the last digits, and older versions make copies that later ones do
# not: committed numbers and bounds on memory are those of requirements/constraints.txt.
present_versions = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="digits and copies of present versions"
)
