#include <translator/commands/doctor_report.h>

#include <common/json_text.h>
#include <common/progress.h>
#include <common/split.h>
#include <common/utf8.h>
#include <fmt/format.h>
#include <translator/model/forecast.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace translator::doctor {
namespace {

using Json = nlohmann::ordered_json;

// Findings of each kind.
std::array<std::vector<const Finding*>, kKinds> by_kind(const Findings& findings) {
  std::array<std::vector<const Finding*>, kKinds> out;
  for (const Finding& f : findings) out[static_cast<size_t>(f.kind)].push_back(&f);
  return out;
}

double share(size_t count, int64_t lines) {
  return lines > 0 ? 100 * static_cast<double>(count) / static_cast<double>(lines) : 0;
}

std::string heading(const KindName& name, size_t count, int64_t lines) {
  return fmt::format("  {:<14}{:>8}  {:>6.2f} %  {}", name.name, count, share(count, lines), name.says);
}

std::string side_by_side(const SentencePair& p) { return p.source_text + " | " + p.target_text; }

std::string lines_far(int64_t shift) {
  return fmt::format("{} line{}", std::abs(shift), std::abs(shift) == 1 ? "" : "s");
}

std::string shift_of(const ShiftedBlock& block, const std::vector<SentencePair>& pairs) {
  return fmt::format("lines {} to {}: their targets stand {} further {}", pairs[block.first].line,
                     pairs[block.last].line, lines_far(block.shift), block.shift > 0 ? "down" : "up");
}

// Some of many, spread over all of them.
constexpr size_t kExamples = 3;
size_t example(size_t k, size_t of) { return k * of / std::min(kExamples, of); }

class Lines {
 public:
  explicit Lines(int width) : width_(width) {}
  /// A row of a table, or what quotes a sentence: cut at the width.
  void add(const std::string& line) { text_ += utf8::fit(utf8::printable(line), width_) + "\n"; }
  /// What the doctor says, whole.
  void say(const std::string& text, int indent = 0) {
    text_ += utf8::wrapped(text, width_, indent);
  }
  const std::string& text() const { return text_; }

 private:
  int width_;
  std::string text_;
};

void add_outlook(const Outlook& o, Lines& out) {
  out.add("");
  out.say("Words that --min-count keeps, and what becomes <unk>, with --subwords none (source; target)");
  for (const Outlook::MinCount& m : o.min_counts)
    out.add(fmt::format("  {:<6}{:>9} {:>5.1f} % ; {:>9} {:>5.1f} %", m.least, m.source_words,
                        100 * m.source_unknown, m.target_words, 100 * m.target_unknown));
  if (!o.piece_sizes.empty()) out.add("Pieces a sentence, by --subword-size (source; target)");
  for (const Outlook::PieceSize& p : o.piece_sizes)
    out.add(fmt::format("  {:<6}{:>9.1f} ; {:.1f}", p.size, p.source_pieces, p.target_pieces));
  out.add("Training, as train does it if told nothing else");
  out.add(fmt::format("  {} and {} {}, {} parameters", o.source_vocabulary, o.target_vocabulary,
                      o.pieces ? "pieces" : "words", format_count(static_cast<double>(o.parameters))));
  if (o.measured_seconds > 0)
    out.say(
        fmt::format(
            "{} epochs: about {} and at least {}, with {} thread{} ({} target tokens/s, measured for {:.0f} s)",
            o.epochs, format_duration(60 * o.minutes), format_bytes(o.bytes), o.threads,
            o.threads == 1 ? "" : "s", format_count(o.tokens_per_second), o.measured_seconds),
        2);
}

Json outlook_json(const Outlook& o) {
  Json counts = Json::array(), sizes = Json::array();
  for (const Outlook::MinCount& m : o.min_counts)
    counts.push_back({{"min_count", m.least},
                      {"source_words", m.source_words},
                      {"target_words", m.target_words},
                      {"source_unknown", m.source_unknown},
                      {"target_unknown", m.target_unknown}});
  for (const Outlook::PieceSize& p : o.piece_sizes)
    sizes.push_back(
        {{"size", p.size}, {"source_pieces", p.source_pieces}, {"target_pieces", p.target_pieces}});
  Json out = {{"min_counts", counts},
              {"piece_sizes", sizes},
              {"tokens", o.pieces ? "pieces" : "words"},
              {"source_vocabulary", o.source_vocabulary},
              {"target_vocabulary", o.target_vocabulary},
              {"parameters", o.parameters},
              {"epochs", o.epochs},
              {"threads", o.threads}};
  if (o.measured_seconds > 0) {
    out["tokens_per_second"] = o.tokens_per_second;
    out["minutes"] = o.minutes;
    out["bytes"] = o.bytes;
  }
  return out;
}

}  // namespace

int64_t Report::left_out() const {
  const auto reasons = examination.reasons(pairs.size());
  return static_cast<int64_t>(bad.size()) +
         std::count_if(reasons.begin(), reasons.end(), [](const Finding* f) { return f != nullptr; });
}

std::string Report::text(int width) const {
  Lines out(width);
  const auto kinds = by_kind(examination.findings);
  const int64_t leaving = left_out();
  out.add(fmt::format("{}: {} pair{} in {} line{}{}", name, pairs.size(), pairs.size() == 1 ? "" : "s", lines,
                      lines == 1 ? "" : "s", blank > 0 ? fmt::format(", {} blank", blank) : ""));
  if (examination.displaced != 0)
    out.say(fmt::format("The targets of all lines, or nearly all, stand {} further {} than their sources.",
                        lines_far(examination.displaced), examination.displaced > 0 ? "down" : "up"));
  else if (examination.hopeless)
    out.say(
        "The two sides look as if thrown together: their words hardly tell that one translates the other.");
  else if (!examination.by_words)
    out.say(
        "Too few pairs to learn which words translate which: wrong pairs are told by their lengths only.");
  auto add_kinds = [&](bool leaves_out, const std::string& title) {
    bool titled = false;
    for (int k = 0; k < kKinds; ++k) {
      const auto& found = kinds[static_cast<size_t>(k)];
      const KindName& kind = name_of(static_cast<Kind>(k));
      const bool unreadable = static_cast<Kind>(k) == Kind::unreadable && !bad.empty();
      if (kind.leaves_out != leaves_out || (found.empty() && !unreadable)) continue;
      if (!titled) out.add(title);
      titled = true;
      if (unreadable) {
        out.add(heading(kind, bad.size(), lines));
        for (size_t e = 0; e < std::min(kExamples, bad.size()); ++e)
          out.add(fmt::format("    line {}: {}", bad[e].line, bad[e].reason));
        continue;
      }
      out.add(heading(kind, found.size(), lines));
      if (static_cast<Kind>(k) == Kind::shifted) {
        for (const ShiftedBlock& block : examination.blocks) out.add("    " + shift_of(block, pairs));
        continue;
      }
      for (size_t e = 0; e < std::min(kExamples, found.size()); ++e) {
        const Finding& f = *found[example(e, found.size())];
        out.add(
            fmt::format("    line {}, {}: {}", pairs[f.pair].line, f.detail, side_by_side(pairs[f.pair])));
      }
    }
  };
  add_kinds(true, leaving == 0 ? "" : fmt::format("Worth leaving out: {} of {} lines", leaving, lines));
  add_kinds(false, "Worth knowing, and kept");
  if (leaving == 0 && !examination.hopeless) out.add("Nothing that should be left out.");
  if (!doubted.empty()) out.add("What the model believes least (perplexity of the target)");
  for (const Doubted& d : doubted)
    out.add(fmt::format("    line {}, {:.4g}: {}", pairs[d.pair].line, d.perplexity,
                        side_by_side(pairs[d.pair])));
  if (outlook) add_outlook(*outlook, out);
  return out.text();
}

std::string Report::json() const {
  const auto kinds = by_kind(examination.findings);
  Json findings = Json::array(), blocks = Json::array(), least = Json::array();
  auto add = [&](const KindName& kind, Json numbers, Json details) {
    findings.push_back({{"kind", kind.name},
                        {"says", kind.says},
                        {"left_out", kind.leaves_out},
                        {"count", numbers.size()},
                        {"lines", std::move(numbers)},
                        {"details", std::move(details)}});
  };
  for (int k = 0; k < kKinds; ++k) {
    Json numbers = Json::array(), details = Json::array();
    if (static_cast<Kind>(k) == Kind::unreadable)
      for (const BadLine& b : bad) {
        numbers.push_back(b.line);
        details.push_back(b.reason);
      }
    for (const Finding* f : kinds[static_cast<size_t>(k)]) {
      numbers.push_back(pairs[f->pair].line);
      details.push_back(f->detail);
    }
    if (!numbers.empty()) add(name_of(static_cast<Kind>(k)), std::move(numbers), std::move(details));
  }
  for (const ShiftedBlock& b : examination.blocks)
    blocks.push_back({{"first", pairs[b.first].line}, {"last", pairs[b.last].line}, {"shift", b.shift}});
  for (const Doubted& d : doubted)
    least.push_back({{"line", pairs[d.pair].line},
                     {"perplexity", d.perplexity},
                     {"source", pairs[d.pair].source_text},
                     {"target", pairs[d.pair].target_text}});
  Json out = {{"file", name},
              {"lines", lines},
              {"blank", blank},
              {"pairs", pairs.size()},
              {"left_out", left_out()},
              {"judged_by_words", examination.by_words},
              {"thrown_together", examination.hopeless},
              {"displaced", examination.displaced},
              {"findings", findings},
              {"shifted", blocks}};
  if (!doubted.empty()) out["least_believed"] = least;
  if (outlook) out["training"] = outlook_json(*outlook);
  return json_text::dump(out, 1) + "\n";
}

Cleaned clean(const Report& report, const std::vector<std::string_view>& texts) {
  std::vector<std::vector<std::string_view>> files;
  for (std::string_view text : texts) files.push_back(views_of(text, '\n'));
  auto line_of = [&](int64_t number) {
    const auto i = static_cast<size_t>(number - 1);
    if (files.size() == 1) return std::string(files[0].at(i));
    std::string out;
    for (const auto& file : files) {
      std::string side(file.at(i));
      if (i == 0 && side.starts_with("\xEF\xBB\xBF")) side.erase(0, 3);
      if (side.ends_with('\r')) side.pop_back();
      std::replace(side.begin(), side.end(), '\t', ' ');
      out += (&file == &files.front() ? "" : "\t") + side;
    }
    return out;
  };
  const auto reasons = report.examination.reasons(report.pairs.size());
  Cleaned out;
  size_t bad = 0;
  auto reject = [&](int64_t line, const std::string& reason) {
    out.rejected += fmt::format("{}\t{}\t{}\n", line, reason, line_of(line));
  };
  auto reject_bad_before = [&](int64_t line) {
    for (; bad < report.bad.size() && report.bad[bad].line < line; ++bad)
      reject(report.bad[bad].line,
             fmt::format("{}: {}", name_of(Kind::unreadable).name, report.bad[bad].reason));
  };
  for (size_t i = 0; i < report.pairs.size(); ++i) {
    const int64_t line = report.pairs[i].line;
    reject_bad_before(line);
    if (reasons[i])
      reject(line, fmt::format("{}: {}", name_of(reasons[i]->kind).name, reasons[i]->detail));
    else
      out.kept += line_of(line) + "\n";
  }
  reject_bad_before(INT64_MAX);
  return out;
}

}  // namespace translator::doctor
