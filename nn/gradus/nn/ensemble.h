#pragma once

#include <memory>
#include <vector>

#include <gradus/nn/incremental.h>

namespace gradus::nn {

struct EnsembleMember {
  std::shared_ptr<const Generator> generator;
  double weight = 1;
};

/// How the members' next words become one distribution; w are their weights, divided by the sum of all:
///   probability      p(v) = sum_m w_m p_m(v)          a word may come that one member believes in
///   log_probability  p(v) ~ prod_m p_m(v)^w_m         a word that one member rules out does not come
enum class EnsembleSpace { probability, log_probability };

/// Several models as one, which may be of any kind as long as their vocabularies agree. The logits of a step
/// are log p(v), f32, of log_probability up to a constant; weights the mean over those members that have some.
/// A single member is itself, to the bit. @throws Error "[ensemble] there must be a member", "[ensemble]
/// weights must be above 0: -1", and in the first step "[ensemble] members have vocabularies of 8 and 9 words".
std::unique_ptr<Generator> ensemble_of(std::vector<EnsembleMember> members, EnsembleSpace space);

}  // namespace gradus::nn
