#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gradus/nn/ensemble.h>
#include <translator/model/batches.h>
#include <translator/model/model.h>

namespace translator {

/// By its name: "probability" or "log-probability".
inline gradus::nn::EnsembleSpace space_named(const std::string& name) {
  using enum gradus::nn::EnsembleSpace;
  return name == "probability" ? probability : log_probability;
}

/// The directories that a list of models names, see Ensemble.
std::vector<std::string> model_directories(const std::string& models);

/// One model, or several that translate as one: whose text is read and written alike.
class Ensemble {
 public:
  /// Model directories with commas between, each with its weight behind a = (1 if nothing is said): "a=2,b". A
  /// text that is itself a directory is that directory. One that has members_in stands for these.
  /// With int8 their weights are rounded to 8 bits.
  /// @throws InputError for a list that is none, as Model::load, and naming the first difference between how
  /// two of them read and write text.
  Ensemble(const std::string& models, gradus::nn::EnsembleSpace space, bool int8 = false);

  /// Reads and writes the text, and has the fewest positions where they end (Model::most_positions).
  const Model& first() const { return models_[0]; }
  size_t size() const { return models_.size(); }
  /// From now on searches score the words of the model's shortlist alone, see translate_listed.
  /// @throws InputError for several models, and one without a shortlist.
  void use_shortlist(double least_mass);
  void for_each(const std::function<void(const Model&)>& f) const {
    for (const Model& m : models_) f(m);
  }
  /// Of all together. The ensemble must outlive it.
  std::unique_ptr<gradus::nn::Generator> generator() const;
  /// - log sum_m w_m p_m of each token of each pair, that of </s> last, nats. Of EnsembleSpace::probability: in
  /// the other one, what the words' sum is takes all logits.
  std::vector<std::vector<double>> token_losses(const std::vector<EncodedPair>& pairs,
                                                const Work& work) const;
  gradus::nn::EnsembleSpace space() const { return space_; }

 private:
  std::vector<Model> models_;
  std::vector<double> weights_;
  gradus::nn::EnsembleSpace space_;
};

/// The directories 1, 2 and on, the first of which holds a model, in one that holds none itself, as train
/// --together makes them; none of others. @throws InputError where one is missing and the next is there.
std::vector<std::string> members_in(const std::string& directory);

/// What two models read or write otherwise, so that they cannot work together; "": nothing.
std::string difference_in_text(const Model& a, const Model& b);

}  // namespace translator
