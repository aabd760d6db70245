// write_pages DIRECTORY: explain and graph pages of small fresh models of every kind, Transformers among
// them, and a flow page of a Transformer, for test_pages.py to open.

#include <cstdio>

#include "flow/flow.h"
#include "graph/graph.h"
#include "subjects.h"
#include "transformer/output.h"

using lens::test::Small;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::vector<std::pair<std::string, Small>> all;
  for (const char* attention :
       {"bahdanau", "dot", "scaled-dot", "general", "concat", "multihead", "location", "uniform"})
    all.emplace_back(attention, Small{.attention = attention});
  for (const char* cell : {"gru-reset-before", "gru-bahdanau", "lstm", "rnn", "rnn-relu"})
    all.emplace_back(cell, Small{.cell = cell});
  all.emplace_back("maxout", Small{.readout = "maxout"});
  all.emplace_back("general-maxout", Small{.attention = "general", .readout = "maxout"});
  all.emplace_back("one-direction", Small{.bidirectional = false});
  all.emplace_back("temperature", Small{.temperature = 0.6});
  all.emplace_back("multihead-bahdanau",
                   Small{.attention = "multihead", .cell = "lstm", .decoder = "bahdanau", .temperature = 2});
  all.emplace_back("layer-norm", Small{.layer_norm = true});
  all.emplace_back("unknown", Small{.source = "the Zork eats Constantinople"});
  all.emplace_back("repeated", Small{.source = "the cat eats the fish"});
  // Graphs whose modules differ: other orders, cells with a second state, layers.
  std::vector<std::pair<std::string, Small>> graphs = {
      {"graph-luong", {.attention = "general"}},
      {"graph-lstm", {.attention = "multihead", .cell = "lstm", .layers = 2}},
      {"graph-one-direction", {.attention = "concat", .cell = "rnn", .bidirectional = false}}};
  if (translator::Subwords::available()) {
    all.emplace_back("multihead-pieces",
                     Small{.attention = "multihead", .temperature = 1.3, .subwords = true});
    all.emplace_back("pieces-shown", Small{.subwords = true, .pieces = true});
    graphs.emplace_back("graph-pieces", Small{.subwords = true});
  } else {
    std::puts("[skipped] this build has no SentencePiece: no pages of pieces");
  }
  for (const auto& [name, small] : all) {
    lens::Subject subject = lens::test::subject(small);
    lens::Dissection d = subject.dissect();
    lens::json trace = lens::to_json(subject, d, lens::trace_sentence(d), {.digits = 6, .packed = true});
    lens::write_file(std::string(argv[1]) + "/" + name + ".html", lens::assemble_page("explain", trace));
  }
  for (const auto& [name, small] : graphs) {
    lens::Subject subject = lens::test::subject(small);
    lens::StepGraph g = lens::trace_step(subject.dissect(), 2);
    lens::write_file(std::string(argv[1]) + "/" + name + ".html",
                     lens::assemble_page("graph", lens::graph_json(subject, g, 1, 0, 5)));
  }
  gradus::Rng rng(1);
  gradus::nn::TransformerSeq2Seq transformer(
      {.source_vocabulary = 9, .target_vocabulary = 9, .d_model = 8, .num_heads = 2}, rng);
  gradus::nn::to(transformer, gradus::DType::f64);
  std::vector<lens::FlowResult> flows;
  for (bool fresh : {true, false})
    for (int64_t length : {5, 10})
      flows.push_back(lens::transformer_random(transformer, fresh, length, {.seeds = 2}));
  lens::FlowTitles titles{.title = "Flow",
                          .setup = lens::transformer_setup(transformer.config, {.seeds = 2}),
                          .model = "small",
                          .transformer = true,
                          .seeds = 2};
  lens::write_file(std::string(argv[1]) + "/flow-transformer.html",
                   lens::assemble_page("flow", lens::flow_json(flows, titles, 3)));
  std::vector<std::pair<std::string, lens::test::SmallTransformer>> transformers = {
      {"transformer-norm-last", {.norm_first = false}},
      {"transformer-gelu", {.activation = "gelu", .positions = "learned"}},
      {"transformer-open", {.source = "the Zork eats"}},
      {"transformer-uncausal", {.causal = false}},
      {"transformer-temperature", {.temperature = 0.6}}};
  if (translator::Subwords::available()) {
    transformers.push_back({"transformer-pieces", {.subwords = true}});
    transformers.push_back({"transformer-pieces-shown", {.subwords = true, .pieces = true}});
  }
  for (const auto& [name, small] : transformers) {
    lens::Subject subject = lens::test::transformer_subject(small);
    lens::transformer::Dissection d(*subject.model.transformer(), subject.source_ids, subject.target_ids,
                                    name != "transformer-open");
    lens::transformer::Trace trace = lens::transformer::differentiate(d);
    lens::transformer::check(d, trace);
    lens::write_file(
        std::string(argv[1]) + "/" + name + ".html",
        lens::assemble_page("transformer",
                            lens::transformer::to_json({subject, d, trace}, {.digits = 6, .packed = true})));
    if (!d.as_trained()) continue;
    lens::StepGraph g = lens::trace_step(d, trace, 2);
    lens::write_file(std::string(argv[1]) + "/graph-" + name + ".html",
                     lens::assemble_page("graph", lens::graph_json(subject, g, 1, 0, 5)));
  }
  std::printf("%zu pages\n", all.size() + graphs.size() + 2 * transformers.size());
}
