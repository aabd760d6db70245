#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../scratch.h"
#include "serve/answers.h"
#include "subjects.h"

// Models to serve, and what is said when they are asked.

namespace lens::test {

const scratch::Directory& served_files();

/// A fresh model's directory.
std::string saved_model(const std::string& name, const Small& small = {});

ServeRequest asking(const std::string& model, const std::string& text);

/// The lines of a translation.
struct Told {
  std::vector<json> tokens;
  json source, end;
  std::vector<int32_t> ids() const;
};
Told told(const ServedModels& answers, const ServeRequest& request);

/// "422 the sentence has no words"; "" where nothing was refused.
std::string refusal(const std::function<void()>& ask);

}  // namespace lens::test
