#include <translator/text/alignment.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

namespace translator {
namespace {

void sort_unique(Links& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

bool parse_number(std::string_view text, int32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0 && text[0] != '-';
}

}  // namespace

std::optional<GoldAlignment> parse_moses(std::string_view text) {
  GoldAlignment out;
  constexpr std::string_view kBlank = " \r";
  for (size_t at = text.find_first_not_of(kBlank); at != text.npos; at = text.find_first_not_of(kBlank, at)) {
    const std::string_view item = text.substr(at, text.find_first_of(kBlank, at) - at);
    at += item.size();
    const size_t mark = item.find_first_of("-?");
    if (mark == std::string_view::npos || mark == 0 || mark + 1 == item.size()) return std::nullopt;
    Link link;
    if (!parse_number(item.substr(0, mark), link.source)) return std::nullopt;
    if (!parse_number(item.substr(mark + 1), link.target)) return std::nullopt;
    (item[mark] == '-' ? out.sure : out.possible).push_back(link);
  }
  sort_unique(out.sure);
  sort_unique(out.possible);
  std::erase_if(out.possible,
                [&](const Link& link) { return std::binary_search(out.sure.begin(), out.sure.end(), link); });
  return out;
}

std::string format_moses(const GoldAlignment& alignment) {
  std::string out;
  const auto write = [&out](const Links& links, char mark) {
    for (const Link& link : links) {
      if (!out.empty()) out.push_back(' ');
      out += std::to_string(link.source) + mark + std::to_string(link.target);
    }
  };
  write(alignment.sure, '-');
  write(alignment.possible, '?');
  return out;
}

std::string format_moses(const Links& links) { return format_moses(GoldAlignment{.sure = links}); }

GoldAlignment swapped(GoldAlignment alignment) {
  for (Links* links : {&alignment.sure, &alignment.possible}) {
    for (Link& link : *links) std::swap(link.source, link.target);
    std::sort(links->begin(), links->end());
  }
  return alignment;
}

bool fits(const GoldAlignment& alignment, int64_t source_length, int64_t target_length) {
  const auto inside = [&](const Link& link) {
    return link.source >= 0 && link.target >= 0 && link.source < source_length && link.target < target_length;
  };
  return std::all_of(alignment.sure.begin(), alignment.sure.end(), inside) &&
         std::all_of(alignment.possible.begin(), alignment.possible.end(), inside);
}

Links links_from_attention(const Weights& weights, int64_t source_length, int64_t target_length) {
  if (static_cast<int64_t>(weights.values.size()) != weights.rows * weights.columns) {
    throw std::invalid_argument("links_from_attention: rows x columns must be the number of weights");
  }
  const int64_t rows = target_length < 0 ? weights.rows : std::min(target_length, weights.rows);
  const int64_t words = source_length < 0 ? weights.columns : source_length;
  Links out;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t best = weights.largest_of(row);
    if (best >= 0 && best < words) out.push_back({static_cast<int32_t>(best), static_cast<int32_t>(row)});
  }
  std::sort(out.begin(), out.end());
  return out;
}

void AlignmentScore::add(const Links& system_links, const GoldAlignment& gold,
                         const AlignmentOptions& options) {
  const std::set<Link> sure_links(gold.sure.begin(), gold.sure.end());
  std::set<Link> possible_links(gold.possible.begin(), gold.possible.end());
  possible_links.insert(sure_links.begin(), sure_links.end());
  std::set<int32_t> aligned;
  for (const Link& link : possible_links) aligned.insert(link.target);

  sure += static_cast<int64_t>(sure_links.size());
  for (const Link& link : std::set<Link>(system_links.begin(), system_links.end())) {
    if (options.ignore_unaligned_targets && !aligned.contains(link.target)) continue;
    ++system;
    sure_hits += sure_links.contains(link) ? 1 : 0;
    possible_hits += possible_links.contains(link) ? 1 : 0;
  }
}

double AlignmentScore::error_rate() const {
  if (system + sure == 0) return 0;
  return 1.0 - static_cast<double>(sure_hits + possible_hits) / static_cast<double>(system + sure);
}

}  // namespace translator
