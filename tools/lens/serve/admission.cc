#include "admission.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <cctype>

#include "request.h"

namespace lens {
namespace {

struct Route {
  const char *method, *path;
};
constexpr Route kRoutes[] = {
    {"GET", "/"}, {"GET", "/models"}, {"GET", "/explain"}, {"POST", "/translate"}, {"POST", "/beam"}};

bool is_address(const std::string& host) {
  unsigned char parsed[16];
  const bool six = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return inet_pton(six ? AF_INET6 : AF_INET, (six ? host.substr(1, host.size() - 2) : host).c_str(),
                   parsed) == 1;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string one_header(const httplib::Request& request, const char* name) {
  if (request.get_header_value_count(name) > 1)
    throw Refused(400, fmt::format("the request has several headers {}", name));
  return request.get_header_value(name);
}

}  // namespace

Names::Names(const std::string& host) : host_(lower(host)) {
  // A browser asks 127.1 by the name 127.0.0.1, and 0:0:0:0:0:0:0:1 by ::1.
  char text[INET6_ADDRSTRLEN];
  if (in_addr four; inet_aton(host.c_str(), &four) == 1)
    host_ = inet_ntop(AF_INET, &four, text, sizeof text);
  else if (in6_addr six; inet_pton(AF_INET6, host.c_str(), &six) == 1)
    host_ = inet_ntop(AF_INET6, &six, text, sizeof text);
  if (host_.find(':') != std::string::npos) host_ = "[" + host_ + "]";
}

void Names::set_port(int port) { port_ = fmt::format(":{}", port); }

bool Names::are_mine(const std::string& given) const {
  std::string name = lower(given);
  if (name.ends_with(port_))
    name.resize(name.size() - port_.size());
  else if (port_ != ":80")
    return false;
  if (host_.empty()) return name == "127.0.0.1" || name == "[::1]" || name == "localhost";
  // Who listens to all the world has many addresses, but no name that could be somebody else's.
  const bool everywhere = host_ == "0.0.0.0" || host_ == "[::]";
  return name == host_ || name == "localhost" || (everywhere && is_address(name));
}

std::string allowed_method(const std::string& path) {
  for (const Route& route : kRoutes)
    if (path == route.path) return route.method;
  return "";
}

void admit(const httplib::Request& request, const Names& names) {
  if (!names.are_mine(one_header(request, "Host")))
    throw Refused(403, "the header Host names another server: ask by the address that lens serve printed");
  const std::string origin = one_header(request, "Origin");
  if (!origin.empty() && !(origin.starts_with("http://") && names.are_mine(origin.substr(7))))
    throw Refused(403, "a page from elsewhere asks: only this server's own may");
  const std::string site = one_header(request, "Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none" &&
      !(request.path == "/" && request.method == "GET"))
    throw Refused(403, "a page from elsewhere asks: only this server's own may");

  const std::string method = allowed_method(request.path);
  if (method.empty())
    throw Refused(404, "there is nothing by this name: /, /models, /translate, /beam, /explain");
  if (request.method != method)
    throw Refused(405, fmt::format("{} is to be asked with {}", request.path, method));
  if (request.method != "POST") return;
  if (request.has_header("Content-Encoding")) throw Refused(415, "a body must not be compressed");
  const std::string type = lower(one_header(request, "Content-Type"));
  if (type != "application/json" && !type.starts_with("application/json;"))
    throw Refused(415, "a body must be JSON: Content-Type: application/json");
  const std::string length = one_header(request, "Content-Length");
  if (!length.empty() && length.find_first_not_of("0123456789") != std::string::npos)
    throw Refused(400, "Content-Length is no number");
}

}  // namespace lens
