#include <translator/model/data.h>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <unordered_set>

#include <common/error.h>
#include <translator/model/files.h>
#include <translator/text/tokenizer.h>
#include <translator/text/vocabulary.h>

namespace translator {
namespace {

constexpr int kHeldOut = 1000;  // embedded validation and test sentences, each

Data embedded(const DataOptions& options) {
  CorpusOptions wanted{.train = static_cast<int>(options.corpus_size),
                       .valid = kHeldOut,
                       .test = kHeldOut,
                       .verb_final = options.verb_final};
  if (options.read.max_length > 0) wanted.max_length = static_cast<int>(options.read.max_length);
  Corpus corpus = generate_corpus(wanted);
  Data data{.train = std::move(corpus.train),
            .valid = std::move(corpus.valid),
            .embedded = true,
            .source_language = "English",
            .target_language = options.verb_final ? "verb-final French" : "French",
            .trained_on = {"embedded", kCorpusVersion, options.corpus_size,
                           static_cast<int64_t>(wanted.seed), wanted.max_length, options.verb_final}};
  data.given = std::ssize(data.train);
  data.probes = {held_out_pair(wanted), data.valid.at(0), data.valid.at(1)};
  return data;
}

// What is left would measure memory.
void drop_sources_of(const std::vector<SentencePair>& held_out, std::vector<SentencePair>& pairs) {
  std::unordered_set<std::string> held;
  for (const SentencePair& p : held_out) held.insert(join_tokens(p.source));
  std::erase_if(pairs, [&](const SentencePair& p) { return held.count(join_tokens(p.source)) > 0; });
}

// The weight and tag behind the = of an item; what is wrong with them, or "".
std::string take_weight_and_tag(CorpusFile& file, std::string_view text) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), file.weight);
  if (error != std::errc() || !(file.weight >= 0.001 && file.weight <= 1000))
    return "= must stand from 0.001 to 1000, how often an epoch goes through the file";
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return "";
  file.tag = text.substr(1);
  if (text[0] == ':' && Vocabulary::is_tag(file.tag)) return "";
  return "the weight may stand a tag, a word in angle brackets that is none of the vocabulary's own: 0.5:<bt>";
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return path == "-" || std::filesystem::exists(path, ignored);
}

CorpusFile corpus_file(const std::string& item) {
  const size_t equals = item.rfind('=');
  CorpusFile out{.path = item.substr(0, equals)};
  if (is_there(item) || equals == item.npos) return {.path = item};
  const std::string wrong = take_weight_and_tag(out, std::string_view(item).substr(equals + 1));
  if (wrong.empty()) return out;
  if (!is_there(out.path)) return {.path = item};  // it may be one with = in its name
  throw InputError("--data " + item, 0, "behind " + wrong);
}

// Standard input is read once; and a file of options may name one side without the other, which the command
// line refuses.
void must_be_sound(const DataOptions& o, const std::vector<CorpusFile>& files) {
  const bool piped = std::any_of(files.begin(), files.end(), [](const CorpusFile& f) { return f.path == "-"; });
  must_read_stdin_once({{"--data", piped ? "-" : ""},
                        {"--source", o.source},
                        {"--target", o.target},
                        {"--valid", o.valid},
                        {"--valid-source", o.valid_source},
                        {"--valid-target", o.valid_target}});
  auto needs = [](const char* option, const std::string& path, const char* other, const std::string& there) {
    if (!path.empty() && there.empty()) throw UsageError(fmt::format("{} requires {}", option, other));
  };
  needs("--source", o.source, "--target", o.target);
  needs("--target", o.target, "--source", o.source);
  needs("--valid-source", o.valid_source, "--valid-target", o.valid_target);
  needs("--valid-target", o.valid_target, "--valid-source", o.valid_source);
}

ParallelData read(const std::string& tsv, const std::string& source, const std::string& target,
                  const ReadOptions& options) {
  return tsv.empty() ? read_pairs(source, target, options) : read_pairs(tsv, options);
}

}  // namespace

Fields DataOptions::fields() {
  return {
      {"--data", Free{&data},
       "Training pairs, a TSV file: source TAB target; - is stdin. Several with commas between, each with how "
       "often an epoch goes through it, and a tag in front of its sources: a.tsv=3,b.tsv,bt.tsv=0.5:<bt>"},
      {"--source", Free{&source}, "Source sentences, one a line, instead of --data"},
      {"--target", Free{&target}, "Their translations, line by line"},
      {"--valid", Free{&valid},
       "Validation pairs, TSV (default: a twentieth of the data, at most 1000 pairs; none of fewer than 200)"},
      {"--valid-source", Free{&valid_source}, "Validation sources, one a line"},
      {"--valid-target", Free{&valid_target}, "Validation targets, one a line"},
      {"--swap", Switch{&read.swap_columns}, "The second column (or --target) is what is translated from"},
      {"--strict", Switch{&read.strict}, "Stop at the first bad line instead of leaving it out"},
      {"--max-length", Whole{&read.max_length, 1, 100000, kOrZero},
       "Leave out pairs with more words on a side (default: 50; 40 for the embedded corpus)"},
      {"--corpus-size", Whole{&corpus_size, 100, 2000000}, "Embedded training pairs"},
      {"--verb-final", Switch{&verb_final},
       "Embedded French in the order of a language that puts verbs last, see corpus --help"}};
}

std::vector<SentencePair> hold_out(std::vector<SentencePair>& pairs) {
  std::vector<SentencePair> out;
  if (pairs.size() < kFewestJudged) return out;
  size_t wanted = std::min<size_t>(1000, pairs.size() / 20);
  size_t every = pairs.size() / wanted;
  for (size_t i = 0; i < pairs.size() && out.size() < wanted; i += every) out.push_back(pairs[i]);
  drop_sources_of(out, pairs);
  return out;
}

std::vector<CorpusFile> corpus_files(const std::string& text) {
  if (is_there(text)) return {{.path = text}};
  std::vector<CorpusFile> out;
  for (size_t at = 0; at <= text.size();) {
    auto comma = [&](size_t from) { return std::min(text.find(',', from), text.size()); };
    auto file = [&](size_t end) { return corpus_file(text.substr(at, end - at)); };
    size_t end = comma(at);
    if (end == at) throw InputError("--data " + text, 0, "has no file between two commas, or at an end");
    // A comma may be part of a name, say of a directory's.
    for (size_t further = end; !is_there(file(end).path) && further < text.size();)
      if (further = comma(further + 1); is_there(file(further).path)) end = further;
    out.push_back(file(end));
    at = end + 1;
    if (std::count_if(out.begin(), out.end(), [](const CorpusFile& f) { return f.path == "-"; }) > 1)
      throw InputError("--data " + text, 0, "names standard input twice: it can be read once");
  }
  return out;
}

std::string absolute_corpus_files(const std::string& text) {
  if (text.empty()) return "";
  std::string out;
  for (const CorpusFile& file : corpus_files(text)) {
    out += (out.empty() ? "" : ",") + absolute_path(file.path);
    if (file.weight != 1 || !file.tag.empty())
      out += fmt::format("={}{}{}", file.weight, file.tag.empty() ? "" : ":", file.tag);
  }
  return out;
}

Data load_data(const DataOptions& options) {
  Data data;
  std::string first;                 // file
  std::vector<SentencePair> others;  // of files but that one
  const std::vector<CorpusFile> files =
      options.data.empty() ? std::vector<CorpusFile>(1) : corpus_files(options.data);
  must_be_sound(options, files);
  const bool has_valid = !options.valid.empty() || !options.valid_source.empty();
  auto report = [&](const ReadReport& r) {
    for (std::string& line : r.told()) data.reports.push_back(std::move(line));
    if (const std::string changed = r.changed.summary(); !changed.empty())
      data.reports.push_back("  " + changed);
  };
  if (options.embedded()) {
    data = embedded(options);
    if (!has_valid) return data;
    data.probes.resize(1);
  } else {
    if (!has_valid && !files[0].tag.empty())
      throw InputError(
          "--data", 0,
          "the first file's pairs are held out for validation, which is without tags: put one without "
          "a tag first, or name --valid");
    for (const CorpusFile& file : files) {
      ParallelData train = read(file.path, options.source, options.target, options.read);
      report(train.report);
      if (&file == &files[0]) first = train.report.name;
      for (SentencePair& p : train.pairs) {
        p.tag = file.tag;
        p.weight = file.weight;
        (&file == &files[0] ? data.train : others).push_back(std::move(p));
      }
    }
  }
  data.given = std::ssize(data.train) + std::ssize(others);
  if (has_valid) {
    ParallelData valid = read(options.valid, options.valid_source, options.valid_target, options.read);
    data.valid = std::move(valid.pairs);
    report(valid.report);
    if (data.valid.empty()) throw InputError(valid.report.name, 0, "has no usable sentence pairs");
  } else {
    data.valid = hold_out(data.train);
    drop_sources_of(data.valid, others);
    if (data.train.empty() && others.empty() && !data.valid.empty())
      throw InputError(options.name(), 0,
                       "has no pair whose source is not among those held out for validation: give --valid");
    if (data.valid.empty() && !(data.train.empty() && others.empty()))
      data.reports.push_back(fmt::format(
          "no pairs are held out of {} for validation, as of any fewer than {}: --valid names some", first,
          kFewestJudged));
    if (!data.valid.empty())
      data.reports.push_back(fmt::format("no validation data given: {} pair{} held out of the training data",
                                         data.valid.size(), data.valid.size() == 1 ? "" : "s"));
  }
  std::move(others.begin(), others.end(), std::back_inserter(data.train));
  const std::vector<SentencePair>& shown = data.valid.empty() ? data.train : data.valid;
  for (size_t i = 0; i < std::min<size_t>(3, shown.size()); ++i)
    data.probes.push_back(shown[i * std::max<size_t>(1, shown.size() / 3)]);
  return data;
}

std::vector<SentencePair> embedded_pairs(const std::string& split, int64_t count, CorpusOptions options) {
  auto wanted = [&](const char* part) { return split == part ? static_cast<int>(count) : 0; };
  options.train = wanted("train");
  options.valid = wanted("valid");
  options.test = wanted("test");
  Corpus corpus = generate_corpus(options);
  return std::move(split == "train" ? corpus.train : split == "valid" ? corpus.valid : corpus.test);
}

}  // namespace translator
