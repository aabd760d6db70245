#include <common/error.h>
#include <common/progress.h>
#include <common/tell.h>
#include <common/utf8.h>
#include <translator/commands/commands.h>
#include <translator/commands/doctor_report.h>
#include <translator/inference/evaluation.h>
#include <translator/model/files.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <numeric>
#include <sstream>

namespace translator {
namespace {

constexpr size_t kDoubted = 10;  // pairs that are shown of those a model believes least

// The whole of a file, or of standard input: it is read twice where it is to be cleaned.
std::istringstream whole(const std::string& path) {
  if (path != "-") return std::istringstream(read_file(path));
  std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  return std::istringstream(std::move(text));
}

std::string name_of_file(const std::string& path) { return path == "-" ? "standard input" : path; }

struct Texts {
  std::vector<std::istringstream> files;
  ParallelData data = {};
  std::vector<doctor::BadLine> bad = {};
};

Texts read_texts(const DoctorCommand& o) {
  Texts out;
  ReadOptions read = o.read;
  read.on_bad = [&](int64_t line, const std::string& reason) { out.bad.push_back({line, reason}); };
  out.files.push_back(whole(o.pairs));
  if (o.target.empty()) {
    out.data = read_pairs(out.files[0], name_of_file(o.pairs), read);
  } else {
    out.files.push_back(whole(o.target));
    out.data = read_pairs(out.files[0], name_of_file(o.pairs), out.files[1], name_of_file(o.target), read);
  }
  return out;
}

std::vector<doctor::Doubted> least_believed(const std::string& directory,
                                            const std::vector<SentencePair>& pairs, int threads) {
  const Model model = Model::load(directory);
  std::vector<size_t> numbers;
  std::vector<SentencePair> taken;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (model.length_fault(model.reads, pairs[i].source_text).empty() &&
        model.length_fault(model.writes, pairs[i].target_text).empty()) {
      numbers.push_back(i);
      taken.push_back(pairs[i]);
    }
  Progress bar("scoring", static_cast<int64_t>(taken.size()), {.unit = "sentences/s", .delay_seconds = 2});
  const auto losses =
      token_losses(model, encode(taken, model),
                   {.threads = threads, .on_progress = [&](int64_t done) { bar.update(done); }});
  bar.finish();
  std::vector<doctor::Doubted> out;
  for (size_t i = 0; i < losses.size(); ++i)
    out.push_back({numbers[i], std::exp(std::accumulate(losses[i].begin(), losses[i].end(), 0.0) /
                                        static_cast<double>(losses[i].size()))});
  const size_t shown = std::min(kDoubted, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<long>(shown), out.end(),
                    [](const auto& a, const auto& b) { return a.perplexity > b.perplexity; });
  out.resize(shown);
  return out;
}

}  // namespace

// Exit status 1: there are lines that are worth leaving out, or the sides do not go together at all.
int run(DoctorCommand& o) {
  apply(o.common);
  if (!o.clean.empty())
    for (const std::string& out : {o.clean, o.clean + ".rejected"})
      must_not_overwrite("--clean", out, {o.pairs, o.target, o.valid, o.test});
  must_read_stdin_once({{"pairs", o.pairs}, {"--target", o.target}, {"--valid", o.valid}, {"--test", o.test}});
  constexpr int64_t kStages = 7;
  int64_t done = 0;
  Progress bar("reading", kStages, {.delay_seconds = 2});
  auto stage = [&](const std::string& what) {
    bar.set_label(what);
    bar.update(++done);
  };
  Texts texts = read_texts(o);
  Data data{.train = std::move(texts.data.pairs), .valid = {}};
  if (data.train.empty()) {
    bar.finish();
    texts.data.report.tell();
    throw InputError(texts.data.report.name, 0, "has no usable sentence pairs");
  }
  doctor::ExamineOptions options{.max_words = o.max_length, .on_stage = stage};
  for (const std::string& path : {o.valid, o.test})
    if (!path.empty()) options.held_out.push_back({path, read_usable_pairs(path, o.read)});
  gradus::ThreadPool pool(o.common.threads);
  // What pairs tell, and what is learnt of their text: two threads' work, neither of which needs the other.
  TrainCommand defaults;
  defaults.common = o.common;
  defaults.train.quiet = true;
  defaults.data.data = texts.data.report.name;
  fill_text_defaults(defaults);
  Data learnt{.train = {}, .valid = {}};  // what train takes
  std::copy_if(data.train.begin(), data.train.end(), std::back_inserter(learnt.train),
               [&](const SentencePair& pair) { return !too_long(pair, o.max_length); });
  if (learnt.train.empty())
    throw InputError(texts.data.report.name, 0,
                     fmt::format("has no pair within --max-length {}", o.max_length));
  learnt.given = std::ssize(learnt.train);
  if (o.valid.empty()) {  // as train holds some out
    std::vector<SentencePair> held = hold_out(learnt.train);
    if (learnt.train.empty()) learnt.train = std::move(held);
  }
  fill_defaults(defaults, learnt);
  doctor::Examination found;
  LearntText text;
  gradus::ThreadPool both(std::min(2, o.common.threads));
  both.run([&](int worker) {
    if (worker == 0) found = examine(data.train, pool, options);
    if (worker == both.size() - 1) text = learn_text(defaults, learnt);
  });
  doctor::Report report{.name = utf8::printable(texts.data.report.name),
                        .lines = texts.data.report.lines,
                        .blank = texts.data.report.blank,
                        .pairs = data.train,
                        .bad = texts.bad,
                        .examination = found};
  if (!o.clean.empty()) {
    std::vector<std::string_view> whole_texts;
    for (const auto& file : texts.files) whole_texts.push_back(file.view());
    const doctor::Cleaned cleaned = clean(report, whole_texts);
    write_file(o.clean + ".rejected", cleaned.rejected);
    write_file(o.clean, cleaned.kept);
  }
  if (!o.model.empty()) report.doubted = least_believed(o.model, data.train, o.common.threads);
  report.outlook = doctor::look_ahead(defaults, learnt, text, o.seconds, stage);
  bar.finish();
  print_whole(o.json ? report.json() : report.text(terminal_style(1).width));
  return report.left_out() > 0 || found.hopeless ? 1 : 0;
}

}  // namespace translator
