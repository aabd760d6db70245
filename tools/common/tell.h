#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace translator {

/// To stderr, for people. What files and arguments brought into the text is made printable
/// (utf8::printable_lines), so that it cannot act on the terminal. That nobody hears it (a terminal that is
/// gone, a full disk) stops no work, as an exception of fmt::print would.
void tell_text(std::string_view text);

/// What an error says. One of fmt::print does not say where it could not write: here it does, if that was
/// standard output.
std::string what_of(const std::exception& error);

template <class... Values>
void tell(fmt::format_string<Values...> form, Values&&... values) {
  tell_text(fmt::format(form, std::forward<Values>(values)...));
}

}  // namespace translator
