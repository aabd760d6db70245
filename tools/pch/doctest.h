// Precompiled for the tests; see std.h.
#include "std.h"

#include <doctest/doctest.h>
