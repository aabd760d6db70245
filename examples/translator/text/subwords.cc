#include <translator/text/subwords.h>

#include <common/error.h>
#include <common/fnv1a.h>
#include <common/progress.h>
#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <thread>
#include <unordered_map>

#ifdef HAVE_SENTENCEPIECE
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#endif

namespace translator {

std::string text_of_piece(std::string_view piece) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (piece.size() == 6 && piece.starts_with("<0x") && piece[5] == '>' && digit(piece[3]) >= 0 &&
      digit(piece[4]) >= 0)
    return std::string(1, static_cast<char>(digit(piece[3]) * 16 + digit(piece[4])));
  constexpr std::string_view kSpace = "\u2581";
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const size_t end = std::min(piece.find(kSpace, at), piece.size());
    out += piece.substr(at, end - at);
    if (end < piece.size()) out += ' ';
    at = end + (end < piece.size() ? kSpace.size() : 0);
  }
  return out;
}

std::string Subwords::checksum() const {
  Fnv1a sum;
  for (char c : bytes_) sum.mix(static_cast<unsigned char>(c));
  return fmt::format("{:016x}", sum.hash);
}

#ifdef HAVE_SENTENCEPIECE

namespace {

namespace sp = sentencepiece;

constexpr int64_t kBytes = 256;

class WordIterator final : public sp::SentenceIterator {
 public:
  explicit WordIterator(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sp::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_;
  size_t at_ = 0;
};

// The words as SentencePiece reads them, with their counts. Every character of the text becomes a piece, so
// that those for which there is no room, if as many longer pieces are to find some, are taken out; the rarest
// go.
std::vector<std::string> lines_of(const TokenCounts& words, int64_t size) {
  std::map<char32_t, int64_t> counts;
  for (const auto& [word, times] : words.all())
    for (char32_t c : utf8::decode_lossy(word)) counts[c] += times;
  std::vector<std::pair<int64_t, char32_t>> by_count;
  for (const auto& [c, count] : counts) by_count.emplace_back(-count, c);
  std::sort(by_count.begin(), by_count.end());
  const auto room = static_cast<size_t>(std::max<int64_t>(1, (size - kBytes - Vocabulary::kSpecials) / 2));
  for (size_t i = room; i < by_count.size(); ++i) counts.erase(by_count[i].second);
  std::vector<std::string> lines;
  for (const auto& [word, count] : words.all()) {
    std::u32string code = utf8::decode_lossy(word);
    if (by_count.size() > room) std::erase_if(code, [&](char32_t c) { return !counts.contains(c); });
    // The library takes no longer words; they can be spelt in other pieces.
    if (!code.empty() && code.size() <= 0xFFFF)
      lines.push_back(fmt::format("{}\t{}", utf8::encode(code), count));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Shows that something is going on while f does what tells nothing of its progress.
template <class F>
auto with_bar(const std::string& label, bool quiet, const F& f) {
  Progress bar(label, 0, {.delay_seconds = 2, .quiet = quiet});
  auto result = std::async(std::launch::async, f);
  while (result.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) bar.update(0);
  return result.get();
}

}  // namespace

struct Subwords::Model {
  sp::SentencePieceProcessor processor;
  bool unigram = false;
  // Most words of a text come often: their pieces are looked up. Shared by threads.
  mutable std::shared_mutex lock = {};
  mutable std::unordered_map<std::string, std::vector<std::string>> known = {};
};

bool Subwords::available() { return true; }

Subwords::Subwords(std::string bytes, const std::string& name) : bytes_(std::move(bytes)), name_(name) {
  auto model = std::make_shared<Model>();
  sp::SentencePieceProcessor& p = model->processor;
  if (!p.LoadFromSerializedProto(bytes_).ok())
    throw InputError(name, 0, "is no SentencePiece model, or damaged");
  const bool ours = p.unk_id() == Vocabulary::kUnknown && p.pad_id() == Vocabulary::kPadding &&
                    p.bos_id() == Vocabulary::kBegin && p.eos_id() == Vocabulary::kEnd &&
                    p.GetPieceSize() > kBytes + Vocabulary::kSpecials && p.IsByte(Vocabulary::kSpecials);
  if (!ours)
    throw InputError(name, 0,
                     "is a SentencePiece model of other conventions: <unk>, <pad>, <s>, </s> must be its "
                     "first pieces and the 256 bytes the next");
  // Damage to the switches for spaces shows in what it does alone.
  for (const char* text : {" a  b", "a"}) {
    std::vector<int> ids;
    std::vector<std::string> pieces;
    std::string again;
    const bool done = p.Encode(text, &ids).ok() && p.Encode(text, &pieces).ok() && p.Decode(ids, &again).ok();
    if (!done || again != text || pieces.empty() || pieces[0].starts_with("\u2581") != (*text == ' '))
      throw InputError(name, 0, "is damaged, or a SentencePiece model that changes spaces");
  }
  float ignored = 0;
  model->unigram = p.CalculateEntropy("a", 1, &ignored).ok();  // of what else it is not defined
  model_ = std::move(model);
}

Subwords Subwords::learn(const TokenCounts& words, const SubwordOptions& options) {
  std::vector<std::string> lines = lines_of(words, options.size);
  if (lines.empty()) throw InputError("training data", 0, "has no words to learn pieces from");
  const std::string label = fmt::format("learning the pieces of {} words", lines.size());
  WordIterator iterator(std::move(lines));
  std::string bytes;
  const auto status = with_bar(label, options.quiet, [&] {
    return sp::SentencePieceTrainer::Train(
        {{"model_type", options.type},
         {"vocab_size", std::to_string(options.size)},
         {"hard_vocab_limit", "false"},  // a small text has fewer
         {"character_coverage", "1.0"},
         {"byte_fallback", "true"},
         {"input_format", "tsv"},
         {"max_sentence_length", "100000000"},
         // What is read is normalised and cut into words before, and a word brings its space along.
         {"split_by_unicode_script", "false"},
         {"split_by_number", "false"},
         {"normalization_rule_name", "identity"},
         {"add_dummy_prefix", "false"},
         {"remove_extra_whitespaces", "false"},
         {"unk_id", std::to_string(Vocabulary::kUnknown)},
         {"pad_id", std::to_string(Vocabulary::kPadding)},
         {"bos_id", std::to_string(Vocabulary::kBegin)},
         {"eos_id", std::to_string(Vocabulary::kEnd)},
         {"num_threads", "1"},  // sums of more would round otherwise
         {"minloglevel", "2"}},
        &iterator, &bytes);
  });
  if (!status.ok())
    throw InputError("training data", 0,
                     fmt::format("gives no {} pieces of kind {}: SentencePiece says: {}", options.size,
                                 options.type, utf8::printable(status.ToString())));
  return Subwords(std::move(bytes), "the new SentencePiece model");
}

Subwords Subwords::load(const std::string& path) {
  if (std::error_code no; std::filesystem::is_directory(path, no)) throw InputError(path, 0, "is a directory");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return Subwords(std::move(bytes), path);
}

Vocabulary Subwords::vocabulary() const {
  std::stringstream lines;
  for (int id = 0; id < model_->processor.GetPieceSize(); ++id)
    lines << model_->processor.IdToPiece(id) << '\n';
  return Vocabulary::load(lines, name_);
}

std::vector<std::string> Subwords::split(const std::string& word) const {
  constexpr size_t kKnown = 1 << 17;  // words
  {
    std::shared_lock guard(model_->lock);
    if (auto found = model_->known.find(word); found != model_->known.end()) return found->second;
  }
  std::vector<std::string> out;
  if (!model_->processor.Encode(word, &out).ok()) throw InputError("text", 0, "cannot be split into pieces");
  std::lock_guard guard(model_->lock);
  if (model_->known.size() < kKnown && word.size() < 100) model_->known.emplace(word, out);
  return out;
}

std::vector<std::string> Subwords::sample(const std::string& word, double probability) const {
  std::vector<std::string> out;
  // bpe reads only the last number, as its dropout; unigram takes it for the weight of the scores.
  const auto alpha = static_cast<float>(model_->unigram ? 1 - probability : probability);
  if (!model_->processor.SampleEncode(word, 64, alpha, &out).ok())
    throw InputError("text", 0, "cannot be split into pieces at random");
  return out;
}

// SentencePiece seeds the generator of a thread when that first draws, and never again.
void Subwords::seeded(uint64_t seed, const std::function<void()>& f) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      sp::SetRandomGeneratorSeed(static_cast<unsigned>(seed ^ (seed >> 32)));
      f();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

#else

struct Subwords::Model {};

namespace {

[[noreturn]] void no_library(const std::string& what) {
  throw InputError(what, 0,
                   "needs SentencePiece, which this build lacks: install libsentencepiece-dev and build "
                   "again, or train with --subwords none");
}

}  // namespace

bool Subwords::available() { return false; }
Subwords::Subwords(std::string bytes, const std::string& name) : bytes_(std::move(bytes)), name_(name) {}
Subwords Subwords::learn(const TokenCounts&, const SubwordOptions&) { no_library("--subwords"); }
Subwords Subwords::load(const std::string& path) { no_library(path); }
Vocabulary Subwords::vocabulary() const { return {}; }
std::vector<std::string> Subwords::split(const std::string&) const { return {}; }
std::vector<std::string> Subwords::sample(const std::string&, double) const { return {}; }
void Subwords::seeded(uint64_t, const std::function<void()>&) {}

#endif

}  // namespace translator
