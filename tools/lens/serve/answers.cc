#include "answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <common/utf8.h>
#include <gradus/kernels/inference.h>
#include <translator/inference/translation.h>
#include <translator/text/word_picture.h>

#include "commands.h"
#include "explain/explain.h"
#include "jobs.h"

namespace lens {
namespace {

namespace nn = gradus::nn;
using nn::SearchStep;

constexpr int kAlternatives = 8;
constexpr int kMayWait = 3;  // for an explanation, which takes a second or several

// Whoever asks for what a model cannot do is told so.
[[noreturn]] void cannot(const std::string& why) { throw Refused(422, why); }

nn::Attention* attention_of(const translator::Model& model) {
  const nn::Seq2Seq* network = model.recurrent();
  const nn::RecurrentDecoder* decoder = network ? nn::as_recurrent(*network->decoder) : nullptr;
  return decoder ? decoder->attention.get() : nullptr;
}

void require_temperature(const translator::Model& model) {
  if (!attention_of(model))
    cannot(model.recurrent() ? "this model has no attention to make sharper or flatter"
                             : "a Transformer's many attentions have no temperature of their own");
}

// <pad> and <s> are never said, and nothing behind </s>.
void require_words(const translator::Model& model, const std::vector<int32_t>& ids, const char* what_for) {
  for (int32_t id : ids)
    if (id >= model.target.size() || id == nn::kPad || id == nn::kBos)
      cannot(fmt::format("the model has no word {} to {}", id, what_for));
  if (!ids.empty() && std::find(ids.begin(), ids.end() - 1, nn::kEos) != ids.end() - 1)
    cannot("a translation ends with its first </s>");
}

// Why no word of a model can be explained; "": it can, as far as is known before it is tried.
std::string unexplained(const translator::Model& model) {
  if (!model.recurrent()) return "";
  try {
    static_cast<void>(Dissection(network_to_dissect(model), {nn::kEos}, {}));
    return "";
  } catch (const gradus::Error& e) {
    const std::string text = reason(e);  // "why; hint: ..."
    return text.substr(0, text.find("; hint: "));
  }
}

// Whether they are the same numbers under the same names.
bool alike(const translator::Model& a, const translator::Model& b) {
  const nn::StateDict x = nn::state_dict(*a.network), y = nn::state_dict(*b.network);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    const size_t bytes = static_cast<size_t>(p.second.numel() * gradus::size_of(p.second.dtype()));
    return p.first == q.first && p.second.shape() == q.second.shape() &&
           p.second.dtype() == q.second.dtype() && std::memcmp(p.second.raw(), q.second.raw(), bytes) == 0;
  });
}

// Of what the weights that are shown are the mean, where there are several at once.
const char* weights_of(const Served& s) {
  if (!s.model.recurrent()) return "mean over the heads of the last layer";
  return s.model.config.network.attention == "multihead" ? "mean over the heads" : "";
}

json about(const Served& s) {
  const translator::ModelConfig& c = s.model.config;
  const bool tempered = attention_of(s.model);
  return {{"name", s.name},
          {"kind", s.model.recurrent() ? "recurrent" : "Transformer"},
          {"attention", tempered ? c.network.attention : ""},
          {"attention_temperature", tempered ? json(c.network.attention_options.temperature) : json(nullptr)},
          {"attends", s.model.network->attends()},
          {"weights", weights_of(s)},
          {"unexplained", unexplained(s.model)},
          {"from", c.source_language},
          {"to", c.target_language},
          {"tokens", c.tokens()},
          {"parameters", nn::num_parameters(*s.model.network)}};
}

// A model whose attention is sharper or flatter, while it lives.
class Tempered {
 public:
  Tempered(const Served& served, const std::optional<double>& temperature)
      : attention_(temperature ? attention_of(served.model) : nullptr), generator_(served.generator.get()) {
    if (!attention_) return;
    before_ = attention_->options.temperature;
    attention_->options.temperature = *temperature;
    own_ = served.model.generator();  // weights that are laid out have the scale in them
    generator_ = own_.get();
  }
  ~Tempered() {
    if (attention_) attention_->options.temperature = before_;
  }
  Tempered(const Tempered&) = delete;
  const nn::Generator& generator() const { return *generator_; }

 private:
  nn::Attention* attention_;
  double before_ = 1;
  std::unique_ptr<nn::Generator> own_;
  const nn::Generator* generator_;
};

std::string shown(const translator::Model& model, int32_t id) { return model.target.token(id); }

json source_json(const ServedModels::Job& job) {
  const translator::Model& model = job.served->model;
  std::vector<bool> unknown(job.source.words.size());
  for (size_t i = 0; i < job.source.pieces.size(); ++i)
    if (!model.source.contains(job.source.pieces[i]))
      unknown[static_cast<size_t>(job.source.word_of[i])] = true;
  return {{"event", "source"},
          {"words", job.source.words},
          {"unknown", unknown},
          {"pieces", job.source.pieces},
          {"word_of", job.source.word_of}};
}

// The words that a step could best say, </s> among them.
json alternatives(const translator::Model& model, const float* logits, int64_t V, double log_sum) {
  std::vector<int32_t> ids;
  for (int32_t v = 0; v < V; ++v)
    if (v != nn::kPad && v != nn::kBos) ids.push_back(v);
  const auto end = ids.begin() + std::min<long>(kAlternatives, static_cast<long>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  json out = json::array();
  for (auto id = ids.begin(); id != end; ++id)
    out.push_back({{"token", shown(model, *id)},
                   {"id", *id},
                   {"probability", Numbers{.digits = 6}(std::exp(logits[*id] - log_sum))}});
  return out;
}

// What is told of a greedy search while it goes on. Weights are told by word: a word's row is the mean of its
// pieces', a source word's column their sum.
class Telling {
 public:
  explicit Telling(const ServedModels::Job& job) : job_(job), model_(job.served->model) {}

  json of(const SearchStep& step) {
    const SearchStep::Considered& chosen = step.considered.at(0);
    const int64_t V = step.logits.size(1);
    const float* logits = step.logits.f32();
    const double log_sum = gradus::kernels::log_sum_exp(logits, V);
    const bool ends = chosen.token == nn::kEos;
    if (!ends) tokens_.push_back(shown(model_, chosen.token));
    const translator::Segmented target = model_.writes.words_of(tokens_);
    if (step.weights.defined()) {
      const float* w = step.weights.f32();
      rows_.emplace_back(w, w + job_.source.pieces.size() + 1);
    }
    const size_t word = ends ? target.words.size() : static_cast<size_t>(target.word_of.back());
    json row = nullptr;
    if (!rows_.empty())
      row =
          Numbers{.digits = 4}(widened(translator::picture_of(job_.source, target, rows_).weights.at(word)));
    return {{"event", "token"},
            {"token", shown(model_, chosen.token)},
            {"id", chosen.token},
            {"probability", Numbers{.digits = 6}(std::exp(logits[chosen.token] - log_sum))},
            {"forced", step.step < static_cast<int64_t>(job_.search.prefix.size())},
            {"word", word},
            {"words", target.words},
            {"weights", row},
            {"alternatives", alternatives(model_, logits, V, log_sum)}};
  }

 private:
  static std::vector<double> widened(const std::vector<float>& row) { return {row.begin(), row.end()}; }

  const ServedModels::Job& job_;
  const translator::Model& model_;
  std::vector<std::string> tokens_;
  std::vector<std::vector<float>> rows_;
};

}  // namespace

Served::Served(const std::string& where, std::string called)
    : directory(where),
      name(std::move(called)),
      model(translator::Model::load(where)),
      generator(model.generator()) {}

ServedModels::ServedModels(const std::vector<std::string>& directories) {
  const auto called = [&](const std::string& name) {
    return std::any_of(served_.begin(), served_.end(), [&](auto& s) { return s->name == name; });
  };
  // The directories of models, and what each is called.
  std::vector<std::pair<std::string, std::string>> wanted;
  for (const std::string& directory : directories)
    wanted.emplace_back(directory, translator::utf8::printable(name_of_model(directory)));
  if (wanted.empty())
    wanted = {{own_model(), "the small model"}, {own_model("model-transformer"), "the small Transformer"}};
  for (const auto& [directory, plain] : wanted) {
    std::string name = plain;
    for (int n = 2; called(name); ++n) name = fmt::format("{} ({})", plain, n);
    served_.push_back(std::make_unique<Served>(directory, name));
  }
  about_["models"] = json::array();
  for (const auto& s : served_) about_["models"].push_back(about(*s));
  about_["limits"] = {{"text_bytes", kMostTextBytes}, {"tokens", kMostTokens}};
  page_ = assemble_page("serve", about_);
}

const Served& ServedModels::find(const std::string& name) const {
  for (const auto& s : served_)
    if (s->name == name || name.empty()) return *s;
  std::string names;
  for (const auto& s : served_) names += (names.empty() ? "" : ", ") + s->name;
  throw Refused(404, fmt::format("there is no model \"{}\"; served are: {}",
                                 translator::utf8::fit(translator::utf8::printable(name), 60), names));
}

ServedModels::Job ServedModels::prepare(const ServeRequest& request) const {
  Job job{&find(request.model), request, {}, {}};
  const translator::Model& model = job.served->model;
  const char* tokens = model.config.tokens();
  job.source = model.reads.split(request.text);
  if (job.source.pieces.empty()) cannot("the sentence has no words");
  if (job.source.pieces.size() > kMostTokens)
    cannot(fmt::format("the sentence has {} {}; {} at most are taken", job.source.pieces.size(), tokens,
                       kMostTokens));
  if (auto fault = model.length_fault(job.source.pieces.size()); !fault.empty())
    cannot("the sentence " + fault);

  job.search.prefix = request.prefix;
  for (const std::string& piece : model.writes.split(request.force).pieces) {
    if (!model.target.contains(piece))
      cannot(fmt::format("\"{}\" is not in the model's vocabulary: it cannot be made to say it",
                         translator::utf8::printable(piece)));
    job.search.prefix.push_back(model.target.id(piece));
  }
  require_words(model, job.search.prefix, "begin with");
  if (job.search.prefix.size() > kMostTokens)
    cannot(fmt::format("{} {} are forced; {} at most are", job.search.prefix.size(), tokens, kMostTokens));

  const size_t words = job.source.words.size();
  for (int32_t word : request.hidden) {
    if (static_cast<size_t>(word) > words)
      cannot(fmt::format("there is no source word {} to mask: they are 0 to {}, </s> the last", word, words));
    for (size_t i = 0; i <= job.source.pieces.size(); ++i)
      if ((i < job.source.pieces.size() ? job.source.word_of[i] : static_cast<int32_t>(words)) == word)
        job.search.hidden.push_back(static_cast<int32_t>(i));
  }
  std::vector<int32_t>& hidden = job.search.hidden;
  std::sort(hidden.begin(), hidden.end());
  hidden.erase(std::unique(hidden.begin(), hidden.end()), hidden.end());
  if (!hidden.empty() && !model.network->attends()) cannot("this model has no attention to mask");
  if (hidden.size() > job.source.pieces.size()) cannot("all words are masked: one must be left to look at");
  if (request.attention_temperature) require_temperature(model);
  job.search.seed = request.seed;
  return job;
}

void ServedModels::translate(const Job& job, const std::function<bool(const json&)>& say) const {
  const translator::Model& model = job.served->model;
  const Stopwatch watch;
  if (!say(source_json(job))) return;
  Telling telling(job);
  bool heard = true, finished = false;
  nn::SearchOptions options;
  options.sentences = {job.search};
  options.sampling.temperature = job.request.sampling_temperature;
  options.watch = [&](const SearchStep& step) {
    heard = !stopping_ && say(telling.of(step));
    finished = step.considered.at(0).fate == SearchStep::Fate::finished;
    return heard;
  };
  json end;
  {
    std::lock_guard alone(job.served->busy);
    const Tempered tempered(*job.served, job.request.attention_temperature);
    const auto found = translator::translate(model, tempered.generator(), {job.source}, options);
    if (!heard) return;
    const translator::Translation& t = found.at(0).at(0);
    const translator::Segmented target = model.writes.words_of(t.tokens);
    end = {{"event", "end"},        {"translation", model.writes.join(t.tokens)},
           {"words", target.words}, {"log_probability", Numbers{}(t.log_probability)},
           {"finished", finished},  {"seconds", std::round(watch.seconds() * 1e5) / 1e5}};
  }
  say(end);
}

json ServedModels::beam(const Job& job) const {
  const translator::Model& model = job.served->model;
  if (job.search.seed) cannot("a beam takes the most probable words: it draws none");
  json nodes = json::array();
  std::vector<int64_t> rows = {-1};  // the node that each row stands at; -1: the beginning
  nn::SearchOptions options{.beam_size = job.request.beam_size};
  options.sentences = {job.search};
  options.watch = [&](const SearchStep& step) {
    std::vector<int64_t> next;
    for (const SearchStep::Considered& c : step.considered) {
      const bool kept = c.fate == SearchStep::Fate::kept;
      if (kept) next.push_back(static_cast<int64_t>(nodes.size()));
      nodes.push_back({{"parent", rows.at(static_cast<size_t>(c.parent))},
                       {"token", shown(model, c.token)},
                       {"id", c.token},
                       {"log_probability", Numbers{}(c.log_probability)},
                       {"fate", kept                                   ? "kept"
                                : c.fate == SearchStep::Fate::finished ? "finished"
                                                                       : "cut"}});
    }
    rows = next;
    return !stopping_.load();
  };
  std::lock_guard alone(job.served->busy);
  const Tempered tempered(*job.served, job.request.attention_temperature);
  const auto found = translator::translate(model, tempered.generator(), {job.source}, options);
  json best = json::array();
  for (const translator::Translation& t : found.at(0))
    best.push_back({{"translation", model.writes.join(t.tokens)},
                    {"log_probability", Numbers{}(t.log_probability)}});
  return {{"nodes", nodes}, {"translations", best}};
}

std::string ServedModels::explain(const ExplainRequest& request) const {
  const Served& served = find(request.model);
  struct Waiting {
    std::atomic<int>& count;
    const int before = count++;
    ~Waiting() { --count; }
  } const waiting{waiting_};
  if (waiting.before > kMayWait)
    throw Refused(503, "others wait for explanations; ask again in some seconds");
  std::lock_guard one(explaining_);
  translator::Model model = translator::Model::load(served.directory);
  if (!alike(model, served.model))
    throw Refused(409, fmt::format("{} holds another model than was loaded when serving began; start lens "
                                   "serve anew to ask that one",
                                   translator::utf8::printable(served.directory)));
  std::string name = served.name;
  if (request.attention_temperature) {
    require_temperature(model);
    attention_of(model)->options.temperature = *request.attention_temperature;
    name += fmt::format(", its attention at temperature {}", *request.attention_temperature);
  }
  Sentence sentence;
  if (request.tokens) {
    std::vector<int32_t> said = *request.tokens;
    require_words(model, said, "have said");
    if (!said.empty() && said.back() == nn::kEos) said.pop_back();
    sentence = read_said(model, request.text, said);
  } else {
    sentence = read_sentence(model, request.text, request.target);
  }
  const Subject subject = make_subject(std::move(model), name, std::move(sentence));
  const auto& word_of = subject.target.word_of;
  const auto at = std::find(word_of.begin(), word_of.end(), static_cast<int32_t>(request.word));
  if (request.word >= 0 && at == word_of.end())
    cannot(fmt::format("the translation has no word {}: they are 0 to {}, </s> the last", request.word,
                       word_of.back()));
  return explain_page(subject, request.word < 0 ? -1 : at - word_of.begin());
}

}  // namespace lens
