// Times what Gradus is for: the training step and the decoding of a translator. See tools/bench-peers for the
// comparison with PyTorch, and --help.

#include <fmt/core.h>
#include <gradus/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.h"

namespace {

void add_workload(CLI::App& c, bench::Options& o) {
  c.add_option("--size", o.size, "toy, small, base, several with commas, or all")->capture_default_str();
  c.add_option("--variant", o.variant, "bahdanau, luong, or all")->capture_default_str();
  c.add_option("--threads", o.threads, "Threads; each differentiates a share of the batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  c.add_option("--steps", o.steps,
               "Timed steps (default: 40 toy, 30 small, 20 base; scale: 10; decode: 30 and 8)")
      ->check(CLI::PositiveNumber);
  c.add_option("--seed", o.seed, "Of weights and batches")->capture_default_str();
  c.add_flag("--json", o.json, "A line of JSON for each configuration instead of a table");
}

void add_files(CLI::App& c, bench::Options& o) {
  c.add_option("--load", o.load, "Start from these weights (safetensors, names of tools/peer_torch.py)")
      ->check(CLI::ExistingFile);
  c.add_option("--save", o.save, "Write the weights it starts from to this file");
  c.add_option("--batches", o.batches, "Batches from this file, as tools/peer_torch.py writes them")
      ->check(CLI::ExistingFile);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Speed of Gradus. Sizes: toy (V 2000, E 64, H 128, B 32, T 10), small (V 8000, E 256, H 256, B 64, T "
      "16), "
      "base (V 16000, E 512, H 512, B 64, T 24)"};
  app.require_subcommand(1);
  bench::Options o;
  int code = 0;

  CLI::App* train = app.add_subcommand("train", "Training steps: forward, backward, clipping, Adam");
  add_workload(*train, o);
  add_files(*train, o);
  train->add_option("--warmup", o.warmup, "Steps before timing begins")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  train->add_option("--losses", o.losses, "Only print the losses of so many steps")
      ->check(CLI::PositiveNumber);
  train->callback([&] { code = bench::train(o); });

  CLI::App* decode = app.add_subcommand("decode", "Greedy decoding of T words, batch 1 and 64");
  add_workload(*decode, o);
  decode->add_option("--load", o.load, "Weights, as for train")->check(CLI::ExistingFile);
  decode->callback([&] { code = bench::decode(o); });

  CLI::App* floor =
      app.add_subcommand("floor", "The products of matrices of a training step alone, against the step");
  add_workload(*floor, o);
  floor->add_option("--warmup", o.warmup, "Steps before timing begins")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  floor->callback([&] { code = bench::floor(o); });

  CLI::App* ops = app.add_subcommand("ops", "Every registered op case, fused against composed");
  ops->add_option("filter", o.filter, "Only cases with this in their name");
  ops->add_option("--factor", o.factor, "Times the registered sizes, where a case allows it")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  ops->add_flag("--json", o.json, "JSON lines");
  ops->callback([&] { code = bench::ops(o); });

  CLI::App* scale = app.add_subcommand(
      "scale", "How the cost grows with B, T, H and V from half of a size to four times it");
  add_workload(*scale, o);
  scale->callback([&] { code = bench::scale(o); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const gradus::Error& e) {
    fmt::print(stderr, "bench: {}\n", e.what());
    return 1;
  }
  return code;
}
