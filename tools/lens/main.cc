// Shows how the gradient travels: pages to open in a browser, and the same as text for a terminal.
//
//   lens explain                                        the small model that comes with it, one sentence
//   lens explain demo/model "he doesn't like apples" --target "il n'aime pas les pommes"
//   lens flow                                           with and without attention, untrained
//   lens check softmax                                  gradients beside finite differences
//   lens lesson 9                                       you write the backward; lens lab: you find the mistake
//
// *_command.cc hold the commands; this file only reads the command line.

#include <common/command_line.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gradus/nn/recurrent_cell.h>
#include <common/program.h>
#include <common/tell.h>
#include <common/utf8.h>
#include <translator/commands/options.h>

#include "blame/blame.h"
#include "commands.h"
#include "diff/diff.h"
#include "page/output.h"

namespace {

using command_line::Command;

// Page, text or trace. A file's name depends on --json: what is returned chooses it, when all is read.
template <class Options>
std::function<void()> add_out(const Command& c, std::shared_ptr<Options> o, const std::string& name) {
  std::string help =
      fmt::format("File to write; - is stdout (default: {0}.html, {0}.json with --json)", name);
  auto out = c.option("-o,--out", o->out, help).output_file();
  auto text = c.flag("--text", o->text, "As text, to stdout, instead of a page").excludes(out);
  c.flag("--json", o->json, "The trace alone, with all digits; see docs/trace-schema.md").excludes(text);
  return [=] {
    if (o->json && !out.given()) o->out = name + ".json";
  };
}

// A file that is written besides what goes to standard output.
command_line::Option beside(const command_line::Option& file) {
  return file.output_file().check([](const std::string& value) {
    return value == "-" ? "must be a file: text goes to standard output" : "";
  });
}

template <class Options>
auto add_pieces(const Command& c, std::shared_ptr<Options> o) {
  return c.flag("--pieces", o->pieces,
                "Show the pieces that the model reads and writes, not the words that they make");
}

// What one word by itself is.
enum class Alone { model, sentence };

// Words that stand alone come as many as there are, so that none is forgotten.
// @throws UsageError where they have no place among these, "[MODEL] [SENTENCE]", and where one is empty.
void require_places(const std::vector<std::string>& words, const std::string& places, Alone alone) {
  if (words.size() > 2)
    throw lens::UsageError(
        fmt::format("no place for \"{}\" after {}; a sentence of several words stands in quotes",
                    translator::utf8::fit(translator::utf8::printable(words[2]), 40), places));
  const auto empty = std::find(words.begin(), words.end(), "");
  if (empty == words.end()) return;
  const bool sentence = words.size() == 1 ? alone == Alone::sentence : empty != words.begin();
  throw lens::UsageError(sentence ? "the sentence is empty; write one in quotes, \"she sings\", or leave it out"
                                  : "the model directory is empty; name one that `translator train` made, or "
                                    "leave it out");
}

// The words, too, are put into the options by what they are.
template <class Options>
std::function<void()> add_sentence(const Command& c, std::shared_ptr<Options> o, const std::string& name) {
  auto words = std::make_shared<std::vector<std::string>>();
  c.option("model-and-sentence", *words,
           "Model directory (made by `translator train`) and source sentence; one of them alone is the "
           "sentence, if there is no such directory")
      .type_name("[MODEL] [SENTENCE]")
      .with_empty();
  c.option("-t,--target", o->target, "What it should say (default: what the model says)");
  c.option("-s,--step", o->step,
           "Target word to show first, or piece of one, from 1 (default: the one with the largest loss)")
      .positive();
  c.flag(
      "--transformer", o->transformer,
      "Without a model directory: the small Transformer that comes with lens, not the small recurrent model");
  add_pieces(c, o);
  auto finish = add_out(c, o, name);
  return [=] {
    require_places(*words, "[MODEL] [SENTENCE]", Alone::sentence);
    lens::take_words(*o, *words);
    finish();
  };
}

void add_explain(const Command& app, int& code) {
  auto o = std::make_shared<lens::ExplainOptions>();
  Command c = app.add_command(
      "explain", "The attention microscope: one output word's gradient, back to every source word");
  auto finish = add_sentence(c, o, "explain");
  auto units = c.option("--units", o->units, "Units of a vector that are drawn").show_default().range(4, 4096);
  c.option("--sublayer", o->sublayer,
           "Of a Transformer: the part to show first (default: where the loss's gradient is largest)")
      .one_of(lens::explain_sublayers());
  c.option("--layer", o->layer, "And its layer, from 1").positive();
  c.option("--head", o->head, "And its head, from 1").positive();
  c.flag(
      "--no-mask", o->unmasked,
      "Of a Transformer: compute it without the decoder's causal mask, to see gradient arrive from the future");
  c.callback([=, &code] {
    finish();
    if (o->text && units.given()) throw lens::UsageError("--units is of drawings; --text has none");
    code = lens::explain(*o);
  });
}

void add_graph(const Command& app, int& code) {
  auto o = std::make_shared<lens::GraphOptions>();
  Command c =
      app.add_command("graph", "The graph of one step: values, gradients, and what every edge contributes");
  auto finish = add_sentence(c, o, "graph");
  auto dot = beside(c.option("--dot", o->dot, "Write the graph for Graphviz, too"));
  c.option(
       "--level", [o](const std::string& level) { o->operations = level == "op"; },
       "Of the DOT file: module (default) or op")
      .one_of({"module", "op"})
      .needs(dot);
  c.callback([=, &code] {
    finish();
    code = lens::graph(*o);
  });
}

void add_flow(const Command& app, int& code) {
  auto o = std::make_shared<lens::FlowOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  Command c = app.add_command(
      "flow", "The short cut: how much gradient reaches each source word, with and without attention");
  c.option("model-and-sentence", *words,
           "Model directory, and a sentence to show it on (default: fresh networks on random words)")
      .type_name("[MODEL [SENTENCE]]")
      .with_empty();
  auto target = c.option("-t,--target", o->target, "What the model should say (default: what it says)");
  auto small = c.flag("--transformer", o->transformer,
                      "In place of a model directory: the small Transformer that comes with lens");
  auto pieces = add_pieces(c, o);
  auto depth = c.flag("--depth", o->depth,
                      "Layers instead of words: how much gradient reaches each layer of fresh Transformer "
                      "encoders of 2 to 24, with and without residuals, LayerNorm last, first and none");
  depth.excludes(small).excludes(pieces);
  c.option("--vs", o->versus, "A model trained without attention, to compare with")
      .type_name("DIR")
      .excludes(depth);
  auto cell = c.option("--cell", o->cell, "Of fresh networks: rnn, gru, lstm, ...")
      .one_of(gradus::nn::cell_names())
      .show_default()
      .excludes(depth);
  auto both = c.flag("--bidirectional", o->bidirectional, "Of fresh networks: read both ways").excludes(depth);
  c.option(
       "--init", o->init,
       "How fresh networks start. lecun: weights N(0, 1/fan_in), biases 0; glorot: U(-a, a), a = sqrt(6 / "
       "(fan_in + fan_out)); orthogonal: the same, recurrent ones orthonormal; pytorch: U(-1/sqrt(H), "
       "1/sqrt(H)). Default: lecun; for a model's shape pytorch, as its training started")
      .one_of(lens::flow_inits())
      .excludes(depth);
  auto length = c.option("-n,--length", o->length, "Random source words (default: 30; of a model its sentence)")
      .range(5, 60)
      .excludes(depth);
  c.option("--seeds", o->seeds,
           "Pairs of networks, networks of each kind with --depth, or random sentences of a model")
      .range(1, 100)
      .show_default();
  auto out =
      c.option("-o,--out", o->out,
               "File to write; - is stdout (default: flow.html, depth.html with --depth; .json with --json)")
          .output_file();
  beside(c.option("--svg", o->svg, "Write the chart as a picture, too"));
  auto text = c.flag("--text", o->text, "Text alone, no page").excludes(out);
  c.flag("--json", o->json, "The trace instead of a page").excludes(text);
  c.footer(
      "Fresh networks have 16 units, embeddings of 16 from N(0, 1) and a vocabulary of 24. The encoder is read "
      "in one direction unless --bidirectional; the decoder starts from tanh(W h + b) of the encoder's last "
      "state and says 4 random words, whose losses are added. With: additive attention. Without: that last "
      "state stands where the context would be. The factor is |dL/dh_1| / |dL/dh_S|, median over the seeds. It "
      "depends on how the weights start: see --init and docs/backprop-through-attention.md.\n"
      "A Transformer has no recurrence: its two lines are at the encoder's states and at the words' vectors.\n"
      "--depth: factors are |dL/dx_1| / |dL/dx_N|, x_l what layer l of N reads, and the same of weights; see "
      "docs/transformer.md.");
  c.callback([=, &code] {
    require_places(*words, "[MODEL [SENTENCE]]", small.given() ? Alone::sentence : Alone::model);
    if (std::exchange(o->transformer, false))
      words->insert(words->begin(), lens::own_model("model-transformer"));
    std::error_code none;  // a sentence may be too long for a name
    const bool two = words->size() == 2 && small.given() && std::filesystem::is_directory((*words)[1], none);
    if (two || words->size() > 2)
      throw lens::UsageError("--transformer: it stands for a model of its own; a sentence alone goes with it");
    if (words->empty() && target.given()) throw lens::UsageError("--target needs a model");
    if (!words->empty() && (cell.given() || both.given()))
      throw lens::UsageError("--cell and --bidirectional are of fresh networks; a model has its own");
    if (words->size() > 1 && length.given())
      throw lens::UsageError("--length is of random words; a sentence has its own");
    if (!words->empty()) o->model = (*words)[0];
    if (words->size() > 1) o->source = (*words)[1];
    if (!out.given()) o->out = std::string(o->depth ? "depth" : "flow") + (o->json ? ".json" : ".html");
    code = lens::flow(*o);
  });
}

// A page of three heat maps for each gradient that was checked; the text comes all the same.
std::shared_ptr<std::string> add_check_page(const Command& c) {
  auto out = std::make_shared<std::string>();
  auto file = beside(c.option("-o,--out", *out, "Write the heat maps as a page, too"));
  c.flag("--html", [out, file] {
    if (!file.given()) *out = "check.html";
  }, "The same to check.html");
  return out;
}

void add_check(const Command& app, int& code) {
  auto o = std::make_shared<lens::CheckCommandOptions>();
  Command c =
      app.add_command("check", "Gradients beside finite differences, and what kind of mistake is in them");
  auto op = c.option("op", o->names, "Operations by name (default: list them)");
  auto all = c.flag("--all", o->all, "All of them");
  auto reference = c.flag("--reference", o->reference, "The composed twin instead of the fused operation");
  auto page = add_check_page(c);
  auto log = std::make_shared<std::string>();
  c.option("--from", *log,
           "The page of what a program of yours checked: LENS_CHECK_LOG=FILE ./program adds to it")
      .type_name("FILE")
      .excludes(op)
      .excludes(all)
      .excludes(reference);
  c.callback([=, &code] {
    if (!log->empty()) code = lens::check_page(*log, page->empty() ? "check.html" : *page);
    else code = lens::with_check_page(*page, [&] { return lens::check_command(*o); });
  });
}

void add_course(const Command& app, int& code, bool lab) {
  auto o = std::make_shared<lens::CourseOptions>();
  o->folder = lab ? "gradus-labs" : "gradus-lessons";
  Command c =
      lab ? app.add_command("lab", "Programs with something wrong in them, to find and to mend")
          : app.add_command(
                "lesson",
                "Eighteen chapters: you write the backward, the check names the mistake; 0: the forward pass");
  c.option(
       "what", o->what,
       lab ? "Number of a lab; verify N judges your file"
           : "Number of a chapter (default: list them; with --watch the first that is open); verify tests "
             "all")
      .type_name("[N | verify [N]]");
  c.option("--folder", o->folder, "Where your files are").show_default().type_name("DIR");
  std::vector<command_line::Option> of_one = {c.flag("--hint", o->hint, "A hint"),
                                              c.flag("--solution", o->solution, "The answer"),
                                              c.flag("--reset", o->reset,
                                                     "Hand the file out anew; yours is kept beside it")};
  if (!lab)
    of_one.push_back(c.flag("-w,--watch", o->watch, "Build and check again whenever the file is saved"));
  c.option("--time-limit", o->time_limit, "Seconds that your program may run").range(1, 86400).show_default();
  c.flag("-q,--quiet", o->quiet, "Without the text");
  auto page = add_check_page(c);
  c.callback([=, &code] {
    const bool verify = !o->what.empty() && o->what[0] == "verify";
    if (verify && std::any_of(of_one.begin(), of_one.end(), [](auto& option) { return option.given(); }))
      throw lens::UsageError(
          "verify judges the files as they are: without --hint, --solution, --reset and --watch");
    code = lens::with_check_page(*page, [&] { return lab ? lens::lab_command(*o) : lens::lesson_command(*o); });
  });
}

void add_report(const Command& app, int& code) {
  auto o = std::make_shared<lens::ReportOptions>();
  Command c = app.add_command(
      "report", "A training run on one page: losses, attention and layers over time, worst sentences");
  c.option("run", o->run, "Directory that `translator train --out` wrote").required().type_name("DIR");
  auto out =
      c.option("-o,--out", o->out, "File to write; - is stdout").show_default().output_file();
  auto text = c.flag("--text", o->text, "As text, to stdout, instead of a page").excludes(out);
  c.flag("--explain", o->explain, "Write the explain pages of the worst sentences beside it").excludes(text);
  c.callback([=, &code] { code = lens::report(*o); });
}

void add_diff(const Command& app, int& code) {
  auto o = std::make_shared<lens::DiffOptions>();
  Command c = app.add_command(
      "diff", "Two translators on the same pairs: scores, who wins which sentences and words");
  translator::add_diff_options(c, o->systems);
  c.option("-o,--out", o->out, "File to write; - is stdout").show_default().output_file();
  c.footer("`translator diff` tells the same as text and as JSON.");
  c.callback([=, &code] { code = lens::diff(*o); });
}

void add_blame(const Command& app, int& code) {
  auto o = std::make_shared<lens::BlameOptions>();
  Command c = app.add_command(
      "blame", "Do weights explain? Attention beside gradients and left-out words, over many sentences");
  c.option("model", o->model, "Model directory (made by `translator train`)").required().type_name("MODEL");
  translator::add_given_pairs(c, o->given).file.required();
  c.flag("--json", o->json, "As JSON");
  c.footer(
      "For each word of the given targets the source words, </s> among them, are ranked by four answers to how "
      "much they matter: their attention weight; the gradient that reaches their annotation, |dL/dh_j|, the "
      "blame of `lens explain`; the gradient that reaches their embedding, |dL/dx_j|; how far the prediction "
      "moves when the word is left out. Exit status 1, too, when a line was left out.");
  c.callback([=, &code] { code = lens::blame(*o); });
}

void add_ablate(const Command& app, int& code) {
  auto o = std::make_shared<lens::AblateOptions>();
  Command c =
      app.add_command("ablate", "Train small networks with one way of the gradient stopped, and compare");
  c.option("--cut", o->cuts, "value, score or recurrent, with commas between (default: each)")
      .delimiter(',')
      .take_all()
      .one_of({"value", "score", "recurrent"});
  c.option("--task", o->kind, "reverse or copy digits").one_of({"reverse", "copy"}).show_default();
  c.option("-n,--length", o->length, "Digits").range(2, 15).show_default();
  c.option("--hidden", o->hidden, "Units").range(4, 256).show_default();
  c.option("-e,--epochs", o->epochs, "Of 60 batches of 32").range(1, 200).show_default();
  c.option("--seed", o->seed, "Of weights and data").show_default();
  c.option("--seeds", o->seeds, "Train each with so many seeds; the first is drawn, all are compared")
      .range(1, 50)
      .show_default();
  auto out =
      c.option("-o,--out", o->out, "File to write; - is stdout").show_default().output_file();
  c.flag("--text", o->text, "As text, to stdout, instead of a page").excludes(out);
  c.callback([=, &code] { code = lens::ablate(*o); });
}

void add_serve(const Command& app, int& code) {
  auto o = std::make_shared<lens::ServeOptions>();
  Command c =
      app.add_command("serve", "A page on this machine: type a sentence, and see it translated word by word");
  c.option("models", o->models, "Model directories (default: the two small models that come along)")
      .type_name("MODEL");
  c.option("-p,--port", o->port, "Where to listen; 0: any that is free").range(0, 65535).show_default();
  c.option("--host", o->host, "Address to listen at instead of 127.0.0.1 and [::1]: others may then ask, too")
      .type_name("ADDRESS");
  c.footer(
      "Open the address that it prints. Words can be masked, forced and drawn, the beam opened, two models "
      "held side by side; a click on a word shows what it came of, and the way to its explain page. Nothing is "
      "written to disk. Ctrl-C ends it, with exit status 0. docs/serve.md has what else can be asked, by other "
      "programs, too.");
  c.callback([=, &code] { code = lens::serve(*o); });
}

}  // namespace

int main(int argc, char** argv) {
  translator::called_as(argc > 0 ? argv[0] : "lens");
  command_line::Program app{"Lets you see the gradient travel through attention.", "lens"};
  app.footer(
      "Each command explains itself: lens explain --help. Examples:\n"
      "  lens explain                                one sentence, on the model that comes along: "
      "explain.html\n"
      "  lens explain model \"she sings\" --target \"elle chante\" --step 2\n"
      "  lens explain --text                         the same in the terminal; so do flow, graph, report, "
      "ablate\n"
      "  lens check softmax --html                   heat maps of the gradients: check.html; as text, too\n"
      "  lens report model --explain                 a training run, its worst sentences explained\n"
      "  lens serve                                  type sentences into a page on this machine\n"
      "  lens blame model test.tsv                   do its weights tell what mattered? many sentences\n"
      "Exit status: 0 all is well; 1 an error, or a gradient that differs; 2 a command line that makes no "
      "sense.");
  app.last_wins();
  int code = 0;
  add_explain(app, code);
  add_flow(app, code);
  add_graph(app, code);
  add_check(app, code);
  add_course(app, code, false);
  add_course(app, code, true);
  add_report(app, code);
  add_diff(app, code);
  add_blame(app, code);
  add_ablate(app, code);
  add_serve(app, code);
  auto failed = [](const std::string& what, int status) {
    translator::tell("lens: {}\n", what);
    return status;
  };
  try {
    return app.end(app.parse(argc, argv) ? code : app.report());
  } catch (const lens::UsageError& e) {
    return failed(e.what(), 2);
  } catch (const gradus::NotFinite& e) {  // its line is what to look at
    return failed(e.what(), 1);
  } catch (const gradus::Error& e) {
    return failed(lens::reason(e), 1);
  } catch (const std::exception& e) {
    return failed(translator::what_of(e), 1);
  }
}
