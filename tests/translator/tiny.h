#pragma once

#include <map>
#include <string>
#include <vector>

#include <translator/model/batches.h>
#include <translator/model/model.h>
#include <translator/training/train_options.h>

#include "../io/scratch.h"

namespace tiny {

/// Words are separated by spaces; `links` are Moses', none where it is empty.
translator::SentencePair pair(const std::string& source, const std::string& target,
                              const std::string& links = {});

/// Six pairs of unequal lengths, with links.
std::vector<translator::SentencePair> pairs();

/// A fresh model that knows all words of pairs().
translator::Model model(const std::string& attention = "bahdanau", double dropout = 0);

/// Sentences seen as one batch, plain gradient descent for one epoch: nothing random but the order, no
/// clipping, no warm-up.
translator::TrainOptions plain(const scratch::Directory& directory);

/// All parameters by name.
using Values = std::map<std::string, std::vector<double>>;
Values weights(const translator::Model& model);

/// Sets one number of a parameter.
void set(translator::Model& model, const std::string& parameter, int64_t i, double value);

/// Sentences as the model reads them.
std::vector<translator::Segmented> split(const translator::Model& model,
                                         const std::vector<std::string>& texts);

}  // namespace tiny
