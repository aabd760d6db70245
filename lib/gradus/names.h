#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradus {

/// For a hint: the nearest of the names that are known, "" where at none a third of the letters at most are
/// wrong.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace gradus
