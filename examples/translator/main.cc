// The translator: Bahdanau, Cho and Bengio 2014 (arXiv:1409.0473), and Luong et al. 2015,
// at a laptop's scale.
//
//   translator train                                    the embedded English-French corpus, good defaults
//   translator translate model "he doesn't like apples" --attention-map
//
// *_command.cc hold the commands, trainer.cc the training loop; this file only reads the command line.

#include <command_line/command_line.h>
#include <fmt/core.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include <translator/commands.h>
#include <translator/text/tell.h>

namespace translator {
namespace {

using command_line::Command;
using command_line::Option;

// Bounds of options; what all of them together take is compared with the machine once the data are known.
constexpr int kMostEpochs = 1000000, kMostPairs = 1000000;
constexpr double kMostMinutes = 1e7, kLeast = 1e-30;
constexpr double kMostDecay = 1000;  // at a learning rate of 0.001 a step then takes all of a weight

void add_common_options(const Command& command, CommonOptions& options) {
  command.option("--threads", options.threads, "Threads (default: the processors this process may use)")
      .range(1, 256);
  command.flag("-v,--verbose", options.verbose,
               "Say on stderr which BLAS kernels and how many threads are used");
}

void add_corpus_command(const Command& app, CorpusCommand& o, int& exit_code) {
  Command c = app.add_command("corpus", "Write the embedded English-French sentences, made by a grammar");
  c.option("--split", o.split, "train, valid or test: no sentence is in two of them, whatever the seed and the lengths")
      .one_of({"train", "valid", "test"})
      .show_default();
  c.option("-n,--count", o.count, "Pairs (default: 40000 of train, 1000 of the others)").range(1, 2000000);
  c.option("--seed", o.seed, "The same seed gives the same sentences everywhere").show_default();
  c.option("--max-length", o.max_length, "Tokens on either side at most").show_default().range(3, 100);
  c.option("-o,--out", o.out, "TSV file: English, French; - is stdout").show_default().type_name("FILE");
  c.flag("--links", o.links,
         "A third column with the word alignment in Moses form (0-0 1-2, token numbers)");
  c.option("--alignments", o.alignments, "File for the alignments alone, a line each").type_name("FILE");
  c.flag("--tokens", o.tokens, "Tokens with spaces between them instead of readable text");
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

// Where pairs come from and how they are read, for train and compare.
void add_data_options(const Command& c, TrainCommand& o) {
  auto data = c.option("--data", o.data.data, "Training pairs, a TSV file: source TAB target; - is stdin")
                  .type_name("FILE");
  auto source = c.option("--source", o.data.source, "Source sentences, one a line, instead of --data")
                    .type_name("FILE")
                    .excludes(data);
  auto target =
      c.option("--target", o.data.target, "Their translations, line by line").type_name("FILE").needs(source);
  source.needs(target);
  c.option("--valid", o.data.valid,
           "Validation pairs, TSV (default: a twentieth of the data, at most 1000 pairs)")
      .type_name("FILE");
  auto valid_source =
      c.option("--valid-source", o.data.valid_source, "Validation sources, one a line").type_name("FILE");
  auto valid_target = c.option("--valid-target", o.data.valid_target, "Validation targets, one a line")
                          .type_name("FILE")
                          .needs(valid_source);
  valid_source.needs(valid_target);
  c.flag("--swap", o.data.read.swap_columns, "The second column (or --target) is what is translated from");
  c.flag("--strict", o.data.read.strict, "Stop at the first bad line instead of leaving it out");
  c.option("--max-length", o.data.read.max_length, "Leave out pairs with more tokens on a side (default: 50)")
      .range(1, 100000);
  c.option("--corpus-size", o.data.corpus_size, "Embedded training pairs").show_default().range(100, 2000000);
  c.flag("--case-sensitive", o.case_sensitive, "Keep capitals");
  c.flag("--french", o.model.french, "Write French spacing (before ? ! : ;) in the output");
  c.option("--min-count", o.min_count,
           "Words seen less often are <unk> (default: 2; 1 for the embedded corpus)")
      .range(1, 1000000000);
  c.option("--max-vocabulary", o.max_vocabulary, "Words a side at most").show_default().range(5, kMostWords);
}

// What follows from the data that was asked for.
void finish_data_options(TrainCommand& o) {
  bool own_data = !o.data.data.empty() || !o.data.source.empty();
  if (o.data.read.swap_columns && !own_data)
    throw UsageError("--swap needs --data or --source: the embedded corpus is English to French");
  if (own_data && o.data.read.max_length == 0) o.data.read.max_length = 50;
}

void add_train_command(const Command& app, TrainCommand& o, int& exit_code) {
  o.train.out = "model";
  Command c = app.add_command("train", "Train a model; without arguments on the embedded corpus");
  add_data_options(c, o);

  c.option("-m,--model", o.network, "gru (recurrent, with attention; the default) or transformer")
      .one_of({"gru", "transformer"});
  c.option("-a,--attention", o.model.network.attention,
           "How the decoder looks at the source: a name from the list below")
      .check(check_attention)
      .type_name("NAME")
      .show_default();
  c.option("--decoder", o.model.network.decoder,
           "Order of the decoder: bahdanau, luong, or auto (by attention)")
      .one_of({"auto", "bahdanau", "luong"})
      .show_default();
  c.flag("--input-feeding,!--no-input-feeding", o.model.network.input_feeding,
         "Luong's order: each attention vector goes into the next step (default: yes)");
  c.option("--readout", o.model.network.readout, "What sums a step up: tanh, or maxout as Bahdanau's paper")
      .one_of({"tanh", "maxout"})
      .show_default();
  c.option("--temperature", o.model.network.attention_options.temperature,
           "Attention scores are divided by it: below 1 sharper, above 1 flatter")
      .show_default()
      .range(1e-6, 1e6);
  c.option("--top-k", o.model.network.attention_options.top_k,
           "Once trained, look at so many source words at a time at most; 0: all")
      .show_default()
      .range(0, kMostPositions);
  c.option("--heads", o.model.network.attention_options.heads, "Of multihead, and of a transformer")
      .show_default()
      .range(1, kMostUnits);
  c.option("--window", o.model.network.attention_options.window,
           "Of local-m and local-p: source words on either side of the centre")
      .show_default()
      .range(1, kMostPositions);
  c.footer(list_attentions());
  c.option("--hidden", o.hidden, "Size of the states (default: 256; 128 for the embedded corpus)")
      .range(1, kMostUnits);
  c.option("--embedding,--embedding-dim,--d-model", o.embedding,
           "Size of the word vectors; of everything in a transformer (default: 256; 128)")
      .range(1, kMostUnits);
  c.option("--layers,--num-layers", o.num_layers,
           "Layers of the encoder (default: 1); of a transformer, and of its decoder (default: 3; 2)")
      .range(1, kMostLayers);
  c.option("--ffn", o.model.transformer.dim_feedforward,
           "Hidden size of a transformer's feed-forward parts (default: 4 times --d-model)")
      .range(1, 4 * kMostUnits);
  c.flag("--norm-first,!--norm-last", o.model.transformer.norm_first,
         "Transformer: normalise before each part (default), or after it as in the paper");
  c.option("--positions", o.model.transformer.positions,
           "How a transformer sees order: sinusoidal, learned, or none")
      .show_default()
      .one_of({"sinusoidal", "learned", "none"});
  c.flag("--tie-embeddings,!--no-tie-embeddings", o.model.transformer.tie_embeddings,
         "Transformer: one matrix for target words going in and coming out (default: yes)");
  c.option("--cell", o.cell,
           "gru, gru-reset-before, gru-bahdanau, lstm, rnn or rnn-relu, of encoder and decoder")
      .one_of(gradus::nn::cell_names())
      .show_default();
  c.flag("--layer-norm", o.model.network.rnn.cell.layer_norm,
         "Layer-normalised cells; the decoder then goes step by step");
  c.flag("--residual", o.model.network.rnn.residual, "Encoder layers but the first add their input");
  c.flag("--variational", o.model.network.rnn.variational,
         "The encoder's dropout: one mask for all words of a sentence");
  c.option("--recurrent-dropout", o.model.network.rnn.recurrent_dropout,
           "On the encoder's states (default: 0)")
      .range(0.0, 0.95);
  c.option("--dropout", o.dropout, "On embeddings and readout (default: 0.2; 0)").range(0.0, 0.95);

  c.option("-e,--epochs", o.epochs,
           "Passes over the data (default: 12, 7 for the embedded corpus; no limit with --max-minutes)")
      .range(0, kMostEpochs);
  c.option("--max-minutes", o.train.max_minutes, "Stop after so many minutes, learning rate decayed by then")
      .range(1e-6, kMostMinutes);
  c.option("-b,--batch-size", o.train.batch_size, "Sentence pairs a step").show_default().range(1, kMostPairs);
  c.option("--optimizer", o.train.optimizer,
           "adam, adamw, sgd, adagrad, rmsprop, or adadelta (rho 0.95, eps 1e-6: Bahdanau's)")
      .one_of({"adam", "adamw", "sgd", "adagrad", "rmsprop", "adadelta"})
      .show_default();
  c.option("--lr", o.lr,
           "Highest learning rate (default: 0.001, 0.003 for the embedded corpus; sgd and adadelta 1, "
           "adagrad 0.05)")
      .positive(1e30);  // a run may be blown up to see what --check-finite says, but a float must hold the rate
  c.option("--momentum", o.train.momentum, "Of sgd and rmsprop").show_default().range(0.0, 0.9999);
  c.option("--weight-decay", o.weight_decay,
           "Pull of all weights to 0; adamw decouples it (default: 0; adamw 0.01)")
      .range(0.0, kMostDecay);
  c.option("--schedule", o.train.schedule,
           "Learning rate over the run: linear, cosine, exponential, step (halved from the middle on), "
           "noam (inverse root), plateau (halved when validation stalls), constant")
      .one_of({"linear", "cosine", "exponential", "step", "noam", "plateau", "constant"})
      .show_default();
  c.option("--warmup", o.train.warmup,
           "Steps over which the learning rate rises first (default: 100, a tenth of the run at most)")
      .range(1, 1000000000);
  c.option("--clip-norm,--clip", o.clip_norm,
           "Global gradient norm at most; 0: any (default: 1; with --clip-value any)")
      .not_negative();
  c.option("--clip-value", o.train.clip_value, "Every entry of a gradient at most (default: any)")
      .range(kLeast, Option::kMost);
  c.option("--ema", o.train.ema,
           "Validate and keep a moving average of the weights with this decay, as 0.999 (default: none)")
      .range(0.0, 0.999999);
  c.option("--scheduled-sampling", o.train.scheduled_sampling,
           "Feed the model's own word instead of the reference with a probability that rises to this")
      .show_default()
      .range(0.0, 1.0);
  c.option("--label-smoothing", o.train.label_smoothing, "Spread over all words")
      .show_default()
      .range(0.0, 0.9);
  c.option("--validate-every", o.train.validate_every, "Steps between validations (default: once an epoch)")
      .range(1, 1000000000);
  c.flag("--check-finite", o.train.check_finite,
         "Stop at the first NaN or infinity, say where it came from, and keep all for `translator replay`");
  c.option(
       "--probe", o.probe,
       "Sentence whose translation and attention are watched at each validation (default: one of the validation's)")
      .type_name("SENTENCE");
  c.option("--seed", o.train.seed, "Of weights, order and dropout").show_default();
  c.option("-o,--out", o.train.out, "Model directory").show_default().type_name("DIR");
  auto resume = c.flag("--resume", o.resume, "Go on with the run in --out (same data and options)");
  c.flag("--force", o.force, "Replace the model in --out").excludes(resume);
  c.flag("-q,--quiet", o.train.quiet, "Errors only");
  add_common_options(c, o.common);
  c.callback([&o, c, &exit_code] {
    finish_data_options(o);
    for (const std::string& option : c.given()) o.given.insert(option);
    exit_code = run(o);
  });
}

void add_compare_command(const Command& app, CompareCommand& o, int& exit_code) {
  TrainCommand& t = o.train;
  o.attentions = {"none",     "uniform", "bahdanau", "dot",       "general", "concat",
                   "location", "local-m", "local-p",  "multihead", "oracle",  "transformer"};
  Command c = app.add_command("compare", "Train one model for each attention and seed, and compare them");
  auto check = [](const std::string& name) { return name == "transformer" ? "" : check_attention(name); };
  c.option("-a,--attention", o.attentions,
           "Names with commas between them, see train --help; transformer is train --model transformer "
           "(default: 12)")
      .delimiter(',')
      .check(check)
      .take_all()
      .type_name("NAMES");
  c.option("--seeds", o.seeds, "Runs for each").show_default().range(1, 100);
  c.option("--seed", t.train.seed, "The first of them").show_default();
  c.option("--max-minutes", t.train.max_minutes, "Of training, for each run").range(1e-6, kMostMinutes);
  c.option("-e,--epochs", t.epochs, "Passes over the data, for each run (default: as train)").range(0, kMostEpochs);
  add_data_options(c, t);
  c.option("--decoder", t.model.network.decoder, "Order: auto (each attention's own), or one for all")
      .one_of({"auto", "bahdanau", "luong"})
      .show_default();
  c.option("--hidden", t.hidden, "As in train").range(1, kMostUnits);
  c.option("--embedding", t.embedding, "As in train").range(1, kMostUnits);
  c.option("--dropout", t.dropout, "As in train").range(0.0, 0.95);
  c.option("--lr", t.lr, "As in train").positive(1e30);
  c.option("-b,--batch-size", t.train.batch_size, "As in train").show_default().range(1, kMostPairs);
  c.option("--work", o.work, "Directory of the runs; those that are finished are not done again")
      .show_default()
      .type_name("DIR");
  c.option("-o,--out", o.out, "Markdown file to write, with a picture (.svg) beside it").type_name("FILE");
  c.flag("--force", o.force, "Do finished runs again");
  c.flag("-q,--quiet", t.train.quiet, "The result only");
  add_common_options(c, t.common);
  c.callback([&o, &exit_code] {
    finish_data_options(o.train);
    exit_code = run(o);
  });
}

void add_translate_command(const Command& app, TranslateCommand& o, int& exit_code) {
  Command c = app.add_command("translate", "Translate a sentence, stdin line by line, or at a prompt");
  c.option("model", o.model, "Model directory").required().type_name("DIR");
  c.option("sentence", o.sentence, "What to translate (default: stdin)");
  c.option("-k,--beam-size", o.search.beam_size, "Hypotheses kept; 1 is greedy")
      .show_default()
      .range(1, 100);
  c.option("--length-penalty", o.search.length_penalty, "Alpha of Wu et al. 2016; 0 is off")
      .show_default()
      .range(0.0, 100.0);
  c.option("--max-length", o.search.max_length, "Words at most (default: twice the source and 10)")
      .range(1, 100000);
  c.option("--n-best", o.n_best, "Translations of a sentence, best first, a line each")
      .show_default()
      .range(1, 100);
  c.flag("--attention-map", o.map, "Draw the attention weights: source across, translation down");
  c.flag("--scores", o.scores, "Add a column with the log probability (nats)");
  c.flag("--alignments", o.alignments, "Add a column with the strongest source word of each word (0-0 1-2)");
  add_common_options(c, o.common);
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_evaluate_command(const Command& app, EvaluateCommand& o, int& exit_code) {
  Command c =
      app.add_command("evaluate", "Perplexity, BLEU, exact match and alignment error on sentence pairs");
  c.option("model", o.model, "Model directory").required().type_name("DIR");
  auto pairs = c.option("pairs", o.pairs,
                        "TSV: source, target and perhaps links (0-0 1-2); or sources, with --target")
                   .type_name("FILE");
  c.option("--target", o.target, "Targets, line by line").type_name("FILE").needs(pairs);
  auto embedded =
      c.flag("--embedded", o.embedded, "The 1000 test sentences of the embedded corpus").excludes(pairs);
  c.flag("--swap", o.read.swap_columns, "The second column is what is translated from").excludes(embedded);
  c.flag("--strict", o.read.strict, "Stop at the first bad line instead of leaving it out");
  c.option("--alignments", o.alignments,
           "Gold links in Moses form, a line for each line of the pairs; alignment error counts only the target words "
           "that have one")
      .type_name("FILE")
      .needs(pairs);
  c.option("-k,--beam-size", o.search.beam_size, "Hypotheses kept; 1 is greedy")
      .show_default()
      .range(1, 100);
  c.option("--length-penalty", o.search.length_penalty, "Alpha of Wu et al. 2016; 0 is off")
      .show_default()
      .range(0.0, 100.0);
  c.flag("--by-length", o.by_length, "The same for ranges of source length");
  c.option("--hypotheses", o.hypotheses,
           "File to write the translations to, a line for each line of the pairs; empty where one was left out")
      .type_name("FILE");
  c.option("--references", o.references,
           "The same of what they are compared with: the targets in the model's spelling")
      .type_name("FILE");
  c.flag("--json", o.json, "One JSON object instead of the tables");
  add_common_options(c, o.common);
  c.callback([&o, &exit_code] { exit_code = run(o); });
}

void add_replay_command(const Command& app, ReplayCommand& o, int& exit_code) {
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
      "interrupted.\n"
      "`translator COMMAND --help` tells more.");
  int exit_code = 0;
  CorpusCommand corpus;
  TrainCommand train;
  CompareCommand compare;
  TranslateCommand translate;
  EvaluateCommand evaluate;
  ReplayCommand replay;
  add_corpus_command(app, corpus, exit_code);
  add_train_command(app, train, exit_code);
  add_compare_command(app, compare, exit_code);
  add_translate_command(app, translate, exit_code);
  add_evaluate_command(app, evaluate, exit_code);
  add_replay_command(app, replay, exit_code);
  if (!app.parse(argc, argv)) exit_code = app.report();
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  return exit_code;
}

// Nobody can catch what a function that promised not to throw throws: nlohmann's constructors of a JSON value promise it
// and ask for memory. Without any, the program ends as it does elsewhere.
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
    return failed(1, e.what());
  }
}
