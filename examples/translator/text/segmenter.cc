#include <translator/text/segmenter.h>

#include <common/utf8.h>

#include <algorithm>
#include <utility>

namespace translator {
namespace {

using Code = std::u32string_view;

// The parts of a text that SentencePiece gets one by one, in code points: a word with the space before it.
// Stray joiners make parts, too, so that all of the text is in one.
std::vector<WordRange> parts_of(Code text) {
  std::vector<size_t> cuts;
  for (const auto& [begin, end] : word_ranges(text, Unspaced::whole))
    cuts.push_back(begin > 0 && text[begin - 1] == U' ' ? begin - 1 : begin);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == U' ') cuts.push_back(i);
  cuts.push_back(0);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<WordRange> out;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const size_t end = i + 1 < cuts.size() ? cuts[i + 1] : text.size();
    if (end > cuts[i]) out.emplace_back(cuts[i], end);
  }
  return out;
}

// As SentencePiece gets a part: a space before the text's first one, too.
std::string text_of(Code text, const WordRange& part) {
  return (part.first == 0 ? " " : "") + utf8::encode(text.substr(part.first, part.second - part.first));
}

// Code points, an ill-formed byte as U+FFFD, and which byte each begins with.
struct Decoded {
  std::u32string code;
  std::vector<size_t> byte;
};

Decoded decode_with_bytes(const std::string& text) {
  Decoded out{.code = utf8::decode_lossy(text), .byte = {}};
  size_t at = 0;
  for (char32_t c : out.code) {
    out.byte.push_back(at);
    const std::string own = utf8::encode({&c, 1});
    at += text.compare(at, own.size(), own) == 0 ? own.size() : 1;
  }
  return out;
}

// Whether a part is of a script without spaces.
bool is_unspaced_part(Code text, const WordRange& part) {
  const auto [begin, end] = part;
  return is_unspaced(text[text[begin] == U' ' && begin + 1 < end ? begin + 1 : begin]);
}

std::string without_space(std::string text) {
  if (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

// Puts the next piece into its word: a new one where it begins a part, and where its part is of a script
// without spaces, in which each piece that begins a character is one.
void add_piece(Segmented& out, const std::string& text, bool begins_part, bool unspaced) {
  const bool within_character = (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80;
  const bool waiting = !out.words.empty() && out.words.back().empty();  // so far it is a space alone
  if (out.words.empty() || begins_part || (unspaced && !within_character && !waiting))
    out.words.emplace_back();
  out.words.back() += out.words.back().empty() ? without_space(text) : text;
  out.word_of.push_back(static_cast<int32_t>(out.words.size()) - 1);
}

// Where one byte of a character each is a piece, words are no text before they are whole.
void make_valid(std::vector<std::string>& words) {
  for (std::string& word : words) word = utf8::encode(utf8::decode_lossy(word));
}

// The words as people see them, whatever the model reads.
void capitalize_first(std::vector<std::string>& words) {
  for (size_t i = first_behind_tags(words); i < words.size(); ++i) {
    const std::u32string code = utf8::decode_lossy(words[i]);
    if (std::none_of(code.begin(), code.end(), utf8::is_letter)) continue;
    words[i] = utf8::capitalize(words[i]);
    break;
  }
}

}  // namespace

Segmenter::Segmenter(SegmenterOptions options, std::shared_ptr<const Subwords> subwords,
                     std::shared_ptr<const Truecaser> truecaser)
    : options_(std::move(options)), subwords_(std::move(subwords)), truecaser_(std::move(truecaser)) {}

TokenizerOptions Segmenter::reading() const {
  return {.lowercase = options_.letter_case == "lower", .plain = subwords_ == nullptr};
}

std::string Segmenter::folded(const std::string& normal) const {
  return folds() ? truecaser_->fold(normal) : normal;
}

void Segmenter::count_words(std::string_view line, TokenCounts& counts) const {
  const TokenizerOptions with_pieces{.lowercase = reading().lowercase, .plain = false};
  const std::u32string code = utf8::decode_lossy(folded(normalize(line, with_pieces)));
  for (const WordRange& part : parts_of(code)) counts.add(text_of(code, part));
}

Segmented Segmenter::split(std::string_view line, double dropout) const {
  const std::string normal = normalize(line, reading()), text = folded(normal);
  const std::u32string code = utf8::decode_lossy(text);
  Segmented out;
  if (!subwords_) {
    std::vector<bool> spaced;
    for (const auto& [begin, end] : word_ranges(code)) {
      out.word_of.push_back(static_cast<int32_t>(out.pieces.size()));
      out.pieces.push_back(utf8::encode(Code(code).substr(begin, end - begin)));
      spaced.push_back(begin > 0 && code[begin - 1] == U' ');
    }
    if (options_.letter_case != "keep") out.words = tokenize(line, {.lowercase = false});
    if (out.words.size() != out.pieces.size()) out.words = out.pieces;
    if (options_.marks) out.pieces = mark_spaces(out.pieces, spaced, options_.typography);
    return out;
  }
  for (const WordRange& range : parts_of(code)) {
    const std::string part = text_of(code, range);
    bool first = true;
    for (std::string& piece : dropout > 0 ? subwords_->sample(part, dropout) : subwords_->split(part)) {
      add_piece(out, text_of_piece(piece), first, is_unspaced_part(code, range));
      out.pieces.push_back(std::move(piece));
      first = false;
    }
  }
  make_valid(out.words);
  if (text != normal) capitalize_first(out.words);
  return out;
}

Segmented Segmenter::words_of(std::vector<std::string> pieces) const {
  Segmented out;
  if (!subwords_) {
    for (const std::string& piece : pieces) {
      out.word_of.push_back(static_cast<int32_t>(out.words.size()));
      out.words.emplace_back(without_mark(piece));
    }
    if (folds()) capitalize_first(out.words);
    out.pieces = std::move(pieces);
    return out;
  }
  std::string text;
  for (const std::string& piece : pieces) text += text_of_piece(piece);
  const Decoded decoded = decode_with_bytes(text);
  const std::vector<WordRange> parts = parts_of(decoded.code);
  size_t part = 0, last = parts.size(), byte = 0;  // of the piece before: none
  for (const std::string& piece : pieces) {
    const std::string own = text_of_piece(piece);
    while (part + 1 < parts.size() && byte >= decoded.byte[parts[part + 1].first]) ++part;
    add_piece(out, own, part != last, is_unspaced_part(decoded.code, parts[part]));
    byte += own.size();
    last = part;
  }
  make_valid(out.words);
  if (folds()) capitalize_first(out.words);
  out.pieces = std::move(pieces);
  return out;
}

std::string Segmenter::join(const std::vector<std::string>& pieces) const {
  std::string text;
  if (subwords_) {
    for (const std::string& piece : pieces) text += text_of_piece(piece);
    text = normalize(text, {.lowercase = false, .plain = false});
  } else {
    text = detokenize(pieces, options_.typography);
  }
  return folds() ? capitalized(text) : text;
}

}  // namespace translator
