#include <translator/text/parallel.h>

#include <common/error.h>
#include <common/split.h>
#include <common/tell.h>
#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

namespace translator {
namespace {

// One file, line by line, without line ends and BOM.
class Lines {
 public:
  Lines(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}

  bool next(std::string& line) {
    if (!std::getline(in_, line)) {
      if (in_.bad()) throw InputError(name_, number_ + 1, "cannot be read");
      return false;
    }
    ++number_;
    if (number_ == 1) {
      if (const std::string what = unreadable_as(line); !what.empty()) throw InputError(name_, 1, what);
      if (in_.eof() && std::count(line.begin(), line.end(), '\r') > 1)
        throw InputError(name_, 0, "has CR alone between its lines: tr '\\r' '\\n' makes line feeds of them");
      if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }

  const std::string& name() const { return name_; }
  int64_t number() const { return number_; }

 private:
  std::istream& in_;
  std::string name_;
  int64_t number_ = 0;
};

// A file opened for reading, or standard input for `-`.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    if (path == "-") return;
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw InputError(path, 0, "is a directory");
    file_.open(path, std::ios::binary);
    if (!file_) throw InputError(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }

  std::istream& stream() { return file_.is_open() ? static_cast<std::istream&>(file_) : std::cin; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::ifstream file_;
};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\v\f\r";
  const size_t start = text.find_first_not_of(kBlank);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlank) - start + 1);
}

bool is_blank(std::string_view line) { return trim(line).empty(); }

bool is_number(std::string_view column) {
  return !column.empty() && column.find_first_not_of("0123456789") == column.npos;
}

// A line of the files of pairs that Tatoeba gives out: number, sentence, number, sentence.
bool has_numbers_before_sentences(std::string_view line) {
  if (!is_number(line.substr(0, line.find('\t')))) return false;
  const std::vector<std::string_view> columns = views_of(line, '\t');
  return columns.size() >= 4 && is_number(columns[2]) && !is_blank(columns[3]);
}

struct Collector {
  const ReadOptions& options;
  ParallelData data;

  bool full() const { return options.max_pairs > 0 && data.report.pairs >= options.max_pairs; }

  void bad(const Lines& file, const std::string& reason) {
    const InputError error(file.name(), file.number(), reason);
    if (options.strict) throw error;
    if (options.on_bad) options.on_bad(file.number(), reason);
    if (data.report.bad++ < options.kept_messages) data.report.messages.emplace_back(error.what());
  }

  // The two sides with the files they come from (the same one for columns), and the columns behind them.
  void add(const Lines& first_file, std::string_view first, const Lines& second_file, std::string_view second,
           std::string_view rest) {
    for (const auto& [file, text] : {std::pair{&first_file, first}, std::pair{&second_file, second},
                                     std::pair{&first_file, options.multi_reference ? rest : ""}}) {
      // Counts the bad byte from the start of the line, not of the column.
      const auto before = &first_file == &second_file ? static_cast<size_t>(text.data() - first.data()) : 0;
      if (const std::string fault = utf8::describe_invalid_byte(text, before); !fault.empty())
        return bad(*file, fault);
    }
    SentencePair pair;
    bool further = false;
    pair.source_text = trim(first);
    pair.target_text = trim(second);
    if (options.multi_reference) {
      for (std::string_view column : views_of(rest, '\t'))
        if (!is_blank(column)) pair.further_targets.emplace_back(trim(column));
    } else {
      const std::string_view links = rest.substr(0, rest.find('\t'));
      if (!is_blank(links)) pair.alignment = parse_moses(links);
      further = !is_blank(pair.alignment ? rest.substr(links.size()) : rest);
    }
    const Lines* source_file = &first_file;
    const Lines* target_file = &second_file;
    if (options.swap_columns) {
      std::swap(pair.source_text, pair.target_text);
      std::swap(source_file, target_file);
      if (pair.alignment) pair.alignment = swapped(std::move(*pair.alignment));
    }
    pair.line = source_file->number();
    pair.source = tokenize(pair.source_text, options.text);
    pair.target = tokenize(pair.target_text, options.text);
    if (pair.source.empty()) return bad(*source_file, "the source side is empty");
    if (pair.target.empty()) return bad(*target_file, "the target side is empty");

    const auto source_length = static_cast<int64_t>(pair.source.size());
    const auto target_length = static_cast<int64_t>(pair.target.size());
    if (options.max_length > 0 && too_long(pair, options.max_length)) {
      ++data.report.too_long;
      return;
    }
    if (pair.alignment && !fits(*pair.alignment, source_length, target_length)) {
      pair.alignment.reset();
      ++data.report.bad_alignments;
    }
    data.report.aligned += pair.alignment ? 1 : 0;
    data.report.with_further += further ? 1 : 0;
    ++data.report.pairs;
    for (const std::string* text : {&pair.source_text, &pair.target_text})
      data.report.changed.add(*text, options.text);
    data.pairs.push_back(std::move(pair));
  }
};

}  // namespace

std::string ReadReport::summary() const {
  std::string out = fmt::format("{}: {} of {} lines read", name, pairs, lines);
  if (aligned > 0) out += fmt::format(", {} with alignments", aligned);
  if (with_further > 0) out += fmt::format(", {} with further columns, which are not read", with_further);
  if (blank > 0) out += fmt::format(", {} blank", blank);
  if (too_long > 0) out += fmt::format(", {} too long", too_long);
  if (bad > 0) out += fmt::format(", {} bad", bad);
  if (bad_alignments > 0)
    out += fmt::format(", {} alignments that do not fit their sentences", bad_alignments);
  return out;
}

std::vector<std::string> ReadReport::told() const {
  std::vector<std::string> out{summary()};
  for (const std::string& message : messages) out.push_back("  " + message);
  if (without_tab > 1 && without_tab + blank == lines)
    out.push_back("  no line has a tab: docs/text.md has commands that make pairs of CSV and other files");
  return out;
}

void ReadReport::tell() const {
  for (const std::string& line : told()) translator::tell("{}\n", line);
}

std::string unreadable_as(std::string_view beginning) {
  // With a byte order mark, or with two Latin letters of two bytes each.
  auto none = [&](size_t i) { return beginning.size() > 3 && !beginning[i] && !beginning[i + 2]; };
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF") || none(0) != none(1))
    return "looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it";
  constexpr std::pair<std::string_view, const char*> kPackers[] = {
      {"\x1F\x8B", "zcat"},
      {"\xFD\x37zXZ", "xzcat"},
      {"BZh91AY&SY", "bzcat"},
      {"\x28\xB5\x2F\xFD", "zstdcat"}};
  for (const auto& [magic, unpacks] : kPackers)
    if (beginning.starts_with(magic))
      return fmt::format(
          "is compressed: {} unpacks it, and - in the place of its name reads what comes of that", unpacks);
  if (beginning.starts_with("PK\x03\x04"))
    return "is a spreadsheet or an archive: save it as text, with tabs between the columns";
  return "";
}

bool too_long(const SentencePair& pair, int64_t max_length) {
  const size_t words = std::max(pair.source.size(), pair.target.size()),
               bytes = std::max(pair.source_text.size(), pair.target_text.size());
  constexpr size_t kWordBytes = 100;
  const size_t of_bytes = (bytes + kWordBytes - 1) / kWordBytes;
  return static_cast<int64_t>(std::max(words, of_bytes)) > max_length;
}

ParallelData read_pairs(std::istream& in, const std::string& name, const ReadOptions& options) {
  Lines lines(in, name);
  Collector collector{options, {.report = {.name = name}}};
  ReadReport& report = collector.data.report;
  int64_t numbered = 0;
  std::string line;
  while (!collector.full() && lines.next(line)) {
    ++report.lines;
    const std::string_view text = line;
    numbered += has_numbers_before_sentences(text);
    const size_t tab = text.find('\t');
    if (tab == std::string_view::npos) {
      if (is_blank(text)) {
        ++report.blank;
      } else {
        ++report.without_tab;
        collector.bad(lines, "no tab between source and target");
      }
      continue;
    }
    const size_t second_tab = std::min(text.find('\t', tab + 1), text.size());
    const std::string_view target = text.substr(tab + 1, second_tab - tab - 1);
    collector.add(lines, text.substr(0, tab), lines, target,
                  text.substr(std::min(second_tab + 1, text.size())));
  }
  const int64_t filled = report.lines - report.blank;
  if (filled > 0 && numbered == filled)
    throw InputError(name, 0,
                     "has the numbers of its sentences, too, as Tatoeba's files of pairs do: cut -f2,4 leaves "
                     "the sentences");
  return std::move(collector.data);
}

ParallelData read_pairs(const std::string& path, const ReadOptions& options) {
  Input input(path);
  return read_pairs(input.stream(), input.name(), options);
}

std::vector<SentencePair> read_usable_pairs(const std::string& path, const ReadOptions& options) {
  ParallelData data = read_pairs(path, options);
  if (data.report.bad > 0) data.report.tell();
  if (data.pairs.empty()) throw InputError(data.report.name, 0, "has no usable sentence pairs");
  return std::move(data.pairs);
}

ParallelData read_pairs(std::istream& source, const std::string& source_name, std::istream& target,
                        const std::string& target_name, const ReadOptions& options) {
  Lines sources(source, source_name);
  Lines targets(target, target_name);
  Collector collector{options, {.report = {.name = source_name + ", " + target_name}}};
  std::string first;
  std::string second;
  while (!collector.full()) {
    const bool more_source = sources.next(first);
    const bool more_target = targets.next(second);
    if (more_source != more_target) {
      while (sources.next(first) || targets.next(second)) {
      }
      throw InputError(
          source_name, 0,
          fmt::format("has {} line{}, but {} has {}", sources.number(), sources.number() == 1 ? "" : "s",
                      target_name, targets.number()));
    }
    if (!more_source) break;
    ++collector.data.report.lines;
    if (is_blank(first) && is_blank(second))
      ++collector.data.report.blank;
    else
      collector.add(sources, first, targets, second, {});
  }
  return std::move(collector.data);
}

ParallelData read_pairs(const std::string& source_path, const std::string& target_path,
                        const ReadOptions& options) {
  if (source_path == "-" && target_path == "-") {
    throw InputError("standard input", 0, "cannot be both the source and the target");
  }
  Input source(source_path);
  Input target(target_path);
  return read_pairs(source.stream(), source.name(), target.stream(), target.name(), options);
}

}  // namespace translator
