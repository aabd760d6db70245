// training.json: what a run was told, for --resume and for other runs (--config).

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <common/error.h>
#include <common/json_text.h>
#include <common/utf8.h>
#include <gradus/error.h>
#include <gradus/names.h>
#include <translator/commands/commands.h>
#include <translator/model/fields_json.h>
#include <translator/model/files.h>

namespace translator {
namespace {

using json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr const char* kFormat = "gradus-training";

bool is_path(const Field& f) {
  const Free* free = std::get_if<Free>(&f.value);
  return free && (free->kind == std::string("FILE") || free->kind == std::string("DIR"));
}

void append(Fields& to, Fields more) {
  for (Field& f : more)
    if (*f.flags) to.push_back(std::move(f));
}

// All options of a run but its place, and how much it says.
Fields all_fields(TrainCommand& o) {
  Fields out = o.data.fields();
  append(out, o.start_fields());
  append(out, common_fields(o.model));
  append(out, o.token_fields());
  append(out, network_fields(o.model, o.model.model));
  append(out, o.train.budget());
  append(out, o.train.recipe());
  append(out, {{"--probe", Free{&o.probe, "SENTENCE"}},
               {"--seed", Seed{&o.train.seed}},
               {"--threads", Few{&o.common.threads, 1, 256, true}}});
  return out;
}

Names paths_of(const Field& f) {
  Names out;
  if (f.option() == "--data" && !f.text().empty())
    for (const CorpusFile& file : corpus_files(f.text())) out.push_back(file.path);
  else if (is_path(f))
    out.push_back(f.text());
  return out;
}

// The value as the command line says it, of the field with that option; "": there is none.
std::string text_of(const Fields& fields, const std::string& option) {
  for (const Field& f : fields)
    if (f.option() == option) return f.text();
  return "";
}

Names options_of(const Fields& fields) {
  Names out;
  for (const Field& f : fields) out.push_back(f.option());
  return out;
}

// Where the command line says one of `leaders` otherwise than a file, `followers` of the file go with it; where
// they exclude each other, whatever the file says.
struct Group {
  Names leaders, followers;
  bool exclusive = false;
};

std::vector<Group> groups_of(TrainCommand& o) {
  Names network = options_of(network_fields(o.model, o.model.model));
  network.push_back("--lr");
  const Names pair = {"--source", "--target"}, valid = {"--valid-source", "--valid-target"};
  return {{pair, pair},
          {{"--data"}, pair, true},
          {pair, {"--data"}, true},
          {valid, valid},
          {{"--valid"}, valid, true},
          {valid, {"--valid"}, true},
          {{"--batch-size"}, {"--batch-tokens"}, true},
          {{"--batch-tokens"}, {"--batch-size"}, true},
          {{"--epochs"}, {"--max-minutes"}, true},
          {{"--max-minutes"}, {"--epochs"}, true},
          {{"--model"}, network},
          {{"--optimizer"}, {"--lr", "--momentum", "--weight-decay"}},
          {{"--clip-value"}, {"--clip-norm"}},
          {{"--guided-alignment"}, {"--links"}},
          {{"--subwords"},
           {"--subword-model", "--subword-size", "--subword-dropout", "--min-count", "--max-vocabulary"}}};
}

void must_be_known(const Field& f, const FieldsFile& file, const std::string& key) {
  const Word* word = std::get_if<Word>(&f.value);
  if (!word || word->names.empty() || word->aliases.count(*word->value) ||
      std::count(word->names.begin(), word->names.end(), *word->value))
    return;
  const std::string nearest = gradus::nearest_name(*word->value, word->names);
  file.fault(fmt::format("\"{}\" cannot be {}{}", key, *word->value,
                         nearest.empty() ? "" : "; hint: " + nearest + "?"));
}

json parsed(const FieldsFile& file) {
  constexpr size_t kMost = 1 << 20;  // bytes
  std::ifstream stream(file.path, std::ios::binary);
  std::error_code ignored;
  if (!stream || std::filesystem::is_directory(file.path, ignored))
    throw InputError(file.path, 0, "cannot be read: is there such a file?");
  std::string text(kMost + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMost) file.fault("it has more than a million bytes");
  try {
    json all = json_text::parse(text);
    if (!all.is_object()) file.fault("it is no object");
    return all;
  } catch (const json::exception& e) {
    const std::string_view what = e.what();
    file.fault(utf8::printable(what.substr(what.find("] ") + 2)));
  }
}

// What the file says, in place of what `o` has, and its options that said something.
Names read_all(const json& all, const FieldsFile& file, TrainCommand& o) {
  auto set = [&](const Field& f, const std::string& key, const json& value) {
    try {
      set_from_json(f, value, file, key);
    } catch (const gradus::Error& e) {  // an unknown cell
      file.fault(fmt::format("\"{}\": {}", key, e.message()));
    }
    must_be_known(f, file, key);
  };
  if (all.contains("model")) set(common_fields(o.model)[0], "model", all.at("model"));
  const Fields fields = all_fields(o);
  const Names known = options_of(fields);
  Names said;
  for (const auto& [key, value] : all.items()) {
    if (key == "format" || key == "version") continue;
    const auto at = std::find(known.begin(), known.end(), "--" + key);
    if (at == known.end()) {
      const std::string nearest = gradus::nearest_name("--" + key, known);
      file.fault(fmt::format("\"{}\" is no option of a run with a {}{}", utf8::printable(key).substr(0, 60),
                             o.model.model, nearest.empty() ? "" : "; hint: " + nearest.substr(2) + "?"));
    }
    set(fields[static_cast<size_t>(at - known.begin())], key, value);
    said.push_back(*at);
  }
  return said;
}

void must_be_there(const Field& f, const std::string& path, const std::string& file) {
  std::error_code ignored;
  if (path == "-")
    throw UsageError(fmt::format("{} names standard input for {}: {} - reads it from there again", file,
                                 f.option(), f.option()));
  if (!path.empty() && !std::filesystem::exists(path, ignored))
    throw InputError(
        path, 0, fmt::format("is not there, though {} names it: {} tells where it is now", file, f.option()));
}

void take(TrainCommand& o, const json& all, const FieldsFile& file) {
  // A whole file without it is of before there was one, and of a run whose dropout did not rise.
  if (all.contains("format") && !all.contains("dropout-warmup")) o.configured.insert("--dropout-warmup");
  TrainCommand there = o;
  const Names said = read_all(all, file, there);
  const Fields found = all_fields(there);
  if (!o.given.count("--model")) o.model.model = there.model.model;
  std::set<std::string> left(said.begin(), said.end());
  for (const Group& group : groups_of(there))
    for (const std::string& leader : group.leaders)
      if (o.given.count(leader) &&
          (group.exclusive || text_of(all_fields(o), leader) != text_of(found, leader)))
        for (const std::string& follower : group.followers) left.erase(follower);
  const Fields own = all_fields(o);
  for (const Field& to : own)
    for (const Field& from : found)
      if (to.option() == from.option() && left.count(to.option()) && o.open(to.option().c_str())) {
        to.assign(from);
        o.configured.insert(to.option());
        const bool needed = !(o.resume && to.option() == "--from");
        for (const std::string& path : needed ? paths_of(to) : Names()) must_be_there(to, path, file.path);
      }
}

// What a run keeps when it goes on. Files may have moved: their pairs are compared with what last.safetensors
// says, but of a run that held some of its own out.
Fields what_stays(TrainCommand& o, const DataOptions& own) {
  Fields out = o.start_fields();
  append(out, o.train.recipe());
  append(out, {{"--seed", Seed{&o.train.seed}}});
  Names others = {"--batch-size", "--swap", "--max-length", "--corpus-size", "--verb-final"};
  if (own.valid.empty() && own.valid_source.empty())
    others.insert(others.end(), {"--valid", "--valid-source"});
  for (const Fields& fields : {o.data.fields(), o.train.budget()})
    for (const Field& f : fields)
      if (std::count(others.begin(), others.end(), f.option())) out.push_back(f);
  return out;
}

FieldsFile config_file(const std::string& path) {
  return {path, "is not a configuration of a run", "is not a configuration of a run"};
}

}  // namespace

Fields TrainCommand::token_fields() {
  return {
      {"--subword-size", Whole{&subword_size, 300, kMostWords, kOrZero},
       "Pieces at most, 256 bytes among them (default: by the pairs, 2000 to 8000)"},
      {"--min-count", Whole{&min_count, 1, 1000000000, kOrZero},
       "Without pieces: words seen less often are <unk> (default: 2; 1 for the embedded corpus)"},
      {"--max-vocabulary", Whole{&max_vocabulary, 5, kMostWords}, "Without pieces: words a side at most"}};
}

Fields TrainCommand::start_fields() {
  return {
      {"--from", Free{&from, "DIR"},
       "Start from this trained model: its network, its tokens and how it reads text; other data and another "
       "recipe"},
      {"--extend-vocabulary", Switch{&extend_vocabulary},
       "With --from: add the words of the data that the model lacks, as --min-count and --max-vocabulary say"}};
}

std::string to_json(const TrainCommand& command) {
  TrainCommand o = command;  // lists point into what they list
  json out = {{"format", kFormat}, {"version", 1}};
  for (const Field& f : all_fields(o)) {
    if (f.option() == "--data")
      o.data.data = absolute_corpus_files(o.data.data);
    else if (is_path(f))
      *std::get<Free>(f.value).value = absolute_path(f.text());
    out[f.option().substr(2)] = to_json(f);
  }
  return json_text::dump(out, 2) + "\n";
}

void take_config(TrainCommand& o, const std::string& path) {
  const FieldsFile file = config_file(path);
  const json all = parsed(file);
  if (all.contains("format") && all.at("format") != kFormat)
    file.fault(fmt::format("\"format\" must be {}: {}", kFormat,
                           utf8::printable(json_text::dump(all.at("format")))));
  if (all.contains("version") && all.at("version") != 1)
    file.fault("\"version\" must be 1: it is of a newer program, or of none");
  take(o, all, file);
}

void take_own_config(TrainCommand& o) {
  const FieldsFile file = config_file(in(o.train.out, "training.json"));
  std::error_code ignored;
  if (!std::filesystem::exists(file.path, ignored)) {
    if (o.data.embedded() && read_config(in(o.train.out, "config.json")).trained_on.corpus != "embedded")
      throw InputError(file.path, 0, "is missing: --data names the pairs that the run learns from");
    return;
  }
  const json all = parsed(file);
  if (!all.contains("format")) return;  // older ones hold less
  TrainCommand there = o;
  read_all(all, file, there);
  const Fields own_fields = all_fields(there);
  for (const Field& f : what_stays(o, there.data)) {
    const std::string asked = is_path(f) ? absolute_path(f.text()) : f.text();
    const std::string own = text_of(own_fields, f.option());
    if (o.given.count(f.option()) && asked != own)
      throw UsageError(fmt::format("the run in {} began with {} {}, not {}: --resume cannot change it",
                                   o.train.out, f.option(), own.empty() ? "nothing" : own, asked));
  }
  take_config(o, file.path);
}

}  // namespace translator
