#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

#include <translator/commands.h>
#include <translator/model.h>
#include <translator/text/error.h>
#include <translator/text/heat_map.h>
#include <translator/text/terminal.h>
#include <translator/text/tokenizer.h>
#include <translator/text/utf8.h>

namespace translator {
namespace {

class Printer {
 public:
  Printer(const Model& model, const TranslateCommand& o)
      : model_(model), options_(o), style_(terminal_style(1)) {}

  // At least `lines` lines, the missing ones empty: who reads them can tell by counting which belong
  // together.
  void print(const std::vector<std::string>& source, const std::vector<Translation>& found,
             int64_t lines) const {
    int64_t n = source.empty() ? 0 : std::min<int64_t>(options_.n_best, static_cast<int64_t>(found.size()));
    for (int64_t i = 0; i < n; ++i) {
      const Translation& t = found[static_cast<size_t>(i)];
      std::string text = readable(model_, t.tokens);
      if (options_.scores) text += fmt::format("\t{:.4f}", t.log_probability);
      if (options_.alignments) text += "\t" + format_moses(links(source, t));
      fmt::print("{}\n", text);
      if (options_.map) draw(source, t);
    }
    for (int64_t i = n; i < lines; ++i) fmt::print("\n");
  }

 private:
  static std::vector<float> flat(const Translation& t, size_t columns, size_t rows) {
    std::vector<float> out;
    for (size_t r = 0; r < rows; ++r)
      out.insert(out.end(), t.weights[r].begin(), t.weights[r].begin() + static_cast<long>(columns));
    return out;
  }

  static Links links(const std::vector<std::string>& source, const Translation& t) {
    if (t.weights.size() < t.tokens.size()) return {};
    std::vector<float> w = flat(t, source.size(), t.tokens.size());
    return links_from_attention(
        {static_cast<int64_t>(t.tokens.size()), static_cast<int64_t>(source.size()), w});
  }

  void draw(const std::vector<std::string>& source, const Translation& t) const {
    if (t.weights.size() < t.tokens.size() || t.weights.empty()) return;
    std::vector<std::string> columns = source, rows = t.tokens;
    columns.push_back("</s>");
    if (t.weights.size() > rows.size()) rows.push_back("</s>");
    std::vector<float> w = flat(t, columns.size(), rows.size());
    fmt::print("{}",
               draw_heat_map({static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()), w},
                             columns, rows, heat_map_options(style_)));
  }

  const Model& model_;
  const TranslateCommand& options_;
  TerminalStyle style_;
};

// Standard input line by line. Before it waits for more input it calls `before_wait`, so that what was read
// can be answered first: the program works as one end of a conversation, not only on files.
class LineReader {
 public:
  explicit LineReader(std::function<void()> before_wait) : before_wait_(std::move(before_wait)) {}

  bool next(std::string& line) {
    for (;;) {
      size_t end = buffer_.find('\n', begin_);
      if (end != std::string::npos) {
        line.assign(buffer_, begin_, end - begin_);
        begin_ = end + 1;
        return true;
      }
      buffer_.erase(0, begin_);
      begin_ = 0;
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
  size_t begin_ = 0;
};

std::vector<std::string> tokens_of(const Model& model, const std::string& line) {
  return tokenize(line, {.lowercase = model.config.lowercase});
}

}  // namespace

int run(TranslateCommand& o) {
  apply(o.common);
  Model model = Model::load(o.model);
  Printer printer(model, o);
  o.search.weights = o.map || o.alignments;
  o.search.beam_size = std::max(o.search.beam_size, o.n_best);
  o.search.scores = o.scores;
  bool prompt = !o.sentence && isatty(0) && isatty(1), one_by_one = o.sentence || prompt;
  auto generator = model.network->generator((one_by_one ? 1 : gradus::nn::kManyRows) * o.search.beam_size);
  if (o.map && !model.network->attends())
    fmt::print(stderr, "translator: this model has no attention to draw\n");
  if (o.sentence) {
    if (auto bad = utf8::describe_invalid_byte(*o.sentence); !bad.empty())
      throw InputError("the sentence", 0, bad);
    auto source = tokens_of(model, *o.sentence);
    printer.print(source, translate(model, *generator, {source}, o.search, o.common.threads)[0], 1);
    return 0;
  }
  if (prompt)
    fmt::print(stderr, "{} to {}. One sentence a line; Ctrl-D ends.\n", model.config.source_language,
               model.config.target_language);
  // Line by line at a prompt; from a pipe, blocks of lines go through together, in order.
  size_t block = prompt ? 1 : 256;
  std::vector<std::vector<std::string>> sources;
  auto flush = [&] {
    if (sources.empty()) return;
    auto found = translate(model, *generator, sources, o.search, o.common.threads);
    for (size_t i = 0; i < sources.size(); ++i) printer.print(sources[i], found[i], o.n_best);
    std::fflush(stdout);
    sources.clear();
  };
  LineReader input(flush);
  std::string line;
  int64_t number = 0;
  int code = 0;
  for (;;) {
    if (prompt) fmt::print(stderr, "> ");
    if (!input.next(line)) break;
    ++number;
    if (auto bad = utf8::describe_invalid_byte(line); !bad.empty()) {
      fmt::print(stderr, "translator: {}: {}; an empty line stands for it\n",
                 InputError::locate("standard input", number), bad);
      code = 1;
      line.clear();
    }
    sources.push_back(tokens_of(model, line));
    if (sources.size() == block) flush();
  }
  flush();
  if (prompt) fmt::print(stderr, "\n");
  return code;
}

}  // namespace translator
