#include "serving.h"

namespace lens::test {

const scratch::Directory& served_files() {
  static const scratch::Directory directory;
  return directory;
}

std::string saved_model(const std::string& name, const Small& small) {
  const std::string directory = served_files().file(name);
  Subject s = subject(small);
  gradus::nn::to(*s.model.network, gradus::DType::f32);
  s.model.save_description(directory);
  s.model.save_weights(directory);
  return directory;
}

ServeRequest asking(const std::string& model, const std::string& text) {
  ServeRequest out;
  out.model = model;
  out.text = text;
  return out;
}

std::vector<int32_t> Told::ids() const {
  std::vector<int32_t> out;
  for (const json& t : tokens) out.push_back(t["id"].get<int32_t>());
  return out;
}

Told told(const ServedModels& answers, const ServeRequest& request) {
  Told out;
  answers.translate(answers.prepare(request), [&](const json& line) {
    if (line["event"] == "source")
      out.source = line;
    else if (line["event"] == "token")
      out.tokens.push_back(line);
    else
      out.end = line;
    return true;
  });
  return out;
}

std::string refusal(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Refused& e) {
    return std::to_string(e.status) + " " + e.what();
  }
  return "";
}

}  // namespace lens::test
