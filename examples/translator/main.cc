// The translator: Bahdanau, Cho and Bengio 2014 (arXiv:1409.0473), and Luong et al. 2015,
// at a laptop's scale.
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

#include <translator/commands.h>

namespace translator {
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

// Where pairs come from and how they are read, for train and compare.
void add_data_options(CLI::App& c, TrainCommand& o) {
  auto* data =
      c.add_option("--data", o.data.data, "Training pairs, a TSV file: source TAB target; - is stdin")
          ->type_name("FILE");
  auto* source = c.add_option("--source", o.data.source, "Source sentences, one a line, instead of --data")
                     ->type_name("FILE")
                     ->excludes(data);
  c.add_option("--target", o.data.target, "Their translations, line by line")
      ->type_name("FILE")
      ->needs(source);
  source->needs(c.get_option("--target"));
  c.add_option("--valid", o.data.valid,
                "Validation pairs, TSV (default: a twentieth of the data, at most 1000 pairs)")
      ->type_name("FILE");
  auto* valid_source = c.add_option("--valid-source", o.data.valid_source, "Validation sources, one a line")
                           ->type_name("FILE");
  c.add_option("--valid-target", o.data.valid_target, "Validation targets, one a line")
      ->type_name("FILE")
      ->needs(valid_source);
  valid_source->needs(c.get_option("--valid-target"));
  c.add_flag("--swap", o.data.read.swap_columns,
              "The second column (or --target) is what is translated from");
  c.add_flag("--strict", o.data.read.strict, "Stop at the first bad line instead of leaving it out");
  c.add_option("--max-length", o.data.read.max_length,
                "Leave out pairs with more tokens on a side (default: 50)")
      ->check(CLI::PositiveNumber);
  c.add_option("--corpus-size", o.data.corpus_size, "Embedded training pairs")
      ->capture_default_str()
      ->check(CLI::Range(100, 2000000));
  c.add_flag("--case-sensitive", o.case_sensitive, "Keep capitals");
  c.add_flag("--french", o.model.french, "Write French spacing (before ? ! : ;) in the output");
  c.add_option("--min-count", o.min_count,
                "Words seen less often are <unk> (default: 2; 1 for the embedded corpus)")
      ->check(CLI::PositiveNumber);
  c.add_option("--max-vocabulary", o.max_vocabulary, "Words a side at most")
      ->capture_default_str()
      ->check(CLI::Range(5, 10000000));
}

// What follows from the data that was asked for.
void finish_data_options(TrainCommand& o) {
  bool own_data = !o.data.data.empty() || !o.data.source.empty();
  if (o.data.read.swap_columns && !own_data)
    throw UsageError("--swap needs --data or --source: the embedded corpus is English to French");
  if (own_data && o.data.read.max_length == 0) o.data.read.max_length = 50;
}

void add_train_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TrainCommand>();
  o->train.out = "model";
  CLI::App* c = app.add_subcommand("train", "Train a model; without arguments on the embedded corpus");
  add_data_options(*c, *o);

  c->add_option("-m,--model", o->network, "gru (recurrent, with attention; the default) or transformer")
      ->check(CLI::IsMember({"gru", "transformer"}));
  c->add_option("-a,--attention", o->model.network.attention,
                "How the decoder looks at the source: a name from the list below")
      ->check(CLI::Validator(check_attention, ""))
      ->type_name("NAME")
      ->capture_default_str();
  c->add_option("--decoder", o->model.network.decoder,
                "Order of the decoder: bahdanau, luong, or auto (by attention)")
      ->check(CLI::IsMember({"auto", "bahdanau", "luong"}))
      ->capture_default_str();
  c->add_flag("--input-feeding,!--no-input-feeding", o->model.network.input_feeding,
              "Luong's order: each attention vector goes into the next step (default: yes)");
  c->add_option("--readout", o->model.network.readout,
                "What sums a step up: tanh, or maxout as Bahdanau's paper")
      ->check(CLI::IsMember({"tanh", "maxout"}))
      ->capture_default_str();
  c->add_option("--temperature", o->model.network.attention_options.temperature,
                "Attention scores are divided by it: below 1 sharper, above 1 flatter")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--top-k", o->model.network.attention_options.top_k,
                "Once trained, look at so many source words at a time at most; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_option("--heads", o->model.network.attention_options.heads, "Of multihead, and of a transformer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--window", o->model.network.attention_options.window,
                "Of local-m and local-p: source words on either side of the centre")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->footer(list_attentions());
  c->add_option("--hidden", o->hidden, "Size of the states (default: 256; 128 for the embedded corpus)")
      ->check(CLI::PositiveNumber);
  c->add_option("--embedding,--embedding-dim,--d-model", o->embedding,
                "Size of the word vectors; of everything in a transformer (default: 256; 128)")
      ->check(CLI::PositiveNumber);
  c->add_option("--layers,--num-layers", o->num_layers,
                "Layers of the encoder (default: 1); of a transformer, and of its decoder (default: 3; 2)")
      ->check(CLI::PositiveNumber);
  c->add_option("--ffn", o->model.transformer.dim_feedforward,
                "Hidden size of a transformer's feed-forward parts (default: 4 times --d-model)")
      ->check(CLI::PositiveNumber);
  c->add_flag("--norm-first,!--norm-last", o->model.transformer.norm_first,
              "Transformer: normalise before each part (default), or after it as in the paper");
  c->add_option("--positions", o->model.transformer.positions,
                "How a transformer sees order: sinusoidal, learned, or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"sinusoidal", "learned", "none"}));
  c->add_flag("--tie-embeddings,!--no-tie-embeddings", o->model.transformer.tie_embeddings,
              "Transformer: one matrix for target words going in and coming out (default: yes)");
  c->add_option("--cell", o->model.network.cell,
                "gru, gru-reset-before, gru-bahdanau, lstm, rnn or rnn-relu, of encoder and decoder")
      ->check(CLI::IsMember(gradus::nn::cell_names()))
      ->capture_default_str();
  c->add_flag("--layer-norm", o->model.network.layer_norm,
              "Layer-normalised cells; the decoder then goes step by step");
  c->add_flag("--residual", o->model.network.residual, "Encoder layers but the first add their input");
  c->add_flag("--variational", o->model.network.variational,
              "The encoder's dropout: one mask for all words of a sentence");
  c->add_option("--recurrent-dropout", o->model.network.recurrent_dropout,
                "On the encoder's states (default: 0)")
      ->check(CLI::Range(0.0, 0.95));
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
  c->add_option("--optimizer", o->train.optimizer,
                "adam, adamw, sgd, adagrad, rmsprop, or adadelta (rho 0.95, eps 1e-6: Bahdanau's)")
      ->check(CLI::IsMember({"adam", "adamw", "sgd", "adagrad", "rmsprop", "adadelta"}))
      ->capture_default_str();
  c->add_option("--lr", o->lr,
                "Highest learning rate (default: 0.001, 0.003 for the embedded corpus; sgd and adadelta 1, "
                "adagrad 0.05)")
      ->check(CLI::PositiveNumber);
  c->add_option("--momentum", o->train.momentum, "Of sgd and rmsprop")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.9999));
  c->add_option("--weight-decay", o->weight_decay,
                "Pull of all weights to 0; adamw decouples it (default: 0; adamw 0.01)")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--schedule", o->train.schedule,
                "Learning rate over the run: linear, cosine, exponential, step (halved from the middle on), "
                "noam (inverse root), plateau (halved when validation stalls), constant")
      ->check(CLI::IsMember({"linear", "cosine", "exponential", "step", "noam", "plateau", "constant"}))
      ->capture_default_str();
  c->add_option("--warmup", o->train.warmup,
                "Steps over which the learning rate rises first (default: 100, a tenth of the run at most)")
      ->check(CLI::PositiveNumber);
  c->add_option("--clip-norm,--clip", o->clip_norm,
                "Global gradient norm at most; 0: any (default: 1; with --clip-value any)")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--clip-value", o->train.clip_value, "Every entry of a gradient at most (default: any)")
      ->check(CLI::PositiveNumber);
  c->add_option("--ema", o->train.ema,
                "Validate and keep a moving average of the weights with this decay, as 0.999 (default: none)")
      ->check(CLI::Range(0.0, 0.999999));
  c->add_option("--scheduled-sampling", o->train.scheduled_sampling,
                "Feed the model's own word instead of the reference with a probability that rises to this")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--label-smoothing", o->train.label_smoothing, "Spread over all words")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.9));
  c->add_option("--validate-every", o->train.validate_every,
                "Steps between validations (default: once an epoch)")
      ->check(CLI::PositiveNumber);
  c->add_flag(
      "--check-finite", o->train.check_finite,
      "Stop at the first NaN or infinity, say where it came from, and keep all for `translator replay`");
  c->add_option(
       "--probe", o->probe,
       "Sentence whose translation and attention are watched at each validation (default: one of the validation's)")
      ->type_name("SENTENCE");
  c->add_option("--seed", o->train.seed, "Of weights, order and dropout")->capture_default_str();
  c->add_option("-o,--out", o->train.out, "Model directory")->capture_default_str()->type_name("DIR");
  auto* resume = c->add_flag("--resume", o->resume, "Go on with the run in --out (same data and options)");
  c->add_flag("--force", o->force, "Replace the model in --out")->excludes(resume);
  c->add_flag("-q,--quiet", o->train.quiet, "Errors only");
  add_common_options(*c, o->common);
  c->callback([o, c, &exit_code] {
    finish_data_options(*o);
    for (const CLI::Option* option : c->get_options())
      if (option->count() > 0 && !option->get_lnames().empty())
        o->given.insert("--" + option->get_lnames()[0]);
    exit_code = run(*o);
  });
}

void add_compare_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CompareCommand>();
  TrainCommand& t = o->train;
  o->attentions = {"none",     "uniform", "bahdanau", "dot",       "general", "concat",
                   "location", "local-m", "local-p",  "multihead", "oracle",  "transformer"};
  CLI::App* c =
      app.add_subcommand("compare", "Train one model for each attention and seed, and compare them");
  auto check = [](const std::string& name) { return name == "transformer" ? "" : check_attention(name); };
  c->add_option("-a,--attention", o->attentions,
                "Names with commas between them, see train --help; transformer is train --model transformer "
                "(default: 12)")
      ->delimiter(',')
      ->check(CLI::Validator(check, ""))
      ->take_all()
      ->type_name("NAMES");
  c->add_option("--seeds", o->seeds, "Runs for each")->capture_default_str()->check(CLI::Range(1, 100));
  c->add_option("--seed", t.train.seed, "The first of them")->capture_default_str();
  c->add_option("--max-minutes", t.train.max_minutes, "Of training, for each run")
      ->check(CLI::PositiveNumber);
  c->add_option("-e,--epochs", t.epochs, "Passes over the data, for each run (default: as train)")
      ->check(CLI::NonNegativeNumber);
  add_data_options(*c, t);
  c->add_option("--decoder", t.model.network.decoder, "Order: auto (each attention's own), or one for all")
      ->check(CLI::IsMember({"auto", "bahdanau", "luong"}))
      ->capture_default_str();
  c->add_option("--hidden", t.hidden, "As in train")->check(CLI::PositiveNumber);
  c->add_option("--embedding", t.embedding, "As in train")->check(CLI::PositiveNumber);
  c->add_option("--dropout", t.dropout, "As in train")->check(CLI::Range(0.0, 0.95));
  c->add_option("--lr", t.lr, "As in train")->check(CLI::PositiveNumber);
  c->add_option("-b,--batch-size", t.train.batch_size, "As in train")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--work", o->work, "Directory of the runs; those that are finished are not done again")
      ->capture_default_str()
      ->type_name("DIR");
  c->add_option("-o,--out", o->out, "Markdown file to write, with a picture (.svg) beside it")
      ->type_name("FILE");
  c->add_flag("--force", o->force, "Do finished runs again");
  c->add_flag("-q,--quiet", t.train.quiet, "The result only");
  add_common_options(*c, t.common);
  c->callback([o, &exit_code] {
    finish_data_options(o->train);
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

void add_replay_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ReplayCommand>();
  CLI::App* c = app.add_subcommand("replay", "Run the step again at which train --check-finite stopped");
  c->add_option("bundle", o->bundle, "Directory that the training named")->required()->type_name("DIR");
  c->add_flag("--all", o->all, "All sentences of the batch, not only five");
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
  translator::add_compare_command(app, exit_code);
  translator::add_translate_command(app, exit_code);
  translator::add_evaluate_command(app, exit_code);
  translator::add_replay_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      fmt::print(stderr,
                 "translator: there is no command \"{}\", only corpus, train, compare, translate, evaluate, "
                 "replay\n",
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
  } catch (const gradus::NotFinite& e) {  // its line is what to look at
    fmt::print(stderr, "translator: {}\n", e.what());
    return 1;
  } catch (const gradus::Error& e) {
    fmt::print(stderr, "translator: {}\n", e.message());
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
