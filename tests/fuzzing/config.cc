// config.json. What is read is written and read again the same.

#include <translator/model/model_config.h>
#include <common/error.h>

#include <sstream>

#include "fuzz.h"

using namespace fuzzing;
using namespace translator;

namespace {

std::string gru(const std::string& attention) {
  ModelConfig c;
  c.network.source_vocabulary = c.network.target_vocabulary = 8;
  c.network.attention = attention;
  return to_json(c);
}

std::string transformer() {
  ModelConfig c;
  c.model = "transformer";
  c.transformer.source_vocabulary = c.transformer.target_vocabulary = 8;
  return to_json(c);
}

}  // namespace

FUZZ_TARGET(config, {gru("bahdanau"), gru("none"), transformer(), "{\"network\": {}}", "[]", "nothing"}) {
  std::istringstream file{std::string(input)};
  ModelConfig config;
  if (!accepts<InputError>([&] { config = read_config(file, "config.json"); })) return false;
  std::string written = to_json(config);
  std::istringstream other(written);
  must(to_json(read_config(other, "config.json")) == written, "a configuration is written as it is read");
  return true;
}
