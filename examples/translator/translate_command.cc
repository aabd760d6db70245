#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include <gradus/error.h>
#include <translator/commands.h>
#include <translator/model.h>
#include <translator/text/word_picture.h>
#include <translator/translation.h>
#include <common/error.h>
#include <common/heat_map.h>
#include <common/tell.h>
#include <common/terminal.h>
#include <common/json_text.h>
#include <common/utf8.h>

namespace translator {
namespace {

// Standard input line by line. Before it waits for more input it calls `before_wait`, so that what was read
// can be answered first: the program works as one end of a conversation, not only on files.
class LineReader {
 public:
  static constexpr size_t kLongest = 1 << 20;  // bytes of a line that are kept

  explicit LineReader(std::function<void()> before_wait) : before_wait_(std::move(before_wait)) {}

  // Of a line with more than kLongest bytes only the first ones.
  bool next(std::string& line) {
    for (;;) {
      size_t end = buffer_.find('\n', std::max(begin_, searched_));
      if (end != std::string::npos) {
        line.assign(buffer_, begin_, end - begin_);
        begin_ = end + 1;
        return true;
      }
      buffer_.erase(0, begin_);
      begin_ = 0;
      if (buffer_.size() > kLongest) buffer_.resize(kLongest + 1);
      searched_ = buffer_.size();
      pollfd input{0, POLLIN, 0};
      if (poll(&input, 1, 0) == 0) before_wait_();
      char chunk[1 << 16];
      ssize_t got = ::read(0, chunk, sizeof chunk);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw InputError("standard input", 0, fmt::format("cannot be read: {}", std::strerror(errno)));
      if (got == 0) {  // the last line may lack its end
        line = std::exchange(buffer_, {});
        return !line.empty();
      }
      buffer_.append(chunk, static_cast<size_t>(got));
    }
  }

 private:
  std::function<void()> before_wait_;
  std::string buffer_;
  size_t begin_ = 0, searched_ = 0;
};

class Translator {
 public:
  explicit Translator(TranslateCommand& o) : o_(o), model_(Model::load(o.model)) {
    apply(o.look, model_);
    generator_ = model_.network->generator();
    o.search.weights = o.map || o.alignments;
    o.search.beam_size = std::max(o.search.beam_size, o.n_best);
    o.search.scores = o.scores;
    if (o.map && !model_.network->attends()) tell("translator: this model has no attention to draw\n");
  }

  int sentence(const std::string& text) {
    Segmented source;
    if (auto fault = read(text, source); !fault.empty()) throw InputError("the sentence", 0, fault);
    tell_unknown("", source);
    print(source, translated({source})[0], 1);
    return 0;
  }

  // Standard input: one line (n_best lines) out for each line in, whatever is wrong with it.
  int lines(bool prompt) {
    // Line by line at a prompt; from a pipe, blocks of lines go through together, in order.
    const size_t block = prompt ? 1 : 256;
    if (prompt)
      tell("{} to {}. One sentence a line; Ctrl-D ends.\n", model_.config.source_language,
           model_.config.target_language);
    LineReader input([this] { flush(); });
    std::string text;
    for (;;) {
      if (prompt) fmt::print(stderr, "> ");
      if (!input.next(text)) break;
      ++read_;
      Segmented source;
      if (auto fault = read(text, source); !fault.empty()) {
        complain(read_, fault);
        source = {};
      }
      tell_unknown(InputError::locate("standard input", read_) + ": ", source);
      waiting_.push_back(std::move(source));
      if (waiting_.size() == block) flush();
    }
    flush();
    if (prompt) fmt::print(stderr, "\n");
    return code_;
  }

 private:
  // A line, split; what is returned says why it has nothing that can be translated.
  std::string read(const std::string& text, Segmented& source) const {
    if (text.size() > LineReader::kLongest) return fmt::format("has more than {} bytes", LineReader::kLongest);
    if (auto bad = utf8::describe_invalid_byte(text); !bad.empty()) return bad;
    source = model_.reads.split(text);
    return model_.length_fault(source.pieces.size());
  }

  // Words that the model reads as <unk>, each once.
  std::vector<std::string> unknown(const Segmented& source) const {
    std::vector<std::string> out;
    for (size_t i = 0; i < source.pieces.size(); ++i) {
      const std::string& word = source.words[static_cast<size_t>(source.word_of[i])];
      const bool known = model_.source.contains(source.pieces[i]);
      if (!known && std::find(out.begin(), out.end(), word) == out.end()) out.push_back(word);
    }
    return out;
  }

  void tell_unknown(const std::string& where, const Segmented& source) const {
    if (const auto words = unknown(source); !words.empty())
      tell("translator: {}unknown: {}\n", where, fmt::join(words, ", "));
  }

  std::vector<std::vector<Translation>> translated(const std::vector<Segmented>& sources) const {
    return translate(model_, *generator_, sources, o_.search, {.threads = o_.common.threads});
  }

  // At least `lines` lines, the missing ones empty: who counts them can tell which belong together.
  void print(const Segmented& source, const std::vector<Translation>& found, int64_t lines) const {
    int64_t n = source.pieces.empty() ? 0 : std::min<int64_t>(o_.n_best, static_cast<int64_t>(found.size()));
    for (int64_t i = 0; i < n; ++i) {
      const Translation& t = found[static_cast<size_t>(i)];
      const Segmented target = model_.writes.words_of(t.tokens);
      const WordPicture words = picture_of(source, target, t.weights);
      const WordPicture shown = o_.pieces ? picture_of_pieces(source, target, t.weights) : words;
      fmt::print("{}\n", o_.json ? json_of(source, t, words, shown) : text_of(source, t, words));
      if (o_.map && !o_.json) fmt::print("{}", draw_heat_map(shown, heat_map_options(terminal_style(1))));
    }
    for (int64_t i = n; i < lines; ++i) fmt::print("{}\n", o_.json ? "{\"translation\":null}" : "");
  }

  std::string text_of(const Segmented& source, const Translation& t, const WordPicture& words) const {
    std::string text = model_.writes.join(t.tokens);
    if (o_.scores) text += fmt::format("\t{:.4f}", t.log_probability);
    if (o_.alignments) text += "\t" + format_moses(links_of(words));
    const auto not_known = unknown(source);
    if (o_.scores && !not_known.empty()) text += fmt::format("\tunknown: {}", fmt::join(not_known, ", "));
    return text;
  }

  std::string json_of(const Segmented& source, const Translation& t, const WordPicture& words,
                      const WordPicture& shown) const {
    nlohmann::ordered_json j = {{"translation", model_.writes.join(t.tokens)},
                                {"source_words", source.words}};
    if (o_.scores) j["log_probability"] = t.log_probability;
    if (const auto not_known = unknown(source); !not_known.empty()) j["unknown"] = not_known;
    if (o_.alignments) j["alignment"] = format_moses(links_of(words));
    if (o_.map)
      j["attention"] = {{"source", shown.source}, {"target", shown.target}, {"weights", shown.weights}};
    return json_text::dump(j);
  }

  void complain(int64_t number, const std::string& fault) {
    tell("translator: {}: {}; an empty line stands for it\n", InputError::locate("standard input", number),
         fault);
    code_ = 1;
  }

  // Answers the lines that wait. Should they fail together, each is tried by itself, so that one costs no other
  // its translation.
  void flush() {
    if (waiting_.empty()) return;
    std::vector<std::vector<Translation>> found;
    try {
      found = translated(waiting_);
    } catch (const std::exception&) {
      int64_t number = read_ - static_cast<int64_t>(waiting_.size());
      for (const Segmented& source : waiting_) found.push_back(alone(++number, source));
    }
    for (size_t i = 0; i < waiting_.size(); ++i) print(waiting_[i], found[i], o_.n_best);
    std::fflush(stdout);
    waiting_.clear();
  }

  std::vector<Translation> alone(int64_t number, const Segmented& source) {
    try {
      return translated({source})[0];
    } catch (const gradus::Error& e) {
      complain(number, e.message());
    } catch (const std::bad_alloc&) {
      complain(number, "takes more memory than there is");
    } catch (const std::exception& e) {
      complain(number, e.what());
    }
    return {};
  }

  TranslateCommand& o_;
  Model model_;
  std::unique_ptr<gradus::nn::Generator> generator_;
  std::vector<Segmented> waiting_;  // the last of the lines that were read
  int64_t read_ = 0;
  int code_ = 0;
};

}  // namespace

int run(TranslateCommand& o) {
  apply(o.common);
  Translator translator(o);
  return o.sentence ? translator.sentence(*o.sentence) : translator.lines(isatty(0) && isatty(1));
}

}  // namespace translator
