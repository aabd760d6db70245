#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradus {

/// For a hint: the nearest of the known names, "" where each has more than a third of the letters wrong.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace gradus
