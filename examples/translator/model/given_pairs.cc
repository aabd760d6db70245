#include <translator/model/given_pairs.h>

#include <common/error.h>

namespace translator {
namespace {

// Leaves out what the model cannot take: as bad a line as one without a tab.
void drop_too_long(ParallelData& data, const Model& model, const ReadOptions& options) {
  std::erase_if(data.pairs, [&](const SentencePair& p) {
    std::string fault;
    if (fault = model.length_fault(model.reads, p.source_text); !fault.empty())
      fault = "the source side " + fault;
    else if (fault = model.length_fault(model.writes, p.target_text); !fault.empty())
      fault = "the target side " + fault;
    if (fault.empty()) return false;
    InputError error(data.report.name, p.line, fault);
    if (options.strict) throw error;
    --data.report.pairs;
    if (data.report.bad++ < options.kept_messages) data.report.messages.emplace_back(error.what());
    return true;
  });
}

}  // namespace

GivenPairs read_given_pairs(const GivenPairsOptions& o, const std::vector<const Model*>& models) {
  ReadOptions read = o.read;
  if (!models.empty()) read.text = models[0]->reads.reading();
  ParallelData data = o.target.empty() ? read_pairs(o.pairs, read) : read_pairs(o.pairs, o.target, read);
  for (const Model* model : models) drop_too_long(data, *model, read);
  if (data.report.bad > 0 || data.report.blank > 0 || data.report.with_further > 0) data.report.tell();
  if (data.pairs.empty()) throw InputError(data.report.name, 0, "has no usable sentence pairs");
  return {std::move(data.pairs), data.report.lines, data.report.bad};
}

std::string line_by_line(const std::vector<std::string>& texts, const GivenPairs& given) {
  std::string out;
  int64_t written = 0;
  for (size_t i = 0; i < texts.size(); ++i, ++written) {
    for (; written + 1 < given.pairs[i].line; ++written) out += "\n";
    out += texts[i] + "\n";
  }
  for (; written < given.lines; ++written) out += "\n";
  return out;
}

}  // namespace translator
