// What `lens flow` computes: how much gradient reaches each source word.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "../about.h"
#include "../read.h"
#include "../scratch.h"
#include "../show_json.h"
#include "commands.h"
#include "flow/flow.h"
#include <common/json_text.h>
#include "page/schema.h"
#include "subjects.h"
#include <common/utf8.h>

using namespace lens;

namespace {

FlowResult untrained(const std::string& cell, bool bidirectional, int64_t length, int seeds) {
  return flow_fresh(flow_config(cell, bidirectional), length, {.seeds = seeds});
}

// A model on disk, of one vocabulary with the others here.
std::string saved(const std::filesystem::path& folder, const std::string& attention, bool bidirectional,
                  uint64_t seed) {
  Subject s = test::subject({.bidirectional = bidirectional, .seed = seed});
  translator::ModelConfig config = s.model.config;
  config.network.attention = attention;
  translator::Model model(config, s.model.source, s.model.target, seed);
  std::string out = (folder / attention).string();
  model.save_description(out);
  model.save_weights(out);
  return out;
}

// Of a vocabulary all but the specials, backwards, a line each.
std::string reversed_words(const translator::Vocabulary& v) {
  std::string out;
  for (int64_t id = v.size() - 1; id >= translator::Vocabulary::kSpecials; --id)
    out += v.token(static_cast<int32_t>(id)) + "\n";
  return out;
}

// The trace of a flow, held to its schema; the picture is written beside it.
json traced(FlowOptions& o, const std::filesystem::path& folder) {
  o.json = true;
  o.out = (folder / "flow.json").string();
  o.svg = (folder / "flow.svg").string();
  CHECK(flow(o) == 0);
  const json trace = json_text::parse(read_whole(o.out));
  CHECK(test::fault_of(trace) == "");
  return trace;
}

}  // namespace

TEST_CASE("untrained, without attention the first of 30 words gets next to nothing, with it its share") {
  FlowResult r = flow_fresh(flow_config("gru", false), 30, {.thorough = true});
  // The figure of the documentation: 10^-5.5 and 10^-0.7, eight seeds.
  CHECK(std::abs(r.without.median[0] + 5.5) < 0.1);
  CHECK(std::abs(r.with.median[0] + 0.7) < 0.1);
  CHECK(r.without.high[0] < r.with.low[0]);  // of every seed
  CHECK(r.without.median[29] == 0);
  CHECK(r.with.median[29] == 0);
  CHECK(r.checks.worst < 1e-6);
  CHECK(r.checks.count == 8 * 30 * (8 + 5));  // whole, four steps, three ways; whole, four steps
  double value = 0, score = 0;
  for (size_t j = 0; j < 30; ++j) {
    CHECK(std::abs(r.with.value[j] + r.with.score[j] + r.with.recurrent[j] - 1) < 1e-12);
    value += r.with.value[j];
    score += r.with.score[j];
  }
  CHECK(value / score > 4);  // the value path carries four to five times the score path
  CHECK(value / score < 5);
  CHECK(r.with.recurrent[29] > 0.5);  // by the decoder's first state
  CHECK(r.without.value.empty());
}

TEST_CASE("how small it gets depends on how weights start") {
  auto first = [](const char* init, int64_t length) {
    return flow_fresh(flow_config("gru", false), length, {.seeds = 8, .init = init}).without.median[0];
  };
  CHECK(std::abs(first("glorot", 30) + 5.5) < 0.2);
  CHECK(std::abs(first("orthogonal", 30) + 5.5) < 0.2);
  CHECK(first("pytorch", 30) < -6);
  CHECK_THROWS_AS(first("zeros", 5), gradus::Error);
  // The weights have the deviation that the name says, biases are 0, an LSTM's forget gate is open.
  gradus::Rng rng(1);
  gradus::nn::Seq2SeqConfig config = flow_config("lstm", false);
  config.embedding_dim = config.hidden_size = 64;
  gradus::nn::Seq2Seq network(config, rng);
  start_anew(network, "lecun", rng);
  int biases = 0, weights = 0;
  for (const auto& [name, p] : gradus::nn::state_dict(network)) {
    std::string last = name.substr(name.rfind('.') + 1);
    double sum = 0, squares = 0;
    for (double x : p.to_vector()) sum += x, squares += x * x;
    double n = static_cast<double>(p.numel());
    CAPTURE(name);
    if (last.starts_with("bias")) {
      ++biases;
      CHECK(sum == (last.starts_with("bias_ih") ? 64 : 0));
    } else if (name.find("embedding") == std::string::npos) {
      ++weights;
      CHECK(std::abs(squares / n * static_cast<double>(p.size(-1)) - 1) < 8 / std::sqrt(n));
    }
  }
  CHECK(biases >= 6);
  CHECK(weights >= 8);
}

TEST_CASE("it gets worse with the length, and the plain RNN is worst") {
  double before = 0;
  for (int64_t length : {5, 20, 60}) {
    FlowResult r = untrained("gru", false, length, 3);
    CHECK(r.without.median[0] < before);
    before = r.without.median[0];
    CHECK(r.with.median[0] > -2);
    CHECK(r.checks.worst < 1e-6);
    CHECK(r.checks.count == std::min<int64_t>(length, 8) * 13);
  }
  CHECK(untrained("rnn", false, 30, 4).without.median[0] < untrained("lstm", false, 30, 4).without.median[0]);
}

TEST_CASE("between the kinks of a relu few lengths are left undecided") {
  FlowResult r = flow_fresh(flow_config("rnn-relu", false), 60, {.seeds = 4, .thorough = true});
  CHECK(r.checks.worst < 1e-6);
  CHECK(r.checks.count + r.checks.undecided == 4 * 60 * 13);
  CHECK(r.checks.undecided * 8 < r.checks.count);
}

TEST_CASE("reading both ways makes a V without attention") {
  FlowResult r = untrained("gru", true, 30, 4);
  CHECK(r.without.median[0] > -1);
  CHECK(r.without.median[15] < -1);
  CHECK(r.checks.worst < 1e-6);
}

TEST_CASE("steps add up to the whole, ways too, and every kind of network agrees with differences") {
  std::vector<int32_t> target = {5, 6, gradus::nn::kEos};
  for (const test::Small& small : {test::Small{},
                                   {.attention = "dot", .residual = true, .layers = 2},
                                   {.attention = "general", .cell = "lstm"},
                                   {.attention = "concat", .cell = "gru-bahdanau", .bidirectional = false},
                                   {.bidirectional = false, .layers = 2, .reverse = true},
                                   {.attention = "multihead", .cell = "rnn"}}) {
    CAPTURE(small.attention);
    Subject s = test::subject(small);
    std::vector<int32_t> source = {5, 6, 7, 5, gradus::nn::kEos};
    std::vector<size_t> words(source.size());
    std::iota(words.begin(), words.end(), size_t{0});
    FlowGradients with = flow_gradients(s.network(), FlowMode::with, source, target);
    gradus::Tensor whole = with.whole();
    for (int64_t i = 0; i < whole.numel(); ++i)
      CHECK(std::abs(whole.at(i) - with.value.at(i) - with.score.at(i) - with.recurrent.at(i)) < 1e-12);
    FlowChecks checks = check_flow(s.network(), FlowMode::with, source, target, with, words);
    CHECK(checks.count == 5 * 7);
    CHECK(checks.worst < 1e-6);
    FlowGradients cut = flow_gradients(s.network(), FlowMode::cut, source, target);
    checks = check_flow(s.network(), FlowMode::cut, source, target, cut, words);
    CHECK(checks.count == 5 * 4);
    CHECK(checks.worst < 1e-6);
    // Were the gradient wrong, the check would say so.
    with.score.f64()[0] += 1e-3;
    CHECK(check_flow(s.network(), FlowMode::with, source, target, with, words).worst > 1e-6);
    cut.steps[1].f64()[0] *= 1.01;
    CHECK(check_flow(s.network(), FlowMode::cut, source, target, cut, words).worst > 1e-6);
  }
}

TEST_CASE("a model's own short cut can be cut") {
  Subject s = test::subject({.bidirectional = false});
  std::vector<int32_t> source(20, 5), target = {5, 6, gradus::nn::kEos};
  Flow with = lengths_of(flow_gradients(s.network(), FlowMode::with, source, target));
  Flow cut = lengths_of(flow_gradients(s.network(), FlowMode::cut, source, target));
  REQUIRE(with.full.size() == 20);
  CHECK(cut.value.empty());
  CHECK(cut.full[0] / cut.full[19] < with.full[0] / with.full[19]);
  FlowResult r = flow_trained(s.network(), nullptr, 12, {.seeds = 2});
  CHECK(r.length == 12);
  CHECK(r.weights == "trained");
  CHECK(r.checks.worst < 1e-6);
}

TEST_CASE("a model beside one without attention") {
  scratch::Directory folder;
  FlowOptions o;
  o.model = saved(folder.path(), "bahdanau", false, 1);
  o.versus = saved(folder.path(), "none", false, 2);
  o.source = "the cat eats fish";
  o.target = "le chat mange";
  const json trace = traced(o, folder.path());
  CHECK(trace["versus"] == true);
  const json& r = trace["results"][0];
  CHECK(r["source"] == json({"the", "cat", "eats", "fish", "</s>"}));
  CHECK(r["target"] == json({"le", "chat", "mange", "</s>"}));
  CHECK(r["with"]["map"].size() == 4);
  CHECK(trace["checks"]["worst"].get<double>() < 1e-6);
  // The line without is the other model's own, not the first one's with its short cut cut.
  translator::Model other = translator::Model::load(o.versus);
  gradus::nn::to(*other.network, gradus::DType::f64);
  std::vector<int32_t> source = other.source.encode({"the", "cat", "eats", "fish"});
  std::vector<int32_t> target = other.target.encode({"le", "chat", "mange"});
  source.push_back(gradus::nn::kEos);
  target.push_back(gradus::nn::kEos);
  Flow own = lengths_of(
      flow_gradients(dynamic_cast<gradus::nn::Seq2Seq&>(*other.network), FlowMode::without, source, target));
  CHECK(r["without"]["median"][0].get<double>() ==
        about(std::log10(own.full[0] / own.full[4]), 1e-3));
  CHECK(read_whole(o.svg).find(">eats</text>") != std::string::npos);
  // Whole pages, and what makes no sense.
  o.json = false;
  o.out = (folder.path() / "flow.html").string();
  CHECK(flow(o) == 0);
  CHECK(read_whole(o.out).find("trained without attention") != std::string::npos);
  {  // as many words, but in another order
    std::istringstream words("<unk>\n<pad>\n<s>\n</s>\n" + reversed_words(other.source));
    translator::Vocabulary turned = translator::Vocabulary::load(words, "turned");
    REQUIRE(turned.size() == other.source.size());
    FlowOptions wrong = o;
    wrong.versus = (folder.path() / "turned").string();
    translator::Model(other.config, turned, other.target, 2).save_description(wrong.versus);
    std::filesystem::copy(o.versus + "/model.safetensors", wrong.versus + "/model.safetensors");
    CHECK_THROWS_WITH_AS(flow(wrong), "the two models must have one vocabulary", UsageError);
  }
  std::swap(o.model, o.versus);
  CHECK_THROWS_AS(flow(o), UsageError);
  std::swap(o.model, o.versus);
  o.versus = o.model;
  CHECK_THROWS_AS(flow(o), UsageError);
  o.model = "";
  CHECK_THROWS_AS(flow(o), UsageError);
}

TEST_CASE("a Transformer's gradients at its encoder's states and at its words agree with differences") {
  std::vector<int32_t> source = {5, 6, 7, 5, gradus::nn::kEos}, target = {5, 6, gradus::nn::kEos};
  std::vector<size_t> words(source.size());
  std::iota(words.begin(), words.end(), size_t{0});
  for (bool norm_first : {true, false}) {
    CAPTURE(norm_first);
    gradus::Rng rng(3);
    gradus::nn::TransformerSeq2Seq network({.source_vocabulary = 9,
                                            .target_vocabulary = 9,
                                            .d_model = 8,
                                            .num_heads = 2,
                                            .norm_first = norm_first,
                                            .activation = norm_first ? "relu" : "gelu"},
                                           rng);
    gradus::nn::to(network, gradus::DType::f64);
    TransformerFlow g = transformer_gradients(network, source, target);
    // The losses are the network's own.
    gradus::nn::Seq2SeqBatch batch{gradus::Tensor::from_ids({5, 1}, source),
                                   gradus::Tensor::from_ids({1}, {5}),
                                   gradus::Tensor::from_ids({3, 1}, {gradus::nn::kBos, 5, 6}),
                                   gradus::Tensor::from_ids({3, 1}, target), 3};
    CHECK(std::accumulate(g.states.losses.begin(), g.states.losses.end(), 0.0) ==
          about(3 * network.loss(batch).loss.item(), 1e-12));
    gradus::Tensor whole = g.states.whole();
    for (int64_t i = 0; i < whole.numel(); ++i)
      CHECK(std::abs(whole.at(i) - g.states.value.at(i) - g.states.score.at(i)) < 1e-12);
    FlowChecks checks = check_transformer(network, source, target, g, words);
    CHECK(checks.count + checks.undecided == 5 * (6 + 4));
    CHECK(checks.undecided < 5);
    CHECK(checks.worst < 1e-6);
    for (gradus::Tensor* x : {&g.states.value, &g.states.score, &g.states.steps[1], &g.words.steps[0]}) {
      const gradus::Tensor kept = x->clone();
      for (int64_t i = 0; i < 8; ++i) x->f64()[i] *= 1.01;
      CHECK(check_transformer(network, source, target, g, words).worst > 1e-3);
      *x = kept;
    }
  }
}

TEST_CASE("lens flow of a Transformer: its sentence, and what does not go with it") {
  scratch::Directory folder;
  Subject s = test::subject({});
  translator::ModelConfig config = s.model.config;
  config.model = "transformer";
  config.transformer = {.d_model = 8, .num_heads = 2, .num_layers = 1};
  translator::Model model(config, s.model.source, s.model.target, 1);
  FlowOptions o;
  o.model = (folder.path() / "transformer").string();
  model.save_description(o.model);
  model.save_weights(o.model);
  o.source = "the cat eats fish";
  o.target = "le chat mange";
  const json trace = traced(o, folder.path());
  CHECK(trace["transformer"] == true);
  const json& r = trace["results"][0];
  CHECK(r["cell"] == "transformer");
  CHECK(r["with"]["recurrent"].is_null());
  CHECK(r["without"]["value"].is_null());
  for (size_t j = 0; j < 5; ++j)
    CHECK(r["with"]["value"][j].get<double>() + r["with"]["score"][j].get<double>() == about(1, 1e-3));
  CHECK(r["without"]["map"].size() == 4);
  CHECK(read_whole(o.svg).find("recurrent path") == std::string::npos);
  o.json = false;
  o.length = 5;
  o.seeds = 1;
  o.out = (folder.path() / "flow.html").string();
  CHECK(flow(o) == 0);
  o.versus = saved(folder.path(), "none", false, 2);
  CHECK_THROWS_AS(flow(o), UsageError);
  o.versus = "";
  o.init = "lecun";
  CHECK_THROWS_AS(flow(o), UsageError);
}

TEST_CASE("text, picture, trace and page of a flow") {
  FlowResult r = untrained("gru", false, 10, 2);
  FlowTitles titles{.title = "A <title>", .setup = "How", .seeds = 2};
  std::string text = flow_text(r, titles);
  CHECK(text.starts_with("A <title>\n"));
  CHECK(text.find("word 1 gets " + as_fraction(r.without.median[0]) + " word 10") != std::string::npos);
  CHECK(text.find("How.") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("  ")) CHECK(translator::utf8::display_width(line) <= 80);  // sentences
  // Under a long sentence not every word has room, and no word is long enough to reach what is below.
  FlowResult wordy = untrained("gru", false, 40, 1);
  wordy.source = std::vector<std::string>(40, std::string(20, 'w'));
  wordy.target = std::vector<std::string>(wordy.with.map.size(), "<b>");
  const std::string slanted = flow_svg(wordy, titles);
  CHECK(test::count(slanted, "rotate(") == 20);
  CHECK(slanted.find(std::string(12, 'w')) == std::string::npos);
  CHECK(test::count(slanted, ">&lt;b&gt;</text>") == wordy.target.size());
  std::string svg = flow_svg(r, titles);
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("A &lt;title>") == std::string::npos);
  CHECK(svg.find("A &lt;title&gt;") != std::string::npos);
  // Of the cells of both maps the largest is the deepest.
  std::vector<double> sizes, depths;
  for (const FlowLine* line : {&r.without, &r.with})
    for (const std::vector<double>& row : line->map) sizes.insert(sizes.end(), row.begin(), row.end());
  for (size_t at = 0; (at = svg.find("fill-opacity=\"", at)) != std::string::npos; ++at)
    depths.push_back(std::stod(svg.substr(at + std::strlen("fill-opacity=\""))));
  REQUIRE(depths.size() == sizes.size());
  CHECK(depths[static_cast<size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin())] == 1);
  CHECK(depths[static_cast<size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin())] == 0.04);
  FlowResult odd = r;
  odd.with.median[0] = odd.with.value[0] = odd.without.low[1] = NAN;
  odd.with.high[2] = INFINITY;
  odd.without.median[3] = -INFINITY;
  const std::string drawn = flow_svg(odd, titles);
  CHECK(drawn.find("nan") == std::string::npos);
  CHECK(drawn.find("inf") == std::string::npos);
  json trace = flow_json({r}, titles, 0);
  CHECK(test::fault_of(trace) == "");
  CHECK(trace["results"][0]["with"]["map"].size() == 4);
  trace["results"][0]["with"]["median"][0] = nullptr;
  CHECK(!problems(trace, trace_schema()).empty());
  CHECK(power(-5.5) == "10^-5.5");
  CHECK(power(-0.04) == "10^0.0");
  CHECK(power(-INFINITY) == "0");
  CHECK(whole_percents({0.335, 0.005, 0.66}) == std::vector<double>{34, 0, 66});
  CHECK(whole_percents({0.455, 0.455, 0.09}) == std::vector<double>{46, 45, 9});
  CHECK(std::isnan(whole_percents({NAN, NAN})[0]));
  CHECK(whole_percents({0, 0, 0}) == std::vector<double>{0, 0, 0});
  CHECK(as_fraction(-5.5) == "1/300000 of");
  CHECK(as_fraction(-1) == "1/10 of");
  CHECK(as_fraction(0.08) == "1.2 times as much as");
  CHECK(as_fraction(-12.4) == "1/(10^12) of");
  CHECK(as_fraction(-INFINITY) == "nothing of");
  CHECK(as_fraction(NAN) == "NaN of");
}
