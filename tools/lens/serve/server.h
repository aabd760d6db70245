#pragma once

#include <functional>
#include <string>
#include <vector>

#include "answers.h"

namespace lens {

/// Where a server listens.
struct ServerOptions {
  /// empty: 127.0.0.1 and, where the machine has it, [::1]
  std::string host;
  /// 0: any that is free
  int port = 8008;
};

/// Answers requests until a signal ends it (Ctrl-C, SIGTERM, SIGHUP). Calls `ready` with the addresses once it
/// can be asked.
/// @throws gradus::Error when it cannot listen there.
void run_server(ServedModels& answers, const ServerOptions& options,
                const std::function<void(const std::vector<std::string>& addresses)>& ready);

}  // namespace lens
