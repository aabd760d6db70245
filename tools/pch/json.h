// Precompiled where many files speak JSON; see lib/pch/std.h.
#include "../../lib/pch/std.h"

#include <nlohmann/json.hpp>
