// Precompiled where many files speak JSON; see std.h.
#include "std.h"

#include <nlohmann/json.hpp>
