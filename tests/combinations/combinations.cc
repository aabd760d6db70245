// Random combinations of what `translator translate` may be told, tiny models of every kind and lines that
// people and machines write: no crash, no hang, and as many answers as lines, in their order.
//
//   combinations COUNT [SEED]     of SEED, SEED + 1, ...; the first that goes wrong ends it, and is said
//
// Each runs the program's own main() in this process. A build for the search of mistakes:
//
//   meson setup build-asan -Db_sanitize=address,undefined -Dtogether=false
//   ninja -C build-asan tests/combinations/combinations && build-asan/tests/combinations/combinations 20000

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <common/json_text.h>
#include <gradus/random.h>

#include "../fuzzing/caught.h"
#include "../scratch.h"

#define main translator_main
#include "../../examples/translator/main.cc"
#undef main

namespace {

using Words = std::vector<std::string>;

struct Ended {
  int code;
  std::string out, err;
};

// The program with these arguments, and this as its standard input.
Ended run(Words arguments, const std::string& input = "") {
  {
    std::ofstream("input", std::ios::binary) << input;
    const int file = open("input", O_RDONLY);
    if (file < 0 || dup2(file, 0) < 0) throw std::runtime_error("standard input cannot be set");
    close(file);
  }
  arguments.insert(arguments.begin(), "translator");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  fuzzing::Caught caught;
  const int code = translator_main(static_cast<int>(arguments.size()), argv.data());
  return {code, caught.out(), caught.err()};
}

// Draws of one combination.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  bool once_in(uint64_t n) { return random_.next_u64() % n == 0; }
  size_t below(size_t n) { return random_.next_u64() % n; }
  const std::string& of(const Words& list) { return list[below(list.size())]; }

 private:
  gradus::Rng random_;
};

// ---- models ----

// Every kind that is decoded in a way of its own, with words and with pieces; of some a second one, and one in
// 8 bits.
const Words& models() {
  static const Words all = [] {
    const std::map<std::string, Words> kinds = {
        {"gru", {}},
        {"lstm", {"--cell", "lstm"}},
        {"rnn", {"--cell", "rnn"}},
        {"none", {"--attention", "none"}},
        {"general", {"--attention", "general", "--readout", "maxout"}},
        {"local", {"--attention", "local-p"}},
        {"normalised", {"--layer-norm"}},
        {"layers", {"--layers", "2", "--decoder-layers", "2"}},
        {"transformer", {"--model", "transformer", "--heads", "2", "--layers", "1", "--ffn", "8"}},
        {"learned",
         {"--model", "transformer", "--heads", "2", "--layers", "2", "--ffn", "8", "--positions", "learned"}},
    };
    auto must = [](const Words& arguments) {
      if (const Ended e = run(arguments); e.code != 0) throw std::runtime_error(e.err);
    };
    must({"corpus", "-n", "400", "--max-length", "8", "-o", "pairs.tsv"});
    Words out;
    for (const auto& [kind, options] : kinds)
      for (const bool pieces : {false, true})
        for (const char* seed : {"1", "2"}) {
          if (*seed == '2' && kind != "gru" && kind != "transformer") continue;
          if (pieces && !translator::Subwords::available()) continue;
          out.push_back(kind + (pieces ? "-pieces" : "-words") + (*seed == '2' ? "-2" : ""));
          Words arguments = {
              "train", "--shortlist", "--data",  "pairs.tsv", "--valid", "pairs.tsv",    "--threads",
              "1",     "--epochs",    "2",       "--seed",    seed,      "--embedding",  "8",
              "--out", out.back(),    "--quiet", "--lr",      "0.02",    "--max-length", "30"};
          if (kind != "transformer" && kind != "learned")
            arguments.insert(arguments.end(), {"--hidden", "8"});
          if (pieces)
            arguments.insert(arguments.end(), {"--subwords", "bpe", "--subword-size", "300"});
          else
            arguments.insert(arguments.end(), {"--subwords", "none", "--min-count", "1"});
          arguments.insert(arguments.end(), options.begin(), options.end());
          must(arguments);
        }
    for (const std::string& m : Words(out)) {
      if (m.ends_with("-2")) continue;
      must({"quantize", m, m + "-int8"});
      out.push_back(m + "-int8");
    }
    return out;
  }();
  return all;
}

std::string drawn_models(Chance& c) {
  std::string text = c.of(models());
  if (!c.once_in(4)) return text;
  // Two or three together: of one vocabulary where it is to succeed.
  for (size_t n = 1 + c.below(2); n > 0; --n) {
    std::string other = c.of(models());
    if (!c.once_in(4)) {
      const bool pieces = text.find("-pieces") != text.npos;
      Words fitting;
      for (const std::string& m : models())
        if ((m.find("-pieces") != m.npos) == pieces) fitting.push_back(m);
      other = c.of(fitting);
    }
    text += "," + other + c.of({"", "", "=2", "=0.001", "=0.5"});
  }
  return text;
}

// ---- lines ----

std::string drawn_line(Chance& c) {
  static const Words sentences = [] {
    Words out;
    std::ifstream file("pairs.tsv");
    for (std::string line; std::getline(file, line) && out.size() < 200;)
      out.push_back(line.substr(0, line.find('\t')));
    return out;
  }();
  switch (c.below(16)) {
    case 0: return "";
    case 1: return c.of({" ", "\t", "\r", "   \t ", "\xC2\xA0", "\xE2\x80\x8B"});
    case 2: return c.of({"<p>", "</seg>", "<doc id=\"1\">", "<p> he sings", "&nbsp;", "|||", "a | b ||| c"});
    case 3:
      return c.of(
          {"\xFF", "he \xC3( sings", std::string("he\0sings", 8), "\xED\xA0\x80", "\xF4\x90\x80\x80"});
    case 4:
      return c.of(
          {"Привет, мир.", "今日は。元気ですか？", "नमस्ते। आप कैसे हैं?", "😀🏽 ok", "\u202Ehe sings"});
    case 5: {
      std::string many;
      for (size_t n = 1 + c.below(40); n > 0; --n) many += c.of(sentences) + c.of({" ", ". ", "! ", "  "});
      return many;
    }
    case 6: return std::string(1 + c.below(300), c.once_in(2) ? 'a' : '7');
    case 7: return c.of(sentences) + "\t" + c.of({"", "il", "elle chante", "xyzzy", "\t", "il\til"});
    case 8: return c.of(sentences) + "\r";
    default: return c.of(sentences);
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// ---- options ----

// Each option with values that it may have, and now and then one that it may not.
const std::map<std::string, Words>& options_of_search() {
  static const std::map<std::string, Words> all = {
      {"-k", {"1", "2", "3", "5", "8", "0"}},
      {"--length-penalty", {"0", "0.6", "1", "average", "100", "nan"}},
      {"--coverage-penalty", {"0", "0.2", "5"}},
      {"--min-length", {"0", "1", "4", "50"}},
      {"--no-repeat-ngram", {"1", "2", "3", "20", "0"}},
      {"--exact-stop", {}},
      {"--prefix", {"il", "elle chante", "Il", "xyzzy", " ", "il il il il il il il il"}},
      {"--forbid", {"il", "elle", "ne", "il chante", "xyzzy", ".", ""}},
      {"--require", {"il", "elle chante", "xyzzy", "les pommes"}},
      {"--alternatives", {}},
      {"--prefix-column", {}},
      {"--paragraphs", {}},
      {"--top-k", {"1", "2", "100"}},
      {"--last-only", {}},
      {"--max-length", {"1", "2", "5", "40"}},
      {"--n-best", {"1", "2", "3", "5"}},
      {"--attention-map", {}},
      {"--pieces", {}},
      {"--scores", {}},
      {"--alignments", {}},
      {"--json", {}},
      {"--moses", {}},
      {"--threads", {"1", "2", "3"}},
      {"--int8", {}},
      {"--ensemble", {"probability", "log-probability"}},
      {"--shortlist", {"0", "0.5", "0.99", "1"}},
  };
  return all;
}
const std::map<std::string, Words>& options_of_sampling() {
  static const std::map<std::string, Words> all = {
      {"--seed", {"1", "2", "18446744073709551615"}},
      {"--temperature", {"0.1", "1", "3", "1e-300", "1000000"}},
      {"--sample-top-k", {"1", "2", "10", "1000000"}},
      {"--top-p", {"0.1", "0.9", "1", "0.000001"}},
      {"--min-p", {"0", "0.05", "1"}},
      {"--mbr", {"chrf", "bleu"}},
      {"--samples", {"2", "5", "12"}},
  };
  return all;
}

struct Combination {
  Words arguments;
  std::vector<std::string> lines;
  std::string input;
  std::optional<std::string> sentence;

  bool has(const std::string& option) const {
    return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
  }
  int64_t number(const std::string& option, int64_t otherwise) const {
    const auto at = std::find(arguments.begin(), arguments.end(), option);
    return at == arguments.end() ? otherwise : std::stoll(*(at + 1));
  }
  std::string told() const {
    return fmt::format("translator {}\ninput: {}", fmt::join(arguments, " "),
                       nlohmann::json(input).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
};

Combination drawn(Chance& c) {
  Combination out;
  out.arguments = {"translate", drawn_models(c)};
  if (c.once_in(10)) {
    do out.sentence = drawn_line(c);
    while (out.sentence->find('\0') != std::string::npos);
    out.arguments.push_back(*out.sentence);
  } else {
    for (size_t n = c.below(8); n > 0; --n) out.lines.push_back(drawn_line(c));
    for (const std::string& line : out.lines) out.input += line + "\n";
    // The last line may lack its end; an empty one is none then.
    if (!out.lines.empty() && !out.lines.back().empty() && c.once_in(4)) out.input.pop_back();
  }
  auto add = [&](const std::map<std::string, Words>& options, uint64_t rarely) {
    for (const auto& [option, values] : options) {
      if (!c.once_in(rarely)) continue;
      out.arguments.push_back(option);
      if (!values.empty()) out.arguments.push_back(c.of(values));
    }
  };
  add(options_of_search(), 12);
  if (c.once_in(3)) {
    out.arguments.push_back("--sample");
    add(options_of_sampling(), 3);
  } else if (c.once_in(20)) {
    add(options_of_sampling(), 4);  // which says what they lack
  }
  return out;
}

// ---- what must hold ----

void must(bool holds, const std::string& rule) {
  if (!holds) throw std::runtime_error(rule);
}

// Answers with the numbers of the sentences that they are of.
void check_numbers(const std::vector<int64_t>& numbers, size_t lines, int64_t most) {
  std::map<int64_t, int64_t> times;
  for (int64_t n : numbers) {
    must(n >= 0 && n < static_cast<int64_t>(lines), "an answer is of a line that is there");
    must(++times[n] <= most, "no line has more answers than were asked for");
  }
  must(std::is_sorted(numbers.begin(), numbers.end()), "answers stand in the order of the lines");
}

// Texts are equal, scores to float's rounding: cells without packed weights are multiplied by a product that
// sums otherwise with other numbers of rows.
bool same_answers(const Words& a, const Words& b) {
  auto number = [](const std::string& s) {
    char* end = nullptr;
    const double value = std::strtod(s.c_str(), &end);
    return end != s.c_str() && *end == 0 ? std::optional(value) : std::nullopt;
  };
  auto fields = [](const Words& lines) {
    std::string all = fmt::format("{}", fmt::join(lines, "\n"));
    std::replace(all.begin(), all.end(), '\n', '\t');
    Words out;
    for (size_t from = 0, tab; from <= all.size(); from = tab + 1) {
      tab = std::min(all.find('\t', from), all.size());
      out.push_back(all.substr(from, tab - from));
    }
    return out;
  };
  return a.size() == b.size() && std::ranges::equal(fields(a), fields(b), [&](const auto& x, const auto& y) {
           const auto u = number(x), v = number(y);
           return x == y || (u && v && std::abs(*u - *v) <= 1e-4 + 1e-6 * std::abs(*u));
         });
}

void check(const Combination& c, const Ended& e, Chance& chance) {
  must(e.code == 0 || e.code == 1 || e.code == 2, fmt::format("exit status {}", e.code));
  must(e.code == 0 || !e.err.empty(), "what is wrong is said");
  const bool refused = e.code == 2 || (e.code == 1 && e.err.find("standard input:") == e.err.npos);
  if (refused) return must(e.out.empty(), "who is refused gets no answer");
  const size_t lines = c.sentence ? 1 : c.lines.size();
  const int64_t n_best = c.number("--n-best", 1);
  const std::vector<std::string> out = lines_of(e.out);
  std::vector<int64_t> numbers;
  if (c.has("--json")) {
    for (const std::string& line : out) numbers.push_back(json_text::parse(line).at("sentence"));
    check_numbers(numbers, lines, n_best);
    must(std::set(numbers.begin(), numbers.end()).size() == lines, "each line has an answer, if only null");
  } else if (c.has("--moses")) {
    for (const std::string& line : out) numbers.push_back(std::stoll(line));
    check_numbers(numbers, lines, n_best);
  } else if (!c.has("--attention-map")) {
    // By line: its number stands in front where it may have several answers.
    std::vector<Words> answers(lines);
    for (size_t k = 0; k < out.size(); ++k) {
      const size_t tab = n_best > 1 ? out[k].find('\t') : out[k].npos;
      must(n_best == 1 || tab != out[k].npos, "one of several answers has its line's number");
      numbers.push_back(n_best > 1 ? std::stoll(out[k]) : static_cast<int64_t>(k));
      if (numbers.back() >= 0 && numbers.back() < static_cast<int64_t>(lines))
        answers[static_cast<size_t>(numbers.back())].push_back(n_best > 1 ? out[k].substr(tab + 1) : out[k]);
    }
    check_numbers(numbers, lines, n_best);
    for (const Words& own : answers) must(!own.empty(), "each line has an answer, if only an empty one");
    // A line says the same alone as among the others, whose random words depend on their number.
    if (c.sentence || lines < 2 || c.has("--sample") || !chance.once_in(4)) return;
    const size_t i = chance.below(lines);
    const Ended alone = run(c.arguments, c.lines[i] + "\n");
    Words own = lines_of(alone.out);
    for (std::string& line : own) line.erase(0, n_best > 1 ? line.find('\t') + 1 : 0);
    must(same_answers(own, answers[i]),
         fmt::format("line {} alone: {}\namong others: {}", i + 1, alone.out, fmt::join(answers[i], "\n")));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "combinations COUNT [SEED]\n");
    return 2;
  }
  const long long count = std::atoll(argv[1]), first = argc > 2 ? std::atoll(argv[2]) : 1;
  const std::filesystem::path here = std::filesystem::current_path();
  const scratch::Directory scratch;
  std::filesystem::current_path(scratch.path());
  int code = 0;
  long long refused = 0, done = 0;
  try {
    const size_t of = models().size();
    fmt::print("{} models\n", of);
    for (; done < count && code == 0; ++done) {
      const uint64_t seed = static_cast<uint64_t>(first + done);
      Chance chance(seed);
      const Combination c = drawn(chance);
      // A sanitizer, or the alarm, ends the program at once: what it was about stands here.
      std::ofstream((here / "last-combination.txt").string()) << "seed " << seed << "\n" << c.told() << "\n";
      alarm(120);
      Ended ended{};
      try {
        ended = run(c.arguments, c.input);
        check(c, ended, chance);
        refused += ended.code == 2 || (ended.code == 1 && ended.out.empty());
      } catch (const std::exception& e) {
        fmt::print(stderr, "seed {}: {}\n{}\nexit status {}\n{}{}", seed, e.what(), c.told(), ended.code,
                   ended.out, ended.err);
        code = 1;
      }
      alarm(0);
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    code = 1;
  }
  std::filesystem::current_path(here);
  if (code == 0) {
    std::filesystem::remove("last-combination.txt");
    fmt::print("{} combinations, of which {} were refused\n", done, refused);
  }
  return code;
}
