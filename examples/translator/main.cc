// The translator: Bahdanau, Cho and Bengio 2014 (arXiv:1409.0473), and Luong et al. 2015, at a laptop's
// scale.
//
//   translator train                                    the embedded English-French corpus, good defaults
//   translator translate model "he doesn't like apples" --attention-map
//
// *_command.cc hold the commands, trainer.cc the training loop; this file only reads the command line.

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <gradus/error.h>
#include <gradus/kernels/gemm.h>
#include <gradus/parallel.h>
#include <translator/commands.h>

namespace translator {

void apply(CommonOptions& options) {
  if (options.threads == 0) options.threads = gradus::available_threads();
  if (options.verbose)
    fmt::print(stderr, "OpenBLAS core {} (the CPU's best: {}), {} thread{}\n", gradus::kernels::blas_core(),
               gradus::kernels::blas_core_for_this_cpu()[0] ? gradus::kernels::blas_core_for_this_cpu()
                                                            : "OpenBLAS's choice",
               options.threads, options.threads == 1 ? "" : "s");
}

namespace {

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--threads", options.threads, "Threads (default: the processors this process may use)")
      ->check(CLI::Range(1, 256));
  command.add_flag("-v,--verbose", options.verbose,
                   "Say on stderr which BLAS kernels and how many threads are used");
}

void add_corpus_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CorpusCommand>();
  CLI::App* c =
      app.add_subcommand("corpus", "Write the embedded English-French sentences, made by a grammar");
  c->add_option("--split", o->split, "train, valid or test: no English sentence is in two of them")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
  c->add_option("-n,--count", o->count, "Pairs (default: 40000 of train, 1000 of the others)")
      ->check(CLI::PositiveNumber);
  c->add_option("--seed", o->seed, "The same seed gives the same sentences everywhere")
      ->capture_default_str();
  c->add_option("--max-length", o->max_length, "Tokens on either side at most")
      ->capture_default_str()
      ->check(CLI::Range(3, 100));
  c->add_option("-o,--out", o->out, "TSV file: English, French; - is stdout")
      ->capture_default_str()
      ->type_name("FILE");
  c->add_flag("--links", o->links,
              "A third column with the word alignment in Moses form (0-0 1-2, token numbers)");
  c->add_option("--alignments", o->alignments, "File for the alignments alone, a line each")
      ->type_name("FILE");
  c->add_flag("--tokens", o->tokens, "Tokens with spaces between them instead of readable text");
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

void add_train_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TrainCommand>();
  o->train.out = "model";
  CLI::App* c = app.add_subcommand("train", "Train a model; without arguments on the embedded corpus");
  auto* data =
      c->add_option("--data", o->data.data, "Training pairs, a TSV file: source TAB target; - is stdin")
          ->type_name("FILE");
  auto* source = c->add_option("--source", o->data.source, "Source sentences, one a line, instead of --data")
                     ->type_name("FILE")
                     ->excludes(data);
  c->add_option("--target", o->data.target, "Their translations, line by line")
      ->type_name("FILE")
      ->needs(source);
  source->needs(c->get_option("--target"));
  c->add_option("--valid", o->data.valid,
                "Validation pairs, TSV (default: a twentieth of the data, at most 1000 pairs)")
      ->type_name("FILE");
  auto* valid_source = c->add_option("--valid-source", o->data.valid_source, "Validation sources, one a line")
                           ->type_name("FILE");
  c->add_option("--valid-target", o->data.valid_target, "Validation targets, one a line")
      ->type_name("FILE")
      ->needs(valid_source);
  valid_source->needs(c->get_option("--valid-target"));
  c->add_flag("--swap", o->data.read.swap_columns,
              "The second column (or --target) is what is translated from");
  c->add_flag("--strict", o->data.read.strict, "Stop at the first bad line instead of leaving it out");
  c->add_option("--max-length", o->data.read.max_length,
                "Leave out pairs with more tokens on a side (default: 50)")
      ->check(CLI::PositiveNumber);
  c->add_option("--corpus-size", o->data.corpus_size, "Embedded training pairs")
      ->capture_default_str()
      ->check(CLI::Range(100, 2000000));
  c->add_flag("--case-sensitive", o->case_sensitive, "Keep capitals");
  c->add_flag("--french", o->model.french, "Write French spacing (before ? ! : ;) in the output");
  c->add_option("--min-count", o->min_count,
                "Words seen less often are <unk> (default: 2; 1 for the embedded corpus)")
      ->check(CLI::PositiveNumber);
  c->add_option("--max-vocabulary", o->max_vocabulary, "Words a side at most")
      ->capture_default_str()
      ->check(CLI::Range(5, 10000000));

  c->add_option("-a,--attention", o->model.network.attention, "bahdanau, dot, general, concat, or none")
      ->check(CLI::IsMember({"bahdanau", "additive", "mlp", "dot", "general", "luong", "concat", "none"}))
      ->capture_default_str();
  c->add_option("--decoder", o->model.network.decoder,
                "Order of the decoder: bahdanau, luong, or auto (by attention)")
      ->check(CLI::IsMember({"auto", "bahdanau", "luong"}))
      ->capture_default_str();
  c->add_option("--hidden", o->hidden, "Size of the states (default: 256; 128 for the embedded corpus)")
      ->check(CLI::PositiveNumber);
  c->add_option("--embedding", o->embedding, "Size of the word vectors (default: 256; 128)")
      ->check(CLI::PositiveNumber);
  c->add_option("--layers", o->model.network.num_layers, "Layers of the encoder")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--dropout", o->dropout, "On embeddings and readout (default: 0.2; 0)")
      ->check(CLI::Range(0.0, 0.95));

  c->add_option("-e,--epochs", o->epochs,
                "Passes over the data (default: 12, 7 for the embedded corpus; no limit with --max-minutes)")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--max-minutes", o->train.max_minutes,
                "Stop after so many minutes, learning rate decayed by then")
      ->check(CLI::PositiveNumber);
  c->add_option("-b,--batch-size", o->train.batch_size, "Sentence pairs a step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--lr", o->lr, "Adam's highest learning rate (default: 0.001; 0.003)")
      ->check(CLI::PositiveNumber);
  c->add_option("--clip", o->train.clip, "Global gradient norm at most")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--label-smoothing", o->train.label_smoothing, "Spread over all words")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.9));
  c->add_option("--validate-every", o->train.validate_every,
                "Steps between validations (default: once an epoch)")
      ->check(CLI::PositiveNumber);
  c->add_option("--seed", o->train.seed, "Of weights, order and dropout")->capture_default_str();
  c->add_option("-o,--out", o->train.out, "Model directory")->capture_default_str()->type_name("DIR");
  auto* resume = c->add_flag("--resume", o->resume, "Go on with the run in --out (same data and options)");
  c->add_flag("--force", o->force, "Replace the model in --out")->excludes(resume);
  c->add_flag("-q,--quiet", o->train.quiet, "Errors only");
  add_common_options(*c, o->common);
  c->callback([o, &exit_code] {
    bool own_data = !o->data.data.empty() || !o->data.source.empty();
    if (o->data.read.swap_columns && !own_data)
      throw UsageError("--swap needs --data or --source: the embedded corpus is English to French");
    if (own_data && o->data.read.max_length == 0) o->data.read.max_length = 50;
    exit_code = run(*o);
  });
}

void add_translate_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TranslateCommand>();
  CLI::App* c = app.add_subcommand("translate", "Translate a sentence, stdin line by line, or at a prompt");
  c->add_option("model", o->model, "Model directory")->required()->type_name("DIR");
  c->add_option("sentence", o->sentence, "What to translate (default: stdin)");
  c->add_option("-k,--beam-size", o->search.beam_size, "Hypotheses kept; 1 is greedy")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  c->add_option("--length-penalty", o->search.length_penalty, "Alpha of Wu et al. 2016; 0 is off")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_option("--max-length", o->search.max_length, "Words at most (default: twice the source and 10)")
      ->check(CLI::PositiveNumber);
  c->add_option("--n-best", o->n_best, "Translations of a sentence, best first, a line each")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  c->add_flag("--attention-map", o->map, "Draw the attention weights: source across, translation down");
  c->add_flag("--scores", o->scores, "Add a column with the log probability (nats)");
  c->add_flag("--alignments", o->alignments,
              "Add a column with the strongest source word of each word (0-0 1-2)");
  add_common_options(*c, o->common);
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

void add_evaluate_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<EvaluateCommand>();
  CLI::App* c =
      app.add_subcommand("evaluate", "Perplexity, BLEU, exact match and alignment error on sentence pairs");
  c->add_option("model", o->model, "Model directory")->required()->type_name("DIR");
  auto* pairs = c->add_option("pairs", o->pairs,
                              "TSV: source, target and perhaps links (0-0 1-2); or sources, with --target")
                    ->type_name("FILE");
  c->add_option("--target", o->target, "Targets, line by line")->type_name("FILE")->needs(pairs);
  auto* embedded = c->add_flag("--embedded", o->embedded, "The 1000 test sentences of the embedded corpus")
                       ->excludes(pairs);
  c->add_flag("--swap", o->read.swap_columns, "The second column is what is translated from")
      ->excludes(embedded);
  c->add_flag("--strict", o->read.strict, "Stop at the first bad line instead of leaving it out");
  c->add_option("--alignments", o->alignments, "Gold links in Moses form, a line for each line of the pairs")
      ->type_name("FILE")
      ->needs(pairs);
  c->add_option("-k,--beam-size", o->search.beam_size, "Hypotheses kept; 1 is greedy")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  c->add_option("--length-penalty", o->search.length_penalty, "Alpha of Wu et al. 2016; 0 is off")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_flag("--by-length", o->by_length, "The same for ranges of source length");
  c->add_option("--hypotheses", o->hypotheses, "File to write the translations to")->type_name("FILE");
  c->add_option("--references", o->references,
                "File to write what they are compared with: the targets in the model's spelling")
      ->type_name("FILE");
  c->add_flag("--json", o->json, "One JSON object instead of the table");
  add_common_options(*c, o->common);
  c->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace
}  // namespace translator

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `translator corpus | head` ends quietly
  CLI::App app{"Trains and runs sequence-to-sequence translators with attention, on the CPU, in minutes.",
               "translator"};
  app.require_subcommand(1);
  app.option_defaults()->take_last();  // of an option given twice
  app.set_version_flag("--version", "translator (Gradus) 0.1.0");
  app.footer(
      "Exit status: 0 done, 1 bad data or a file that cannot be read or written, 2 wrong usage, 130 "
      "interrupted.\n"
      "`translator COMMAND --help` tells more.");
  int exit_code = 0;
  translator::add_corpus_command(app, exit_code);
  translator::add_train_command(app, exit_code);
  translator::add_translate_command(app, exit_code);
  translator::add_evaluate_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      fmt::print(stderr, "translator: there is no command \"{}\", only corpus, train, translate, evaluate\n",
                 argv[1]);
      return 2;
    }
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const translator::UsageError& e) {
    fmt::print(stderr, "translator: {}\n", e.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "translator: out of memory\n");
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "translator: {}\n", e.what());
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    fmt::print(stderr, "translator: standard output cannot be written: {}\n", std::strerror(errno));
    return 1;
  }
  return exit_code;
}
