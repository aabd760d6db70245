#pragma once

#include <string>

#include <common/command_line.h>
#include <translator/commands.h>

// Options that several commands have, and those that lens has as well.

namespace translator {

/// Where a file is.
inline command_line::Option file(const command_line::Command& c, const std::string& names, std::string& path,
                                 const std::string& help) {
  return c.option(names, path, help).type_name("FILE");
}

inline void add_common_options(const command_line::Command& c, CommonOptions& o) {
  c.option("--threads", o.threads, "Threads (default: the processors this process may use)").range(1, 256);
  c.flag("-v,--verbose", o.verbose, "Say on stderr which BLAS kernels and how many threads are used");
}

inline void add_search_options(const command_line::Command& c, gradus::nn::SearchOptions& o) {
  c.option("-k,--beam-size", o.beam_size, "Hypotheses kept; 1 is greedy").show_default().range(1, 100);
  c.option("--length-penalty", o.length_penalty, "Alpha of Wu et al. 2016; 0 is off")
      .show_default()
      .range(0, 100);
}

/// What is looked at, of a trained model.
inline void add_look_options(const command_line::Command& c, LookOptions& o) {
  auto top_k = c.option("--top-k", o.top_k,
                        "Look at so many source words at a time at most (default: as the model was trained)")
                   .range(1, kMostPositions);
  c.flag("--last-only", o.last_only, "Look at the last source position only, the end of the sentence")
      .excludes(top_k);
}

/// The options of given pairs.
struct GivenOptions {
  command_line::Option file, target, swap;
};
inline GivenOptions add_given_pairs(const command_line::Command& c, GivenPairsOptions& o) {
  auto pairs = file(c, "pairs", o.pairs, "TSV: source, target; - is stdin; or sources, with --target");
  auto target = file(c, "--target", o.target, "Targets, line by line").needs(pairs);
  auto swap =
      c.flag("--swap", o.read.swap_columns, "The second column is what is translated from").needs(pairs);
  c.flag("--strict", o.read.strict, "Stop at the first bad line instead of leaving it out");
  return {pairs, target, swap};
}

/// For commands that compare with references.
inline void add_multi_reference(const command_line::Command& c, GivenPairsOptions& o,
                                const GivenOptions& given) {
  c.flag("--multi-reference", o.read.multi_reference,
         "All columns behind the first are translations of it, as many as each line has")
      .needs(given.file)
      .excludes(given.target)
      .excludes(given.swap);
}

/// All of `diff` but how it is told.
inline void add_diff_options(const command_line::Command& c, DiffCommand& o) {
  c.option("a", o.a, "Model directory, or file with a translation for each line of the pairs")
      .required()
      .type_name("A");
  c.option("b", o.b, "The same, to be held against it").required().type_name("B");
  const GivenOptions given = add_given_pairs(c, o.given);
  given.file.required();
  add_multi_reference(c, o.given, given);
  file(
      c, "--train", o.train,
      "Pairs (TSV) in whose targets words are counted, for the table by frequency (default: the references)");
  c.flag("--lowercase", o.lowercase, "Overlook capitals (default: where one of the models writes none)");
  add_search_options(c, o.search);
  c.option("--seed", o.seed, "Of the bootstrap").show_default();
  add_common_options(c, o.common);
}

}  // namespace translator
