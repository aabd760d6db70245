#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gradus/nn/search.h>
#include <translator/model/model.h>

#include "page/output.h"
#include "request.h"

namespace lens {

/// A translator that is loaded once and answers one request at a time.
struct Served {
  Served(const std::string& directory, std::string name);

  std::string directory, name;
  translator::Model model;
  std::unique_ptr<gradus::nn::Generator> generator;
  std::mutex mutable busy;
};

/// What `lens serve` answers, without the network: every answer is a function of its request.
class ServedModels {
 public:
  /// Loads the models; of several directories of one name the later ones are called "name (2)".
  /// @throws translator::InputError or gradus::Error naming a file.
  explicit ServedModels(const std::vector<std::string>& directories);

  /// {"models": [...], "limits": {...}}, what the page begins with.
  const json& models() const { return about_; }
  const std::string& page() const { return page_; }

  /// A request that can be answered: its model found, its sentence and its words read.
  struct Job {
    const Served* served;
    ServeRequest request;
    translator::Segmented source;
    gradus::nn::SentenceSearch search;
  };
  /// @throws Refused: 404 for a model that is not served, 422 for what this model cannot do.
  Job prepare(const ServeRequest& request) const;

  /// Says a translation as it comes: a "source", a "token" for each, an "end". Whoever listens may say that
  /// nobody does any more.
  void translate(const Job& job, const std::function<bool(const json&)>& say) const;
  /// The tree of a beam search: its nodes, each with its parent and what became of it, and the translations.
  json beam(const Job& job) const;
  /// The page of `lens explain`, of a word of the translation. Loads the model anew, in double precision.
  /// @throws Refused: 503 where others wait for theirs already.
  std::string explain(const ExplainRequest& request) const;

  /// Makes what is being translated end early.
  void stop() { stopping_ = true; }

 private:
  const Served& find(const std::string& name) const;

  std::vector<std::unique_ptr<Served>> served_;
  json about_;
  std::string page_;
  std::atomic<bool> stopping_{false};
  std::mutex mutable explaining_;
  std::atomic<int> mutable waiting_{0};
};

}  // namespace lens
