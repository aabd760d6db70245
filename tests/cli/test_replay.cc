// train --check-finite stops at the first NaN or infinity, says where it came from, and leaves a bundle that
// translator replay runs again.

#include <gradus/io/safetensors.h>

#include <limits>

#include <common/json_text.h>

#include "../quick_doctest.h"
#include "../skip.h"
#include "program.h"

using namespace cli;

namespace {

// What lies between the program's name and the last line.
std::string report_of(const std::string& err) {
  size_t begin = err.find('['), end = err.rfind('`', err.rfind("runs it again") - 3);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return err.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("weights that an absurd learning rate blew up are traced to an op and its sentences") {
  Result r = run(small_run("blown", {"--optimizer", "sgd", "--lr", "1e30", "--schedule", "constant",
                                     "--clip-norm", "0", "--threads", "2", "--check-finite"}));
  INFO(r.err);
  CHECK(r.code == 1);
  CHECK(r.says("translator: stopped at step "));
  CHECK(r.says("not finite: f32 ["));
  CHECK(r.says(", scope \""));
  CHECK(r.says("; input 0: "));
  CHECK(r.says(".cc:"));
  CHECK(r.says("while it worked on "));
  CHECK(r.says("  ->  "));
  std::string bundle;
  for (int step = 0; step < 40 && bundle.empty(); ++step)
    if (exists("blown/not-finite-" + std::to_string(step)))
      bundle = "blown/not-finite-" + std::to_string(step);
  REQUIRE_FALSE(bundle.empty());
  CHECK(r.says("`" TRANSLATOR " replay " + bundle + "` runs it again."));

  Result again = run({"replay", bundle});
  INFO(again.out, again.err);
  CHECK(again.code == 0);
  CHECK(again.out.find(report_of(r.err)) != std::string::npos);
  CHECK(again.out.find("This is what stopped the training.") != std::string::npos);
  CHECK(count(run({"replay", bundle, "--all"}).out, "  ->  ") > count(again.out, "  ->  "));

  // Healthy weights in the same bundle: the step goes through, and that is not what was reported.
  std::filesystem::copy_file(in_scratch(trained_model()) + "/model.safetensors",
                             in_scratch(bundle + "/model.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  Result healed = run({"replay", bundle});
  INFO(healed.out, healed.err);
  CHECK(healed.code == 1);
}

TEST_CASE("an infinite weight is found in the inputs of the first op that meets it") {
  REQUIRE(run(small_run("poisoned", {"--epochs", "1"})).code == 0);
  std::string path = in_scratch("poisoned/last.safetensors");
  gradus::SafetensorsFile file = gradus::load_safetensors(path);
  for (auto& [name, tensor] : file.tensors)
    if (name == "encoder.embedding.weight") tensor.fill(std::numeric_limits<double>::infinity());
  gradus::save_safetensors(path, file);
  Result r = run(small_run("poisoned", {"--epochs", "2", "--resume", "--check-finite"}));
  INFO(r.err);
  CHECK(r.code == 1);
  CHECK(r.says("[embedding] the output is not finite"));
  CHECK(r.says("infinite"));
}

TEST_CASE("healthy training does not notice the check") {
  Result with = run(small_run("checked", {"--epochs", "1", "--check-finite"}));
  Result without = run(small_run("unchecked", {"--epochs", "1"}));
  REQUIRE(with.code == 0);
  REQUIRE(without.code == 0);
  CHECK(events("checked", "validation").back().at("train_loss") ==
        events("unchecked", "validation").back().at("train_loss"));
}

TEST_CASE("a run none of whose validations has a finite perplexity is no success") {
  const Result r = run(small_run("lost", {"--optimizer", "sgd", "--lr", "1e30", "--schedule", "constant",
                                          "--clip-norm", "0", "--threads", "1", "--epochs", "1"}));
  INFO(r.err);
  CHECK(r.code == 1);
  CHECK(r.says("translator: no validation had a finite perplexity: what is in lost has learnt nothing."));
  CHECK(run({"translate", "lost", "she eats apples"}).code == 0);
}

TEST_CASE("a run whose loss is no number any more says so at once, and stops at the second validation") {
  // The decay alone makes a weight 10^30 times as large at each step: infinite at the second, on any processor.
  const Result r = run(small_run("diverged", {"--optimizer", "sgd", "--lr", "1e30", "--weight-decay", "1",
                                              "--schedule", "constant", "--clip-norm", "0",
                                              "--validate-every", "5", "--epochs", "9"}));
  INFO(r.err);
  CHECK(r.code == 1);
  const std::string advice = "A lower --lr may help; --check-finite says where it begins\n";
  CHECK(count(r.err, "The loss is not finite. " + advice) == 1);
  const auto found = events("diverged", "validation");
  CHECK(found.size() <= 3);
  const std::string step = std::to_string(found.back().at("step").get<int>());
  CHECK(r.says("translator: diverged: stopped at step " + step +
               ": validation and training have no finite loss any more. " + advice));
  CHECK(r.says("train nan"));
  CHECK_FALSE(r.says("-nan"));
  CHECK(events("diverged", "end").back().at("finished") == false);
}

TEST_CASE("replay knows how much guided alignment counted, and how much was dropped") {
  const Result r = run(small_run("misguided", {"--optimizer", "sgd", "--lr", "1e30", "--schedule", "constant",
                                            "--clip-norm", "0", "--check-finite", "--guided-alignment",
                                            "0.5"}));
  INFO(r.err);
  REQUIRE(r.code == 1);
  for (int step = 0; step < 40; ++step)
    if (const std::string bundle = "misguided/not-finite-" + std::to_string(step); exists(bundle)) {
      auto facts = json_text::parse(read_file(bundle + "/step.json"));
      CHECK(facts["guided_alignment"] == 0.5);
      CHECK(facts.at("dropout_share") >= 0);
      CHECK(facts.at("dropout_share") < 1);  // it rises over 10 passes
      CHECK(run({"replay", bundle}).code == 0);
      auto wrong = facts;
      wrong["target_tokens"][0] = 1;
      write_file(bundle + "/step.json", json_text::dump(wrong));
      CHECK(run({"replay", bundle}).says(" words, step.json says 1\n"));
      facts["training_seed"] = std::numeric_limits<uint64_t>::max();  // as that of any large --seed
      write_file(bundle + "/step.json", json_text::dump(facts));
      CHECK(run({"replay", bundle}).err == "");
      facts["dropout_share"] = 1.5;
      write_file(bundle + "/step.json", json_text::dump(facts));
      CHECK(run({"replay", bundle}).says("\"dropout_share\" must be from 0 to 1"));
      return;
    }
  FAIL("nothing was left to replay");
}

TEST_CASE("replay knows that a run computed in bfloat16") {
  const Result r = run(small_run("rounded", {"--optimizer", "sgd", "--lr", "1e30", "--schedule", "constant",
                                            "--clip-norm", "0", "--check-finite", "--precision", "bf16"}));
  if (r.says("AVX512_BF16")) return gradus::testing::skipped("this CPU has no AVX512_BF16");
  REQUIRE(r.code == 1);
  int bundles = 0;
  for (int step = 0; step < 40; ++step)
    if (const std::string file = "rounded/not-finite-" + std::to_string(step) + "/step.json"; exists(file)) {
      CHECK(json_text::parse(read_file(file)).at("bf16") == true);
      ++bundles;
    }
  CHECK(bundles == 1);
}

TEST_CASE("replay says what is missing") {
  Result r = run({"replay", trained_model()});
  CHECK(r.code == 1);
  CHECK(r.says("is not what a stopped training left: it has no step.json"));
}
