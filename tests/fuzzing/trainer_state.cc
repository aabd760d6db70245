// last.safetensors as --resume takes it: a good one, of which each line of the input changes something.
//   step=-5                            metadata
//   optimizer.step: F64 [1] nan        a tensor, filled with one number
//   -batch                             taken away, metadata or tensor
// What is accepted trains on to its end, and what that saves is accepted again.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <set>

#include <gradus/error.h>
#include <gradus/io/safetensors.h>
#include <common/error.h>
#include <translator/training/trainer.h>

#include "fuzz.h"
#include "small_model.h"

using namespace fuzzing;

namespace {

using translator::TrainOptions;

// The first line may name another kind of run.
TrainOptions options_of(const std::string& kind) {
  TrainOptions o;
  o.epochs = 2;
  o.batch_size = 3;
  o.lr = 0.01;
  o.out = scratch_directory();
  o.quiet = true;
  o.optimizer = kind == "sgd" || kind == "adadelta" || kind == "rmsprop" ? kind : "adam";
  if (kind == "plateau" || kind == "noam") o.schedule = kind;
  if (kind == "ema") o.ema = 0.9;
  return o;
}

struct Run {
  translator::Model model = small_model("gru");
  translator::Trainer trainer;
  explicit Run(const TrainOptions& options) : trainer(model, few_pairs(), {few_pairs()[0]}, options) {}
};

// What a run of one epoch leaves behind, of which two are asked for.
const gradus::SafetensorsFile& good_state(const std::string& kind) {
  static std::map<std::string, gradus::SafetensorsFile> known;
  auto at = known.find(kind);
  if (at != known.end()) return at->second;
  TrainOptions options = options_of(kind);
  options.epochs = 1;
  Run run(options);
  run.trainer.save_start(options.out);
  std::atomic<bool> stop{false};
  run.trainer.run(stop);
  return known.emplace(kind, gradus::load_safetensors(options.out + "/last.safetensors")).first->second;
}

gradus::Tensor filled(std::string_view text) {
  static const std::vector<std::pair<std::string_view, gradus::DType>> types = {{"F32", gradus::DType::f32},
                                                                                {"F64", gradus::DType::f64},
                                                                                {"I32", gradus::DType::i32},
                                                                                {"U8", gradus::DType::u8}};
  for (const auto& [name, dtype] : types) {
    size_t at = text.find(name), open = text.find('[', at), close = text.find(']', open);
    if (at == text.npos || close == text.npos) continue;
    std::vector<int64_t> sizes;
    std::string inside(text.substr(open + 1, close - open - 1));
    for (const char* c = inside.c_str(); *c && sizes.size() < 3;) {
      char* end = nullptr;
      int64_t size = std::strtol(c, &end, 10);
      if (end == c) break;
      sizes.push_back(std::clamp<int64_t>(size, 0, 40));
      c = *end == ',' ? end + 1 : end;
    }
    gradus::Tensor out(gradus::Shape(sizes.data(), static_cast<int>(sizes.size())), dtype);
    double value = std::strtod(std::string(text.substr(close + 1)).c_str(), nullptr);
    if (dtype == gradus::DType::i32 || dtype == gradus::DType::u8)
      value = value >= 0 && value < 256 ? value : dtype == gradus::DType::u8 ? 255 : -1;
    for (int64_t i = 0; i < out.numel(); ++i) out.set(i, value);
    return out;
  }
  return {};
}

void change(gradus::SafetensorsFile& file, const std::string& line) {
  if (line.starts_with('-')) {
    std::string name = line.substr(1);
    file.metadata.erase(name);
    std::erase_if(file.tensors, [&](const auto& t) { return t.first == name; });
  } else if (size_t colon = line.find(": "); colon != line.npos) {
    std::string name = line.substr(0, colon);
    gradus::Tensor tensor = filled(std::string_view(line).substr(colon + 2));
    if (!tensor.defined()) return;
    std::erase_if(file.tensors, [&](const auto& t) { return t.first == name; });
    file.tensors.emplace_back(name, tensor);
  } else if (size_t equals = line.find('='); equals != line.npos) {
    file.metadata[line.substr(0, equals)] = line.substr(equals + 1);
  }
}

}  // namespace

FUZZ_TARGET(trainer_state,
            {"", "step=1\nbatch=1\n", "batch=-5\n", "batch=100000000\n", "epoch=1e300\n", "step=nan\n",
             "best_loss=inf\nseconds=1e308\nwindow_nll=nan\n", "-seed\n", "optimizer.step: I32 [] 5\n",
             "optimizer.step: F64 [1] nan\n", "plateau\nbase_lr=-1\nplateau.best: F64 [] nan\n",
             "ema\nema.steps: F64 [] 1e300\n", "sgd\nskipped=99999999999999999999\n",
             "noam\nwindow_tokens=0\n", "adadelta\nepoch=2\nstep=4\nbatch=0\n", "-data\nseed=7\n"}) {
  std::vector<std::string> changes = lines(input);
  static const std::set<std::string> kinds = {"sgd", "adadelta", "rmsprop", "plateau", "noam", "ema"};
  std::string kind = changes.empty() || !kinds.count(changes[0]) ? "" : changes[0];
  TrainOptions options = options_of(kind);
  gradus::SafetensorsFile file = good_state(kind);
  write_file(options.out + "/train.log", "");
  for (const std::string& line : changes) change(file, line);
  if (!accepts<gradus::Error>([&] { gradus::save_safetensors(options.out + "/last.safetensors", file); }))
    return false;
  Run run(options);
  if (!accepts<gradus::Error, translator::InputError>([&] { run.trainer.resume(); })) return false;
  std::atomic<bool> stop{false};
  int64_t from = run.trainer.step();
  // Weights that are not finite may be found out by what computes with them.
  if (!accepts<gradus::Error, translator::InputError>(
          [&] { must(run.trainer.run(stop), "a run that goes on ends"); }))
    return false;
  must(from >= 0 && run.trainer.step() >= from, "steps are counted upwards");
  Run again(options);
  again.trainer.resume();
  must(again.trainer.step() == run.trainer.step(), "what a run saves, a run goes on from");
  return true;
}
