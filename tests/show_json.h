#pragma once

// A CHECK that fails shows JSON by what is compiled already, not by nlohmann's << anew.

#include <doctest/doctest.h>

#include <vector>

#include <common/json_text.h>

template <>
struct doctest::StringMaker<nlohmann::ordered_json> {
  static String convert(const nlohmann::ordered_json& value) { return json_text::dump(value).c_str(); }
};

// Which becomes JSON by itself where << asks for it.
template <>
struct doctest::StringMaker<std::vector<nlohmann::ordered_json>> {
  static String convert(const std::vector<nlohmann::ordered_json>& values) {
    return json_text::dump(values).c_str();
  }
};
