#pragma once

#include <string>

#include <httplib.h>

namespace lens {

/// Names that a server goes by. A page elsewhere can have a name of its own resolved to this machine, and a
/// browser would then let it ask whatever it likes ("DNS rebinding"): such names are not among them.
class Names {
 public:
  /// `host`: what --host says; empty: this machine alone.
  explicit Names(const std::string& host);
  void set_port(int port);
  /// Of a header Host, "127.0.0.1:8008".
  bool are_mine(const std::string& given) const;

 private:
  std::string host_, port_;
};

/// Looks at a request before its body is read: who asks whom for what, by what method and in what form.
/// @throws Refused
void admit(const httplib::Request& request, const Names& names);
/// GET or POST; "" where there is nothing.
std::string allowed_method(const std::string& path);

}  // namespace lens
