#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "../show_json.h"
#include <translator/training/trainer.h>

namespace runs {

/// A fresh model of 16 units for the embedded corpus's first sentences.
translator::Model small_model(const std::vector<translator::SentencePair>& pairs,
                              const std::string& attention = "bahdanau", const std::string& kind = "gru");

/// Sentences of the embedded corpus.
std::vector<translator::SentencePair> pairs(const std::string& split, int64_t count);

/// A directory of its own for this test run, emptied.
std::string directory(const std::string& name);

/// Trains for `epochs` and returns the directory: the same every time.
std::string train(const std::string& name, int64_t epochs = 2, const std::string& attention = "bahdanau");
/// The same with the seed's options changed.
translator::TrainOptions options(const std::string& out, int64_t epochs);

/// The lines of train.log.
std::vector<nlohmann::ordered_json> log(const std::string& directory, const std::string& event = {});
std::string read(const std::string& path);

}  // namespace runs
