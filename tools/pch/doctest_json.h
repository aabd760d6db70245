// Precompiled for tests that speak JSON; see lib/pch/std.h.
#include "doctest.h"

#include <nlohmann/json.hpp>
