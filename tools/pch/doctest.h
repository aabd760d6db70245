// Precompiled for the tests; see lib/pch/std.h.
#include "../../lib/pch/std.h"

#include <doctest/doctest.h>
