// Times what Gradus is for: the training step and the decoding of a translator. See tools/bench-peers for the
// comparison with PyTorch, and --help.

#include <common/command_line.h>
#include <gradus/error.h>

#include <functional>
#include <string>

#include <common/tell.h>

#include "commands.h"

namespace {

using command_line::Command;

std::string fault_of(const std::function<void()>& read) {
  try {
    read();
    return "";
  } catch (const gradus::Error& e) {
    return e.message();
  }
}

void add_workload(const Command& c, bench::Options& o) {
  c.option("--size", o.size, "toy, small, base, several with commas, or all")
      .show_default()
      .check([](const std::string& names) { return fault_of([&] { bench::sizes_named(names); }); });
  c.option("--variant", o.variant, "bahdanau, luong, or all")
      .show_default()
      .check([](const std::string& names) { return fault_of([&] { bench::variants_named(names); }); });
  c.option("--threads", o.threads, "Threads; in training each differentiates a share of the batch")
      .show_default()
      .range(1, 256);
  c.option("--steps", o.steps,
           "Timed steps (default: 40 toy, 30 small, 20 base; scale: 10; decode: 30 and 8)")
      .positive();
  c.option("--seed", o.seed, "Of weights and batches").show_default();
  c.flag("--json", o.json, "A line of JSON for each configuration instead of a table");
}

void add_files(const Command& c, bench::Options& o) {
  c.option("--load", o.load, "Start from these weights (safetensors, names of tools/peer_torch.py)")
      .existing_file();
  c.option("--save", o.save, "Write the weights it starts from to this file");
  c.option("--batches", o.batches, "Batches from this file, as tools/peer_torch.py writes them")
      .existing_file();
}

}  // namespace

int main(int argc, char** argv) {
  command_line::Program app{
      "Speed of Gradus. Sizes: toy (V 2000, E 64, H 128, B 32, T 10), small (V 8000, E 256, H 256, B 64, T "
      "16), base (V 16000, E 512, H 512, B 64, T 24)",
      "bench"};
  bench::Options o;
  int code = 0;

  Command train = app.add_command("train", "Training steps: forward, backward, clipping, Adam");
  add_workload(train, o);
  add_files(train, o);
  train.option("--warmup", o.warmup, "Steps before timing begins").show_default().not_negative();
  train.option("--losses", o.losses, "Only print the losses of so many steps").positive();
  train.callback([&] { code = bench::train(o); });

  Command decode = app.add_command("decode", "Greedy decoding of T words, batch 1 and 64");
  add_workload(decode, o);
  decode.option("--load", o.load, "Weights, as for train").existing_file();
  decode.callback([&] { code = bench::decode(o); });

  Command floor =
      app.add_command("floor", "The products of matrices of a training step alone, against the step");
  add_workload(floor, o);
  floor.option("--warmup", o.warmup, "Steps before timing begins").show_default().not_negative();
  floor.callback([&] { code = bench::floor(o); });

  Command ops = app.add_command("ops", "Every registered op case, fused against composed");
  ops.option("filter", o.filter, "Only cases with this in their name");
  ops.option("--factor", o.factor, "Times the registered sizes, where a case allows it")
      .show_default()
      .range(1, 64);
  ops.flag("--json", o.json, "JSON lines");
  ops.callback([&] { code = bench::ops(o); });

  Command scale =
      app.add_command("scale", "How the cost grows with B, T, H and V from half of a size to four times it");
  add_workload(scale, o);
  scale.callback([&] { code = bench::scale(o); });

  try {
    if (!app.parse(argc, argv)) code = app.report();
  } catch (const std::exception& e) {
    translator::tell("bench: {}\n", translator::what_of(e));
    return 1;
  }
  return app.end(code);
}
