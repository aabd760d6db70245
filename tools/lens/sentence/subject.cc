#include <fmt/core.h>

#include <common/error.h>
#include <translator/text/tokenizer.h>
#include <common/utf8.h>

#include "explain/explain.h"

namespace lens {
namespace {

constexpr size_t kMaxWords = 60;

std::vector<std::string> words_of(const translator::Model& model, const std::string& text, const char* what) {
  if (auto bad = translator::utf8::describe_invalid_byte(text); !bad.empty())
    throw translator::InputError(what, 0, bad);
  auto words = translator::tokenize(text, {.lowercase = model.config.lowercase});
  if (words.empty()) throw translator::InputError(what, 0, "has no words");
  if (words.size() > kMaxWords)
    throw translator::InputError(
        what, 0, fmt::format("has {} words; {} at most can be looked at", words.size(), kMaxWords));
  return words;
}

}  // namespace

const gradus::nn::Seq2Seq& Subject::network() const {
  if (const gradus::nn::Seq2Seq* found = model.recurrent()) return *found;
  gradus::fail(
      "lens",
      "this model is a Transformer: it looks at the source once a layer, several heads at a time, and "
      "its decoder looks at itself; only recurrent translators, with one attention a step, are taken "
      "apart; hint: train one with `translator train --model gru --attention multihead --out DIR` for "
      "attention in heads, then `lens explain DIR`; of this one, `translator translate "
      "--attention-map` shows where it looks, `lens report` its training");
}

Subject make_subject(const std::string& directory, const std::string& source, const std::string& target) {
  std::string name = directory;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return make_subject(translator::Model::load(directory), name.substr(name.find_last_of('/') + 1), source,
                      target);
}

Subject make_subject(translator::Model model, const std::string& name, const std::string& source,
                     const std::string& target) {
  Subject s{std::move(model), name, {}, {}, {}, {}, !target.empty()};
  s.source = words_of(s.model, source, "the source sentence");
  s.source_ids = s.model.source.encode(s.source);
  if (s.has_reference) s.target = words_of(s.model, target, "the target sentence");
  else s.target = translator::translate(s.model, {s.source})[0].at(0).tokens;
  if (s.target.size() > kMaxWords)
    s.target.resize(kMaxWords);  // an untrained model may not know where to stop
  s.target_ids = s.model.target.encode(s.target);
  s.source.push_back("</s>");
  s.source_ids.push_back(gradus::nn::kEos);
  s.target.push_back("</s>");
  gradus::nn::to(*s.model.network, gradus::DType::f64);
  return s;
}

}  // namespace lens
