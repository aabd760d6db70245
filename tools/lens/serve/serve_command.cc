#include <cstdio>

#include <common/tell.h>
#include <gradus/error.h>

#include "commands.h"
#ifdef HAVE_HTTPLIB
#include "server.h"
#endif

namespace lens {

#ifdef HAVE_HTTPLIB

int serve(const ServeOptions& o) {
  ServedModels answers(o.models);
  if (!o.host.empty())
    translator::tell(
        "lens: warning: whoever can reach {} can use these models, and what they ask is not encrypted; without "
        "--host it is this machine alone\n",
        o.host);
  run_server(answers, {o.host, o.port}, [&](const std::vector<std::string>& addresses) {
    std::string names;
    for (const json& model : answers.models()["models"])
      names += (names.empty() ? "" : ", ") + model["name"].get<std::string>();
    translator::tell("Serving {}. Ctrl-C ends it.\n", names);
    // Whoever closed stdout is served all the same.
    for (const std::string& address : addresses) std::fputs((address + "\n").c_str(), stdout);
    std::fflush(stdout);
    std::clearerr(stdout);  // it serves on where nobody reads that
  });
  return 0;
}

#else

int serve(const ServeOptions&) {
  gradus::fail(
      "lens",
      "this build has no server: it needs cpp-httplib, 0.11.4 to 0.14; hint: install libcpp-httplib-dev "
      "(tools/setup does), then meson setup --reconfigure BUILD and build again");
}

#endif

}  // namespace lens
