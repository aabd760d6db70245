#include <filesystem>

#include <common/error.h>
#include <fmt/core.h>
#include <gradus/io/safetensors.h>
#include <translator/commands/commands.h>
#include <translator/model/files.h>
#include <translator/model/int8_state.h>

namespace translator {

int run(QuantizeCommand& o) {
  DirectoryLock lock;
  lock.take(o.out);
  Model::finish_replacing(o.out);
  std::error_code ignored;
  if (!o.force && std::filesystem::exists(in(o.out, "model.safetensors"), ignored))
    throw InputError(o.out, 0, "holds a model already: --force replaces it; or name another place");
  must_not_replace(o.out, {o.model});
  Model model = Model::load(o.model);
  round_to_int8(*model.network);
  Model::replace(o.out, [&](const std::string& where) {
    model.save_description(where);
    gradus::save_safetensors(in(where, "model.safetensors"),
                             {int8_state_dict(*model.network), {{"weights", "int8"}}});
  });
  auto megabytes = [&](const std::string& directory) {
    return static_cast<double>(std::filesystem::file_size(in(directory, "model.safetensors"))) / 1e6;
  };
  fmt::print("{:.2f} MB of weights are {:.2f} MB in {}\n", megabytes(o.model), megabytes(o.out), o.out);
  return 0;
}

}  // namespace translator
