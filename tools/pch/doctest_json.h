// Precompiled for tests that speak JSON; see std.h.
#include "doctest.h"

#include <nlohmann/json.hpp>
