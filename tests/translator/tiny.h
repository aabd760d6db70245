#pragma once

#include <string>
#include <vector>

#include <translator/batches.h>
#include <translator/model.h>

namespace tiny {

/// Words are separated by spaces; `links` are Moses', none where it is empty.
translator::SentencePair pair(const std::string& source, const std::string& target,
                              const std::string& links = {});

/// Six pairs of unequal lengths, with links.
std::vector<translator::SentencePair> pairs();

/// A fresh model that knows all words of pairs().
translator::Model model(const std::string& attention = "bahdanau", double dropout = 0);

/// Sets one number of a parameter.
void set(translator::Model& model, const std::string& parameter, int64_t i, double value);

/// Sentences as the model reads them.
std::vector<translator::Segmented> split(const translator::Model& model,
                                         const std::vector<std::string>& texts);

}  // namespace tiny
