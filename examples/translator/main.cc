// The translator: Bahdanau, Cho and Bengio 2014 (arXiv:1409.0473), and Luong et al. 2015,
// at a laptop's scale.
//
//   translator train                                    the embedded English-French corpus, good defaults
//   translator translate model "he doesn't like apples" --attention-map
//
// This file only reads the command line. Of the rooms each knows those before it only: text/ (tokens, pieces,
// scores of text), corpus/ (a grammar of English and French), doctor/ (what is wrong with pairs), model/ (data,
// and what a model directory holds), inference/ (translations, and what they are worth), training/, commands/.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <tuple>
#include <variant>

#include <gradus/nn/attention/attention.h>
#include <translator/commands/options.h>
#include <common/program.h>
#include <common/tell.h>

namespace translator {
namespace {

using command_line::Command;
using command_line::Option;

// An option of one of the lists that configurations have.
struct AddOption {
  const Command& c;
  const Field& f;
  template <class T>
  Option operator()(const Range<T>& kind) const {
    const double least = static_cast<double>(kind.least), most = static_cast<double>(kind.most);
    Option option = c.option(f.flags, *kind.value, f.help);
    return least == kAboveZero ? option.positive(most) : option.range(least, most);
  }
  Option operator()(const Seed& kind) const { return c.option(f.flags, *kind.value, f.help); }
  Option operator()(const Free& kind) const {
    return c.option(f.flags, *kind.value, f.help).type_name(kind.kind);
  }
  Option operator()(const Switch& kind) const { return c.flag(f.flags, *kind.value, f.help); }
  Option operator()(const Word& kind) const {
    return c.option(f.flags, *kind.value, f.help).one_of(kind.names, kind.aliases);
  }
  Option operator()(const Cell& kind) const {
    auto set = [kind](const std::string& name) { kind.set(name); };
    return c.option(f.flags, set, f.help).one_of(gradus::nn::cell_names());
  }
};

// Those of a list that are meant for the command line; of these, where names are given, no others. Their help
// tells the default, or CLI11 does.
std::map<std::string, Option> add(const Command& c, const Fields& fields,
                                  const std::set<std::string>& only = {}) {
  std::map<std::string, Option> out;
  for (const Field& f : fields) {
    if (!*f.help || (!only.empty() && !only.count(f.option()))) continue;
    Option option = std::visit(AddOption{c, f}, f.value);
    const bool tells = std::get_if<Switch>(&f.value) || std::get_if<Free>(&f.value);
    if (!tells && !std::strstr(f.help, "(default: ")) option.show_default();
    out.emplace(f.option(), option);
  }
  return out;
}

// Notes what is given; options of both kinds of network have one value.
void finish(const Command& c, TrainCommand& o) {
  for (const std::string& option : c.given()) o.given.insert(option);
  for (const Field& to : network_fields(o.model, "transformer"))
    for (const Field& from : network_fields(o.model, "gru"))
      if (to.option() == from.option() && o.given.count(to.option())) to.assign(from);
}

std::string list_attentions() {
  std::string out = "Attentions:\n";
  for (const auto& kind : gradus::nn::attention_kinds()) {
    std::string names = kind.name;
    for (const std::string& alias : kind.aliases) names += ", " + alias;
    out += fmt::format("  {:<26} {}\n", names, kind.description);
  }
  return out + fmt::format("  {:<26} {}", "none", "no attention: one vector for the whole source");
}

void add_command(const Command& app, CorpusCommand& o, int& exit_code) {
  Command c = app.add_command("corpus", "Write the embedded English-French sentences, made by a grammar");
  c.option("--split", o.split,
           "train, valid or test: no sentence is in two of them, whatever the seed and the lengths")
      .one_of({"train", "valid", "test"})
      .show_default();
  c.option("-n,--count", o.count, "Pairs (default: 40000 of train, 1000 of the others)").range(1, 2000000);
  c.option("--seed", o.seed, "The same seed gives the same sentences everywhere").show_default();
  c.option("--max-length", o.max_length, "Tokens on either side at most").show_default().range(3, 100);
  c.flag(
      "--verb-final", o.verb_final,
      "The same French words in the order of a language that puts heads last: \"il pommes les ne aime pas\"");
  file(c, "-o,--out", o.out, "TSV file: English, French; - is stdout").show_default();
  c.flag("--links", o.links, "A third column with the word alignment in Moses form (0-0 1-2, token numbers)");
  file(c, "--alignments", o.alignments, "File for the alignments alone, a line each");
  c.flag("--tokens", o.tokens, "Tokens with spaces between them instead of readable text");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

// Where pairs come from and how they are read, for train and compare.
void add_data_options(const Command& c, TrainCommand& o) {
  auto option = add(c, o.data.fields());
  auto go_together = [&](const char* source, const char* target) {
    option.at(target).needs(option.at(source));
    option.at(source).needs(option.at(target));
  };
  option.at("--source").excludes(option.at("--data").once("several files go with commas: a.tsv,b.tsv"));
  go_together("--source", "--target");
  go_together("--valid-source", "--valid-target");
  add(c, common_fields(o.model), {"--case", "--subwords", "--subword-model"});
  add(c, o.token_fields());
}

void add_command(const Command& app, TrainCommand& o, int& exit_code) {
  o.train.out = "model";
  Command c = app.add_command("train", "Train a model; without arguments on the embedded corpus");
  add_data_options(c, o);

  auto kind_of_model = add(c, common_fields(o.model), {"--model"}).at("--model");
  c.option("--together", o.together,
           "Several models at once, each with its part of --threads and a seed of its own, that will "
           "translate as one: gru,transformer, or gru,gru. --out then holds a directory of each; an option of "
           "one kind is for the models of that kind")
      .delimiter(',')
      .one_of({"gru", "transformer"})
      .take_all()
      .type_name("MODELS")
      .excludes(kind_of_model);
  for (const char* kind : {"gru", "transformer"}) add(c, network_fields(o.model, kind));
  c.footer(list_attentions());
  auto start = add(c, o.start_fields());
  start.at("--extend-vocabulary").needs(start.at("--from"));
  auto budget = add(c, o.train.budget());
  auto recipe = add(c, o.train.recipe());
  recipe.at("--batch-tokens").excludes(budget.at("--batch-size"));
  c.option("--probe", o.probe,
           "Sentence whose translation and attention are watched at each validation (default: one of the "
           "validation's)")
      .type_name("SENTENCE");
  c.option("--seed", o.train.seed, "Of weights, order and dropout").show_default();
  c.option("-o,--out", o.train.out, "Model directory").show_default().type_name("DIR");
  auto resume = c.flag("--resume", o.resume, "Go on with the run in --out, with its data and options");
  c.flag("--force", o.force, "Replace the model in --out").excludes(resume);
  file(c, "--config", o.config,
       "Options of a run, as any training.json holds them; those on the command line come first")
      .excludes(resume);
  c.flag("--print-config", o.print_config,
         "Print all options, as training.json would hold them, and do no more");
  c.flag("-q,--quiet", o.train.quiet, "Errors only");
  add_common_options(c, o.common);
  c.callback([&o, c, &exit_code] {
    finish(c, o);
    exit_code = run(o);
  });
}

void add_command(const Command& app, CompareCommand& o, int& exit_code) {
  TrainCommand& t = o.train;
  o.attentions = {"none",     "uniform", "bahdanau", "dot",       "general", "concat",
                  "location", "local-m", "local-p",  "multihead", "oracle",  "transformer"};
  Command c = app.add_command("compare", "Train one model for each attention and seed, and compare them");
  Word racers = attention_name(t.model.network.attention);
  racers.names.push_back("transformer");
  c.option("-a,--attention", o.attentions,
           fmt::format("Names with commas between them, see train --help; transformer is train --model "
                       "transformer (default: {})",
                       fmt::join(o.attentions, ", ")))
      .delimiter(',')
      .one_of(racers.names, racers.aliases)
      .take_all()
      .type_name("NAMES");
  c.option("--seeds", o.seeds, "Runs for each").show_default().range(1, 100);
  c.option("--seed", t.train.seed, "The first of them").show_default();
  add_data_options(c, t);
  add(c, network_fields(t.model, "gru"), {"--decoder", "--hidden", "--embedding", "--dropout"});
  add(c, t.train.budget(), {"--epochs", "--max-minutes", "--batch-size"});
  add(c, t.train.recipe(), {"--lr"});
  c.option("--work", o.work, "Directory of the runs; those that are finished are not done again")
      .show_default()
      .type_name("DIR");
  c.option("-o,--out", o.out, "Markdown file to write, with a picture (.svg) beside it").output_file();
  c.flag("--force", o.force, "Do finished runs again");
  c.flag("-q,--quiet", t.train.quiet, "The result only");
  add_common_options(c, t.common);
  c.callback([&o, c, &exit_code] {
    finish(c, o.train);
    exit_code = run(o);
  });
}

void add_command(const Command& app, TranslateCommand& o, int& exit_code) {
  Command c = app.add_command("translate", "Translate a sentence, stdin line by line, or at a prompt");
  add_models(c, o.model, o.ensemble, o.int8, o.least_mass);
  c.option("sentence", o.sentence, "What to translate (default: stdin)");
  add_search_options(c, o.search);
  add_steering_options(c, o.steering, o.search.sampling);
  c.flag("--prefix-column", o.prefix_column,
         "Lines are source TAB prefix: what the translation of this one begins with");
  c.flag("--paragraphs", o.paragraphs,
         "Lines have several sentences: each is translated by itself; blank lines and those of one tag stay");
  add_look_options(c, o.look);
  c.option("--max-length", o.search.max_length,
           "Tokens at most (default: twice those of the source, its </s> among them, and 10, or --min-length)")
      .range(1, 100000);
  c.option("--batch-size", o.together,
           "Lines translated together at most, of like lengths; each of --threads has some of its own while "
           "there are enough")
      .show_default()
      .range(1, 1000);
  c.option("--n-best", o.n_best,
           "Translations of a sentence, best first, a line each with the sentence's number")
      .show_default()
      .range(1, 100);
  auto mbr = c.option("--mbr", o.mbr,
                      "With --sample: of --samples draws, those that are most like all others by this metric "
                      "(minimum Bayes risk)")
                 .one_of({"chrf", "bleu"});
  c.option("--samples", o.samples, "With --mbr: draws of a sentence").show_default().range(2, 1000).needs(mbr);
  c.flag("--attention-map", o.map, "Draw the attention weights: source across, translation down");
  c.flag("--pieces", o.pieces,
         "The map has a row and a column for each piece: of a word's pieces, rows are averaged and "
         "columns added otherwise");
  c.flag("--scores", o.scores,
         "Add a column with the log probability (nats), and one with unknown words where there "
         "are any");
  c.flag("--alignments", o.alignments, "Add a column with the strongest source word of each word (0-0 1-2)");
  auto json = c.flag("--json", o.json, "A JSON object a line, with what is asked for");
  c.flag("--moses", o.moses, "Lines as Moses writes its n best: number ||| text ||| features ||| score")
      .excludes(json);
  add_common_options(c, o.common);
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_command(const Command& app, EvaluateCommand& o, int& exit_code) {
  Command c = app.add_command("evaluate",
                              "Perplexity, BLEU, chrF, exact match and alignment error on sentence pairs");
  add_models(c, o.model, o.ensemble, o.int8, o.least_mass);
  auto given = add_given_pairs(c, o.given);
  add_multi_reference(c, o.given, given);
  c.flag("--embedded", o.embedded, "The 1000 test sentences of the embedded corpus").excludes(given.file);
  file(c, "--alignments", o.alignments,
       "Gold links in Moses form, a line for each line of the pairs; alignment error counts only the target "
       "words that have one")
      .needs(given.file);
  add_search_options(c, o.search);
  add_look_options(c, o.look);
  c.flag("--by-length", o.by_length, "The same for ranges of source length");
  c.option("--hypotheses", o.hypotheses,
           "File to write the translations to, a line for each line of the pairs; empty where one was left out")
      .output_file();
  c.option("--references", o.references,
           "The same of what they are compared with: the targets as they stand, but for spaces at an end")
      .output_file();
  c.flag("--json", o.json, "One JSON object instead of the tables");
  add_common_options(c, o.common);
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_command(const Command& app, AverageCommand& o, int& exit_code) {
  Command c = app.add_command("average", "The mean of the weights of several models of one run: one model");
  c.option("models", o.models, "Model directories, such as those that train --keep leaves in DIR/kept")
      .required()
      .type_name("DIR...");
  c.option("-o,--out", o.out, "Model directory to write").show_default().type_name("DIR");
  c.flag("--force", o.force, "Replace the model in --out");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_command(const Command& app, QuantizeCommand& o, int& exit_code) {
  Command c = app.add_command("quantize", "Write a model with weights in 8 bits: a quarter of the size");
  c.option("model", o.model, "Model directory").required().type_name("DIR");
  c.option("out", o.out, "Model directory to write").required().type_name("OUT");
  c.flag("--force", o.force, "Replace the model in OUT");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_command(const Command& app, ScoreCommand& o, int& exit_code) {
  Command c = app.add_command("score", "Log probability and perplexity of given pairs, a line each");
  c.option("model", o.model, "Model directory").required().type_name("DIR");
  add_given_pairs(c, o.given).file.required();
  auto words =
      c.flag("--words", o.words, "Add a column with the log probability of each target word (elle:-0.12)");
  c.flag("--json", o.json, "A JSON object a line, with the words").excludes(words);
  add_common_options(c, o.common);
  c.footer(
      "Columns: log probability (natural logarithm; </s> counted), target tokens, perplexity of one, source, "
      "target.\nLines stay in their order; an empty one (null with --json) stands for a line that is left "
      "out.\nA word that the model does not know has the probability of <unk>.\n"
      "Worst first: translator score model pairs.tsv | sort -t $'\\t' -k 3,3gr");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_command(const Command& app, DiffCommand& o, int& exit_code) {
  Command c =
      app.add_command("diff", "Two systems on the same pairs: where one is better, and whether by chance");
  add_diff_options(c, o);
  c.flag("--json", o.json, "One JSON object instead of the tables, with all sentences");
  c.footer(
      "p is that of the paired bootstrap (Koehn 2004), as sacrebleu --paired-bs has it: how probable such a "
      "difference is if there is none. `lens diff` makes a page of the same.");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_command(const Command& app, DoctorCommand& o, int& exit_code) {
  Command c =
      app.add_command("doctor", "What is wrong with a file of pairs, and what training on it will take");
  auto pairs = file(c, "pairs", o.pairs, "TSV: source, target; - is stdin");
  auto source =
      file(c, "--source", o.pairs, "Source sentences, one a line, instead of pairs").excludes(pairs);
  auto target = file(c, "--target", o.target, "Their translations, line by line").needs(source);
  source.needs(target);
  c.flag("--swap", o.read.swap_columns, "The second column (or --target) is what is translated from");
  file(c, "--valid", o.valid, "Validation pairs, TSV: no pair may have a side of theirs");
  file(c, "--test", o.test, "Test pairs, TSV: the same");
  c.option("--model", o.model, "A trained model: the pairs it believes least").type_name("DIR");
  file(c, "--clean", o.clean, "File for the lines worth keeping; FILE.rejected has the others and why");
  c.option("--max-length", o.max_length, "What train's has: pairs with more words on a side are left out")
      .show_default()
      .range(1, 100000);
  c.option("--seconds", o.seconds, "Of training to measure; 0 is none").show_default().range(0, 3600);
  c.flag("--json", o.json, "One JSON object, with all lines of every finding");
  add_common_options(c, o.common);
  c.footer(
      "Exit status: 0 nothing that is worth leaving out, 1 something, sides that do not go together, or a "
      "file that cannot be read, 2 wrong usage.\ndocs/doctor.md tells how each thing is found.");
  c.callback([&o, &exit_code] {
    if (o.pairs.empty()) throw UsageError("doctor: name a file of pairs, or --source and --target");
    exit_code = run(o);
  });
}

void add_command(const Command& app, ReplayCommand& o, int& exit_code) {
  Command c = app.add_command("replay", "Run the step again at which train --check-finite stopped");
  c.option("bundle", o.bundle, "Directory that the training named").required().type_name("DIR");
  c.flag("--all", o.all, "All sentences of the batch, not only five");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

// What the command line asks for; returns the exit status.
int run_program(int argc, char** argv) {
  command_line::Program app{
      "Trains and runs sequence-to-sequence translators with attention, on the CPU, in minutes.",
      "translator"};
  app.last_wins();  // of an option given twice
  app.version("translator (Gradus) 0.1.0");
  app.footer(
      "Exit status: 0 done, 1 bad data or a file that cannot be read or written, 2 wrong usage, 130 "
      "interrupted.\n`translator COMMAND --help` tells more.");
  int exit_code = 0;
  std::tuple<CorpusCommand, TrainCommand, CompareCommand, TranslateCommand, EvaluateCommand, AverageCommand,
             QuantizeCommand, ScoreCommand, DiffCommand, DoctorCommand, ReplayCommand>
      commands;
  std::apply([&](auto&... command) { (add_command(app, command, exit_code), ...); }, commands);
  if (!app.parse(argc, argv)) exit_code = app.report();
  return app.end(exit_code);
}

// Nobody can catch what a function that promised not to throw throws: nlohmann's constructors of a JSON value
// promise it and ask for memory. Without any, the program ends as it does elsewhere.
std::terminate_handler usual_end = nullptr;

[[noreturn]] void end_without_memory() {
  try {
    if (std::exception_ptr e = std::current_exception()) std::rethrow_exception(e);
  } catch (const std::bad_alloc&) {
    std::fputs("translator: out of memory\n", stderr);
    std::_Exit(1);
  } catch (...) {
  }
  usual_end();
  std::abort();
}

}  // namespace
}  // namespace translator

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `translator corpus | head` ends quietly
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of its write, which is said
  translator::usual_end = std::set_terminate(translator::end_without_memory);
  auto failed = [](int code, const std::string& what) {
    translator::tell("translator: {}\n", what);
    return code;
  };
  translator::called_as(argc > 0 ? argv[0] : "translator");
  try {
    return translator::run_program(argc, argv);
  } catch (const translator::UsageError& e) {
    return failed(2, e.what());
  } catch (const std::bad_alloc&) {
    std::fputs("translator: out of memory\n", stderr);  // which takes none
    return 1;
  } catch (const gradus::NotFinite& e) {  // its line is what to look at
    return failed(1, e.what());
  } catch (const gradus::Error& e) {
    return failed(1, e.message());
  } catch (const std::exception& e) {
    return failed(1, translator::what_of(e));
  }
}
