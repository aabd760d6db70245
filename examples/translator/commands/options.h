#pragma once

#include <cstdlib>
#include <string>

#include <common/command_line.h>
#include <translator/commands/commands.h>

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

/// What a search takes, and what it ranks by.
inline void add_search_options(const command_line::Command& c, gradus::nn::SearchOptions& o) {
  c.option("-k,--beam-size", o.beam_size, "Hypotheses kept; 1 is greedy").show_default().range(1, 100);
  auto alpha_of = [](const std::string& value) {
    char* end = nullptr;
    const double alpha = std::strtod(value.c_str(), &end);
    return value.empty() || *end != 0 ? -1 : alpha;
  };
  c.option(
       "--length-penalty",
       [&o, alpha_of](const std::string& value) {
         o.length_penalty = value == "average" ? std::nullopt : std::optional(alpha_of(value));
       },
       "Alpha of Wu et al. 2016, 0 is off; or average: log probability a token (the default)")
      .check([alpha_of](const std::string& value) {
        const bool fits = value == "average" || (alpha_of(value) >= 0 && alpha_of(value) <= 100);
        return fits ? "" : "must be from 0 to 100, or average";
      })
      .type_name("FLOAT|average");
  c.option("--coverage-penalty", o.coverage_penalty,
           "Beta of Wu et al. 2016: how much source words that were not looked at lower a score (default: 0)")
      .range(0, 100);
  c.option("--min-length", o.min_length, "Tokens at least (default: 0)").range(0, 100000);
  c.option("--no-repeat-ngram", o.no_repeat_ngram,
           "So many tokens in a row never come twice (default: they may)")
      .range(1, 1000);
  c.flag(
      "--exact-stop", [&o] { o.exact_stop = 1; },
      "Go on, or stop sooner, until nothing in the beam can become better than what is taken");
}

/// What translations are told besides.
inline void add_steering_options(const command_line::Command& c, SteeringOptions& o,
                                 gradus::nn::Sampling& sampling) {
  c.option("--prefix", o.prefix, "What every translation begins with").type_name("TEXT");
  auto alternatives =
      c.flag("--alternatives", o.alternatives,
             "The most probable words after the prefix, --n-best of them, each with its best completion");
  auto words = [&](const char* name, std::vector<std::string>& list, const char* help) {
    return c.option(name, list, help).expected(1, 1).take_all().type_name("TEXT");
  };
  words("--forbid", o.forbid, "A word or phrase that no translation has; may be given several times");
  auto require = words("--require", o.require,
                       "A word or phrase that each translation has; may be given several times; "
                       "wants a --beam-size of 5 or more");
  auto sample = c.flag("--sample", o.sample, "Draw words at random by their probability, --n-best times");
  sample.excludes(require);
  sample.excludes(alternatives);
  c.option("--seed", o.seed, "With --sample: the same seed draws the same words, whatever else is translated")
      .show_default()
      .needs(sample);
  c.option("--temperature,--sample-temperature", sampling.temperature,
           "With --sample: below 1 nearer to the most probable words, above 1 nearer to chance (default: 1)")
      .positive()
      .needs(sample);
  c.option("--sample-top-k", sampling.top_k, "With --sample: from so many most probable words (default: all)")
      .range(1, 1000000)
      .needs(sample);
  c.option("--top-p,--sample-top-p", sampling.top_p,
           "With --sample: from the fewest most probable words that have this probability (default: 1)")
      .range(1e-6, 1)
      .needs(sample);
  c.option("--min-p,--sample-min-p", sampling.min_p,
           "With --sample: from words this many times as probable as the most probable one (default: 0)")
      .range(0, 1)
      .needs(sample);
}

/// The model that translates, or several as one.
inline void add_models(const command_line::Command& c, std::string& models, std::string& ensemble, bool& int8,
                       std::optional<double>& least_mass) {
  c.option(
       "model", models,
       "Model directory; or several that translate as one, with commas between, each with its weight: a,b=0.5")
      .required()
      .type_name("DIR");
  c.option("--ensemble", ensemble, "Of several models: what is averaged")
      .one_of({"probability", "log-probability"})
      .show_default();
  c.flag("--int8", int8, "Round the weights to 8 bits, for speed (default: of models that quantize wrote)");
  c.option(
       "--shortlist",
       [&least_mass](const std::string& value) { least_mass = std::strtod(value.c_str(), nullptr); },
       "Score only the words that training has linked to the sentence's; where they had less than this of the "
       "probability at a word of the translation, it is made anew with all words (0: never; default: all "
       "words)")
      .range(0, 1)
      .type_name("MASS");
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
  c.option("A", o.a, "Model directory, or file with a translation for each line of the pairs")
      .required()
      .type_name("A");
  c.option("B", o.b, "The same, to be held against it").required().type_name("B");
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
