// Sums and dates, read and written character by character: "12+345" becomes "357", and "the 3rd of May 1998"
// becomes "1998-05-03". Encoder, decoder and attention are those of Bahdanau et al. 2014 (arXiv:1409.0473).
//
// What it shows: a translator needs no words. Where it looks can be read like a working: at the digits of one
// place of both numbers for each digit of a sum, and for dates wherever the form has put year, month and day.
// Numbers and dates of the test are not among those that are learned. Without attention (--attention none) one
// vector has to carry the question; it can for numbers as short as these, but nobody sees how.
//
//   gallery-sums_and_dates --task sums --attention none
//
//   h_j = GRU forward and backward over the question     e_tj = v . tanh(W1 s_{t-1} + W2 h_j)
//   a_t = softmax_j(e_t)     c_t = sum_j a_tj h_j        s_t = GRU([y_{t-1} ; c_t], s_{t-1})
//   p(y_t | y_1 .. y_{t-1}, question) = softmax(W tanh(W_r [s_t ; c_t ; y_{t-1}] + b_r) + b)

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <common/heat_map.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <translator/model/batches.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kUnits = 64, kBatch = 64, kTest = 500, kReports = 12;
constexpr double kRate = 0.005, kLargestNorm = 1;  // Adam's, which falls to 0; of a gradient

struct Settings {
  std::string task = "sums", attention = "bahdanau";
  int64_t updates = 5000;
};

struct Pair {
  std::string question, answer;
  std::string held;  // what the test has and training has not: the two numbers, or the date
};

constexpr std::array kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                "July",    "August",   "September", "October", "November", "December"};

std::string ordinal(int64_t day) {
  const bool own = day / 10 != 1 && day % 10 >= 1 && day % 10 <= 3;
  return fmt::format("{}{}", day, own ? std::array{"st", "nd", "rd"}[day % 10 - 1] : "th");
}

int64_t days_of(int64_t year, int64_t month) {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// Numbers of one to three digits, each length equally often.
Pair sum_of(Rng& rng) {
  auto number = [&] {
    const int64_t digits = rng.below(3), least = digits == 0 ? 0 : digits == 1 ? 10 : 100;
    return least + rng.below((digits == 0 ? 10 : 10 * least) - least);
  };
  const int64_t a = number(), b = number();
  return {fmt::format("{}+{}", a, b), fmt::format("{}", a + b),
          fmt::format("{}+{}", std::min(a, b), std::max(a, b))};
}

// A day of the years 1900 to 2099 in one of six forms.
Pair date(Rng& rng) {
  const int64_t year = 1900 + rng.below(200), month = 1 + rng.below(12),
                day = 1 + rng.below(days_of(year, month));
  const std::string name = kMonths[month - 1], nth = ordinal(day);
  const std::vector<std::string> forms = {
      fmt::format("the {} of {} {}", nth, name, year), fmt::format("{} {}, {}", name, day, year),
      fmt::format("{} {} {}", day, name, year),        fmt::format("{} {}, {}", name.substr(0, 3), nth, year),
      fmt::format("{}.{}.{}", day, month, year),       fmt::format("{} the {} of {}", year, nth, name)};
  const std::string answer = fmt::format("{}-{:02}-{:02}", year, month, day);
  return {forms[rng.below(std::ssize(forms))], answer, answer};
}

// Characters are words behind the four special ones (nn::SpecialId), those of answers first.
const std::string kCharacters = "0123456789-+., abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int64_t kSpecial = 4, kAnswers = kSpecial + 11;

std::vector<int32_t> ids_of(const std::string& text) {
  std::vector<int32_t> ids;
  for (char c : text) ids.push_back(static_cast<int32_t>(kSpecial + kCharacters.find(c)));
  return ids;
}

std::string text_of(const std::vector<int32_t>& ids) {
  std::string text;
  for (int32_t id : ids) text += id < kSpecial ? '?' : kCharacters[id - kSpecial];
  return text;
}

nn::Seq2SeqBatch batch_of(const std::vector<Pair>& pairs) {
  std::vector<translator::EncodedPair> encoded;
  for (const Pair& pair : pairs) {
    encoded.push_back({ids_of(pair.question), ids_of(pair.answer)});
    encoded.back().source.push_back(nn::kEos);
  }
  std::vector<size_t> all(pairs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return translator::make_batch(encoded, all);
}

// What the model writes, greedily.
std::vector<nn::Hypothesis> answers(const nn::Seq2Seq& model, const std::vector<Pair>& pairs) {
  const nn::Seq2SeqBatch all = batch_of(pairs);
  std::vector<nn::Hypothesis> out;
  for (auto& best : nn::translate(model, all.source, all.source_lengths, {.max_length = 12, .weights = true}))
    out.push_back(best[0]);
  return out;
}

double share_right(const std::vector<Pair>& pairs, const std::vector<nn::Hypothesis>& said) {
  double right = 0;
  for (size_t i = 0; i < pairs.size(); ++i) right += text_of(said[i].tokens) == pairs[i].answer;
  return right / static_cast<double>(pairs.size());
}

// Question across, answer down; "." ends both.
std::string picture(const std::string& question, const nn::Hypothesis& said) {
  auto letters = [](const std::string& text) {
    std::vector<std::string> out;
    for (char c : text + '.') out.emplace_back(c == ' ' ? "_" : std::string(1, c));
    return out;
  };
  std::vector<std::string> across = letters(question), down = letters(text_of(said.tokens));
  down.resize(said.weights.size());  // one that was cut off has no end
  std::vector<float> weights;
  for (const std::vector<float>& row : said.weights)
    weights.insert(weights.end(), row.begin(), row.begin() + std::ssize(across));
  translator::HeatMapOptions options = heat_map_options(translator::terminal_style(1));
  options.header = translator::HeatMapOptions::Header::vertical;
  return draw_heat_map({std::ssize(down), std::ssize(across), weights}, across, down, options);
}

void learn(const gallery::Program& program, const Settings& s) {
  Rng rng(program.seed), drawn = rng.split(1);
  auto draw = s.task == "sums" ? sum_of : date;
  std::vector<Pair> test;
  std::set<std::string> held;
  while (std::ssize(test) < kTest) held.insert(test.emplace_back(draw(drawn)).held);
  nn::Seq2SeqConfig config{.source_vocabulary = kSpecial + std::ssize(kCharacters)};
  config.target_vocabulary = kAnswers, config.attention = s.attention;
  config.embedding_dim = config.hidden_size = kUnits;
  nn::Seq2Seq model(config, rng);
  nn::Adam adam;
  program.say("{} parameters, {} questions of the test\n\n  learned    loss    right\n",
              nn::num_parameters(model), kTest);
  double right = 0;
  std::vector<nn::Hypothesis> said;
  for (int64_t done = 0, report = 1; right < 1 && report <= kReports; ++report) {
    double loss = 0;
    int64_t since = 0;
    for (; done < report * s.updates / kReports; ++done, ++since) {
      std::vector<Pair> pairs;
      while (std::ssize(pairs) < kBatch)
        if (Pair pair = draw(drawn); !held.contains(pair.held)) pairs.push_back(std::move(pair));
      Var batch_loss = model.loss(batch_of(pairs)).loss;
      Gradients grads = backward(batch_loss);
      adam.set_lr(kRate * (1 - static_cast<double>(done) / static_cast<double>(s.updates)));
      adam.step(model, grads, nn::clip_factor(nn::grad_norm(grads), kLargestNorm));
      loss += batch_loss.item();
    }
    loss /= static_cast<double>(since);
    said = answers(model, test);
    right = share_right(test, said);
    program.say("{:>9} {:>7.4f} {:>6.1f} %   {} is {}\n", done * kBatch, loss, 100 * right,
                test[report].question, text_of(said[report].tokens));
    program.event("test", {{"learned", done * kBatch}, {"loss", loss}, {"right", right}});
  }
  if (model.attends()) program.say("\n{}", picture(test[0].question, said[0]));
  program.event("result", {{"right", right}, {"parameters", nn::num_parameters(model)}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-sums_and_dates",
                           "Sums and dates, character by character, with attention.");
  Settings s;
  std::vector<std::string> attentions = nn::attention_names();
  *std::find(attentions.begin(), attentions.end(), "oracle") = "none";  // there are no gold links
  program.option("--task", s.task, "Questions").one_of({"sums", "dates"}).show_default();
  program.option("--attention", s.attention, "Of the decoder").one_of(attentions).show_default();
  program.option("--updates", s.updates, "Of 64 questions; it ends when all of the test is right")
      .range(kReports, 1000000)
      .show_default();
  return program.run(argc, argv, [&] {
    if (program.quick) s.updates = std::min<int64_t>(s.updates, 250);
    learn(program, s);
  });
}
