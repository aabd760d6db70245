#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include <gradus/error.h>
#include <translator/commands/commands.h>
#include <translator/commands/line_reader.h>
#include <translator/inference/ensemble.h>
#include <translator/inference/mbr.h>
#include <translator/inference/translation.h>
#include <translator/model/model.h>
#include <translator/text/bleu.h>
#include <translator/text/chrf.h>
#include <translator/text/parallel.h>
#include <translator/text/sentences.h>
#include <translator/text/word_picture.h>
#include <common/error.h>
#include <common/heat_map.h>
#include <common/tell.h>
#include <common/terminal.h>
#include <common/json_text.h>
#include <common/utf8.h>

namespace translator {
namespace {

class Translator {
 public:
  explicit Translator(TranslateCommand& o)
      : o_(o),
        ensemble_(o.model, space_named(o.ensemble), o.int8),
        model_(ensemble_.first()),
        steering_(o.steering, model_) {
    ensemble_.for_each([&](const Model& each) { apply(o.look, each); });
    if (o.least_mass) ensemble_.use_shortlist(*o.least_mass);
    generator_ = ensemble_.generator();  // packs the attentions as they look now
    o.search.weights = o.map || o.alignments;
    // A sample is a hypothesis: with a beam there would be more of them than are asked for.
    o.search.beam_size = !o.mbr.empty()      ? o.samples
                         : o.steering.sample ? o.n_best
                                             : std::max(o.search.beam_size, o.n_best);
    o.search.scores = o.scores || o.moses || !o.mbr.empty();
    // Every sample counts, be it as improbable as it may.
    if (o.search.exact_stop > 0) o.search.exact_stop = o.steering.sample ? 0 : o.n_best;
    bool attends = false;
    ensemble_.for_each([&](const Model& each) { attends = attends || each.network->attends(); });
    if ((o.map || o.alignments) && !attends)
      tell("translator: this model has no attention to {}\n", o.map ? "draw" : "align words by");
  }

  int sentence(const std::string& text) {
    if (o_.paragraphs) {
      take_line(text);
      flush();
      return code_;
    }
    Waiting line{.text = text, .told = steering_.of(0), .number = 0};
    read(line);
    if (!line.fault.empty()) throw InputError("the sentence", 0, line.fault);
    tell_unknown("", line.source);
    const std::vector<Translation> found = translated({line})[0];
    print(line, found, answer(line, found));
    return 0;
  }

  // Standard input: a line out for each line in, whatever is wrong with it; up to n_best lines with its number.
  int lines(bool prompt) {
    // Line by line at a prompt; from a pipe, blocks of lines go through together, in order.
    const size_t block = prompt ? 1 : kBlock;
    if (prompt)
      tell("{} to {}. One sentence a line; Ctrl-D ends.\n", model_.config.source_language,
           model_.config.target_language);
    LineReader input([this] { flush(); });
    std::string text;
    for (;;) {
      if (prompt) tell("> ");
      if (!input.next(text)) break;
      if (read_ == 0) {
        if (const std::string what = unreadable_as(text); !what.empty())
          throw InputError("standard input", 1, what);
        if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
      }
      take_line(text);
      if (waiting_.size() >= block) flush();
    }
    flush();
    if (prompt) tell("\n");
    return code_;
  }

 private:
  // Lines that are sorted by length and translated together: enough that batches are of like lengths, few
  // enough that what is kept of them is small.
  static constexpr size_t kBlock = 1024;

  struct Waiting {
    std::string text = {};
    gradus::nn::SentenceSearch told = {};
    int64_t number;         // of the line, from 0
    Segmented source = {};  // the text, split, unless there is
    std::string fault = {};
    // Of a paragraph: what stands behind the sentence (of a line that stays, all of it), and whether the line
    // begins and ends with it.
    std::string space = {};
    bool begins_line = true, ends_line = true;
  };

  void take_line(const std::string& text) {
    const int64_t number = read_++;
    if (!o_.paragraphs)
      return take_sentence(text.substr(0, text.size() - text.ends_with('\r')), {.number = number});
    if (is_markup_line(text)) return waiting_.push_back({.number = number, .space = text});
    const bool whole = text.size() > LineReader::kLongest || utf8::first_invalid_byte(text);  // to be told of
    const auto sentences = whole ? std::vector<SentenceOfText>{{text, ""}} : sentences_of(text);
    for (const SentenceOfText& s : sentences)
      take_sentence(s.text, {.number = number,
                             .space = s.space,
                             .begins_line = &s == &sentences.front(),
                             .ends_line = &s == &sentences.back()});
  }

  void take_sentence(const std::string& text, Waiting line) {
    const size_t tab = o_.prefix_column ? text.find('\t') : std::string::npos;
    line.text = text.substr(0, tab);
    const int64_t number = sentences_++;  // of what cannot be read, too: it changes no other's draws
    const std::string prefix = tab == std::string::npos ? "" : text.substr(tab + 1);
    try {
      if (text.size() > LineReader::kLongest)
        line.fault = fmt::format("has more than {} bytes", LineReader::kLongest);
      else
        line.told = steering_.of(number, prefix);
    } catch (const InputError& e) {
      line.fault = e.what();
    }
    waiting_.push_back(std::move(line));
  }

  // Splits a line, or finds why it has nothing that can be translated.
  void read(Waiting& line) const {
    if (!line.fault.empty()) return;
    if (line.fault = utf8::describe_invalid_byte(line.text); line.fault.empty())
      line.source = model_.reads.split(line.text);
    if (line.fault.empty()) line.fault = model_.length_fault(line.source.pieces.size());
    if (!line.fault.empty()) line.source = {};
  }

  std::string place_of(const Waiting& line) const {
    return o_.sentence ? "the sentence" : InputError::locate("standard input", line.number + 1);
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

  std::vector<std::vector<Translation>> translated(const std::vector<Waiting>& lines) const {
    std::vector<Segmented> sources;
    gradus::nn::SearchOptions options = o_.search;
    for (const Waiting& line : lines) {
      sources.push_back(line.source);
      options.sentences.push_back(line.told);
    }
    if (!o_.steering.any() && !o_.prefix_column) options.sentences.clear();
    auto found = steering_.translate(*generator_, sources, options,
                                     {.threads = o_.common.threads, .together = o_.together});
    if (o_.mbr.empty()) return found;
    const bool lowercase = model_.config.lowercase();
    const Metric utility = o_.mbr == "chrf" ? chrf_metric({.lowercase = lowercase})
                                            : bleu_metric({.lowercase = lowercase, .effective_order = true});
    of_each(found.size(), [&](size_t i) { found[i] = by_expected_utility(model_, utility, found[i]); });
    return found;
  }

  // f(i) of each line, by as many threads as there is work for.
  template <class F>
  void of_each(size_t lines, const F& f) const {
    gradus::ThreadPool pool(std::max(1, std::min(o_.common.threads, static_cast<int>(lines))));
    divide(pool, lines, {}, [&](size_t i) { return f(i), 1; });
  }

  int64_t answers_to(const Waiting& line, const std::vector<Translation>& found) const {
    return line.source.pieces.empty() ? 0 : std::min<int64_t>(o_.n_best, static_cast<int64_t>(found.size()));
  }

  // At least one line, empty where nothing was found; Moses's form has none then. Of several translations each
  // has the number of its sentence in front.
  std::string answer(const Waiting& line, const std::vector<Translation>& found) const {
    const Segmented& source = line.source;
    std::string text;
    const std::string number = o_.n_best > 1 && !o_.json && !o_.moses ? fmt::format("{}\t", line.number) : "";
    const int64_t n = answers_to(line, found);
    for (int64_t i = 0; i < n; ++i) {
      const Translation& t = found[static_cast<size_t>(i)];
      const Segmented target = model_.writes.words_of(t.tokens);
      const WordPicture words = picture_of(source, target, t.weights);
      const WordPicture shown = o_.pieces ? picture_of_pieces(source, target, t.weights) : words;
      text += fmt::format("{}{}\n", number,
                          o_.json    ? json_of(line, i, t, target, words, shown)
                          : o_.moses ? moses_line(line.number, t)
                                     : text_of(source, t, words));
      if (o_.map && !o_.json) text += draw_heat_map(shown, heat_map_options(terminal_style(1)));
    }
    if (n == 0 && !o_.moses) text += fmt::format("{}{}\n", number, o_.json ? json_of_none(line) : "");
    return text;
  }

  void print(const Waiting& line, const std::vector<Translation>& found, const std::string& text) const {
    fmt::print("{}", text);
    tell_incomplete(line, found);
  }

  void tell_incomplete(const Waiting& line, const std::vector<Translation>& found) const {
    if (found.empty() && !line.source.pieces.empty() && !o_.steering.forbid.empty())
      tell("translator: {}: no translation was found without what --forbid names\n", place_of(line));
    for (int64_t i = 0; i < answers_to(line, found); ++i)
      if (!found[static_cast<size_t>(i)].complete)
        tell("translator: {}: no translation of so many words has all that --require asks for\n",
             place_of(line));
  }

  // The sentences of a line stand as they stood, with a space where the source's script has none between them.
  void add_to_paragraph(const Waiting& line, const std::vector<Translation>& found) {
    const bool said = !line.source.pieces.empty() && !found.empty();
    if (line.begins_line) paragraph_ += line.text.substr(0, line.text.find_first_not_of(" \t"));
    if (said) paragraph_ += model_.writes.join(found[0].tokens);
    paragraph_ += said && line.space.empty() && !line.ends_line ? " " : line.space;
    tell_incomplete(line, found);
    if (!line.ends_line) return;
    if (to_terminal_) paragraph_ = utf8::printable(paragraph_);  // which is not to obey what a text says
    fmt::print("{}\n", std::exchange(paragraph_, {}));
  }

  std::string text_of(const Segmented& source, const Translation& t, const WordPicture& words) const {
    std::string text = model_.writes.join(t.tokens);
    if (o_.scores) text += fmt::format("\t{:.4f}", t.log_probability);
    if (o_.alignments) text += "\t" + format_moses(links_of(words));
    const auto not_known = unknown(source);
    if (o_.scores && !not_known.empty()) text += fmt::format("\tunknown: {}", fmt::join(not_known, ", "));
    return text;
  }

  // The features are the two that a score is made of: log probability in nats, and tokens, </s> among them.
  std::string moses_line(int64_t number, const Translation& t) const {
    std::string text;
    for (char c : model_.writes.join(t.tokens)) c == '|' ? text += "&#124;" : text += c;
    return fmt::format("{} ||| {} ||| LogProbability= {:.4f} Length= {} ||| {:.4f}", number, text,
                       t.log_probability, t.log_probabilities.size(), t.score);
  }

  // What identifies a translation among the others.
  static nlohmann::ordered_json identity(const Waiting& line, int64_t rank) {
    return {{"sentence", line.number}, {"rank", rank}};
  }

  static std::string json_of_none(const Waiting& line) {
    nlohmann::ordered_json j = identity(line, 0);
    j["translation"] = nullptr;
    return json_text::dump(j);
  }

  std::string json_of(const Waiting& line, int64_t rank, const Translation& t, const Segmented& target,
                      const WordPicture& words, const WordPicture& shown) const {
    const Segmented& source = line.source;
    nlohmann::ordered_json j = identity(line, rank);
    j["translation"] = model_.writes.join(t.tokens);
    j["source_words"] = source.words;
    if (o_.scores) {
      j["log_probability"] = t.log_probability;
      j["score"] = t.score;
      j["words"] = target.words;
      // Of a word, the sum over its pieces; the last is that of </s>, where the search did not end before.
      std::vector<double> of_words(target.words.size());
      for (size_t i = 0; i < t.tokens.size(); ++i)
        of_words[static_cast<size_t>(target.word_of[i])] += t.log_probabilities[i];
      if (t.log_probabilities.size() > t.tokens.size()) of_words.push_back(t.log_probabilities.back());
      j["word_log_probabilities"] = of_words;
    }
    if (o_.pieces) {
      j["source_pieces"] = source.pieces;
      j["pieces"] = t.tokens;
      if (o_.scores) j["piece_log_probabilities"] = t.log_probabilities;
    }
    if (const auto not_known = unknown(source); !not_known.empty()) j["unknown"] = not_known;
    if (o_.alignments) j["alignment"] = format_moses(links_of(words));
    if (o_.map)
      j["attention"] = {{"source", shown.source}, {"target", shown.target}, {"weights", shown.weights}};
    return json_text::dump(j);
  }

  void complain(const Waiting& line, const std::string& fault) {
    const bool part = !(line.begins_line && line.ends_line);  // of a paragraph
    tell("translator: {}: {}; {}\n", place_of(line), fault,
         part       ? "it is left out of its paragraph"
         : o_.moses ? "it is left out"
                    : "an empty line stands for it");
    code_ = 1;
  }

  // Answers the lines that wait. Should they fail together, each is tried by itself, so that one costs no other
  // its translation. All threads split lines and write answers, too: one alone would keep the others waiting.
  void flush() {
    if (waiting_.empty()) return;
    of_each(waiting_.size(), [&](size_t i) { read(waiting_[i]); });
    for (const Waiting& line : waiting_) {
      if (!line.fault.empty()) complain(line, line.fault);
      tell_unknown(place_of(line) + ": ", line.source);
    }
    std::vector<std::vector<Translation>> found;
    try {
      found = translated(waiting_);
    } catch (const std::exception&) {
      for (const Waiting& line : waiting_) found.push_back(alone(line));
    }
    std::vector<std::string> answers(waiting_.size());
    if (!o_.paragraphs)
      of_each(answers.size(), [&](size_t i) { answers[i] = answer(waiting_[i], found[i]); });
    for (size_t i = 0; i < waiting_.size(); ++i)
      o_.paragraphs ? add_to_paragraph(waiting_[i], found[i]) : print(waiting_[i], found[i], answers[i]);
    std::fflush(stdout);
    waiting_.clear();
  }

  std::vector<Translation> alone(const Waiting& line) {
    try {
      return translated({line})[0];
    } catch (const gradus::Error& e) {
      complain(line, e.message());
    } catch (const std::bad_alloc&) {
      complain(line, "takes more memory than there is");
    } catch (const std::exception& e) {
      complain(line, e.what());
    }
    return {};
  }

  TranslateCommand& o_;
  Ensemble ensemble_;
  const Model& model_;
  Steering steering_;
  std::unique_ptr<gradus::nn::Generator> generator_;
  std::vector<Waiting> waiting_;  // the last of the lines that were read
  std::string paragraph_;         // so much of it is translated
  const bool to_terminal_ = isatty(1);
  int64_t read_ = 0, sentences_ = 0;
  int code_ = 0;
};

}  // namespace

int run(TranslateCommand& o) {
  apply(o.common);
  if (o.steering.sample && o.search.beam_size > 1)
    throw UsageError("--sample draws words: it goes without --beam-size");
  if (o.steering.sample && o.least_mass)
    throw UsageError("--sample draws from all words: it goes without --shortlist");
  if (!o.mbr.empty() && !o.steering.sample) throw UsageError("--mbr needs --sample");
  if (o.paragraphs &&
      (o.json || o.moses || o.map || o.scores || o.alignments || o.n_best > 1 || o.prefix_column))
    throw UsageError("--paragraphs writes text alone, one translation of each");
  if (o.pieces && !o.map && !o.json) throw UsageError("--pieces is of --attention-map and --json");
  if (o.prefix_column && o.sentence)
    throw UsageError("--prefix-column is of lines: a sentence has --prefix");
  if (o.search.max_length > 0 && o.search.min_length > o.search.max_length)
    throw UsageError(fmt::format("--min-length {} is more than --max-length {}", o.search.min_length,
                                 o.search.max_length));
  if (o.map && o.moses) throw UsageError("--moses has no room for --attention-map");
  Translator translator(o);
  return o.sentence ? translator.sentence(*o.sentence) : translator.lines(isatty(0) && isatty(1));
}

}  // namespace translator
