"""What calls of pytest within a test find loaded: each forgets what it loads, and numpy cannot be loaded twice."""

import numpy

from vivavoce.testing import asserting

LOADED = (numpy, asserting)
