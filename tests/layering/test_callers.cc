// Whatever can fail says where it was called: every function and constructor that users may call takes the caller's
// line, as an Input or as `Caller caller = Caller::current()`, or stands in the list below of those that cannot fail.
// What the line is good for is tested in tests/nn/test_caller*.cc; this finds the one that forgot it.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "../quick_doctest.h"

namespace fs = std::filesystem;

namespace {

// A function as a header declares it.
struct Declaration {
  std::string scope;  // the class, "" outside
  std::string name;
  std::string parameters;
  bool throws = false;  // its comment says so
};

// Comments as spaces, but for a mark where one says @throws; no lines of the preprocessor.
std::string code_of(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      size_t end = std::min(text.find('\n', i), text.size());
      if (text.substr(i, end - i).find("@throws") != std::string::npos) out += "@";
      i = end;
    } else if (text[i] == '#') {
      while (i < text.size() && text[i] != '\n') i += text.compare(i, 2, "\\\n") == 0 ? 2 : 1;
    } else if (text[i] == '"') {
      size_t end = i + 1;
      while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      out += "\"\"";
      i = end + 1;
    } else {
      out += text[i++];
    }
  }
  return out;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

size_t matching(const std::string& s, size_t open) {
  const char left = s[open], right = left == '(' ? ')' : left == '<' ? '>' : '}';
  int depth = 0;
  for (size_t i = open; i < s.size(); ++i) {
    if (s[i] == left) ++depth;
    if (s[i] == right && --depth == 0) return i;
  }
  return s.size();
}

// The statement as a function, if it is one. It ends before its `;` or `{`, initialisers of members included.
bool as_function(const std::string& statement, const std::string& scope, Declaration& out) {
  std::string s = statement;
  if (size_t at = s.find("template"); at != std::string::npos) s.erase(0, matching(s, s.find('<', at)) + 1);
  size_t open = s.find('(');
  for (const char* call : {"operator()", "requires"})
    if (size_t at = s.find(call); at != std::string::npos && at < open + 10)
      open = call[0] == 'o' ? s.find('(', at + 10) : std::string::npos;
  const std::string front = s.substr(0, open);
  if (open == std::string::npos || front.find("using ") != front.npos || front.find('=') != front.npos)
    return false;
  if (std::count(front.begin(), front.end(), '<') != std::count(front.begin(), front.end(), '>'))
    return false;  // std::function<void(int)> member
  size_t end = open;
  while (end > 0 && std::isspace(static_cast<unsigned char>(s[end - 1]))) --end;
  size_t begin = end;
  while (begin > 0 && is_word(s[begin - 1])) --begin;
  out.name = s.substr(begin, end - begin);
  if (size_t at = s.find("operator"); at != std::string::npos && at < open) out.name = "operator";
  if (out.name.empty() || (begin > 0 && s[begin - 1] == '~')) return false;
  out.scope = scope;
  out.parameters = s.substr(open + 1, matching(s, open) - open - 1);
  out.throws = statement.find('@') != std::string::npos;
  return s.find("= delete") == std::string::npos && s.find("= default") == std::string::npos;
}

// All public functions of a header, from top to bottom.
std::vector<Declaration> declarations(const std::string& text) {
  const std::string s = code_of(text);
  std::vector<Declaration> out;
  struct Level {
    std::string scope;
    bool open_to_all;
  };
  std::vector<Level> levels{{"", true}};
  std::string statement;
  auto take = [&] {
    Declaration d;
    if (levels.back().open_to_all && as_function(statement, levels.back().scope, d)) out.push_back(d);
  };
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == ';') {
      take();
      statement.clear();
    } else if (s[i] == '(') {  // parameters, default arguments included
      size_t end = matching(s, i);
      statement += s.substr(i, end - i + 1);
      i = end;
    } else if (s[i] == '{') {
      auto starts = [&](const char* word) {
        size_t at = statement.find(word);
        return at != std::string::npos && statement.find('(') == std::string::npos ? at : std::string::npos;
      };
      size_t at = std::min({starts("struct "), starts("class ")});
      if (starts("namespace") != std::string::npos) {
        levels.push_back({"", true});
        statement.clear();
      } else if (starts("enum ") == std::string::npos && at != std::string::npos) {
        size_t name = statement.find(' ', at) + 1, end = name;
        while (end < statement.size() && is_word(statement[end])) ++end;
        bool is_class = statement.compare(at, 5, "class") == 0;
        levels.push_back({statement.substr(name, end - name), levels.back().open_to_all && !is_class});
        statement.clear();
      } else {                                 // a body, or initial values
        bool initialiser = is_word(s[i - 1]);  // x{...}: the statement goes on
        if (!initialiser) take(), statement.clear();
        i = matching(s, i);
      }
    } else if (s[i] == '}') {
      if (levels.size() > 1) levels.pop_back();
      statement.clear();
    } else if (s[i] == ':' && i > 0 && s[i - 1] != ':' && s[i + 1] != ':') {
      bool label = false;
      for (const char* word : {"public", "private", "protected"}) {
        size_t at = statement.find_first_not_of(" \n@");
        if (at == std::string::npos || statement.compare(at, std::string::npos, word) != 0) continue;
        levels.back().open_to_all = word[1] == 'u';
        label = true;
      }
      if (label)
        statement.clear();
      else
        statement += s[i];
    } else {
      statement += s[i];
    }
  }
  return out;
}

bool knows_its_caller(const Declaration& d) {
  auto takes = [&](const char* type) { return d.parameters.find(type) != std::string::npos; };
  return takes("Input&") || takes("Caller") || takes("Axis&");
}

// Those that cannot fail, by class and name; whole classes as "Rng::".
const std::set<std::string> kCannotFail = {
    // Values and their parts.
    "Var::Var", "Node::Node", "name_of", "size_of", "is_floating", "philox", "Rng::", "Shape::set",
    "broadcasts_to", "worse", "Tensor::Tensor", "Tensor::zeros", "Tensor::ones", "Tensor::full",
    "Tensor::scalar", "Tensor::to", "Tensor::fill", "all_close", "all_finite", "allocate", "machine_memory",
    "Shape::countable", "visit", "to_string", "describe", "nearest_name",
    "tape", "stop_gradient",
    // Within a backward the place is the line that called the op.
    "Grads::needed", "Grads::add", "Grads::into", "Grads::add_rows", "add_rows_into", "densify",
    "Gradients::contains", "Gradients::find", "Gradients::add", "Gradients::scale", "grad_norm",
    "sum_repeated_rows",
    // Modes, and jobs that throw what they throw.
    "Training::Training", "Scope::Scope", "At::At", "Error::Error", "ThreadPool::run", "dropout_keep",
    // These report instead.
    "diagnose", "gradcheck", "sample_inputs", "check_op_case", "Input::Input",
    "OpCaseRegistration::OpCaseRegistration",
    // Visits of a module, and what they find.
    "ParamVisitor::operator", "visited", "named_parameters", "state_dict", "num_parameters",
    "label_parameters", "summary", "Optimizer::state_dict", "composed_generator", "make_generator",
    "Generative::generator", "Seq2Seq::generator", "TransformerSeq2Seq::generator",
    // Attention without a query: a query of the wrong size fails in `step`.
    "Attention::start", "Attention::context_size", "FormedAttention::start", "FormedAttention::context_size", "HardAttention::start", "LocationAwareAttention::start",
    "CoverageAttention::start", "MultiheadSourceAttention::context_size", "uniform_weights",
    // Schedules of any numbers.
    "multi_step_lr", "exponential_lr", "linear_lr", "Scheduler::step_to", "ReduceLROnPlateau::step",
    "max_target_length",
    // A form is read under the At of a step that asks for it.
    "ScoreForm::over",
    // Helpers of the library itself.
    "WeightPart::WeightPart", "WeightPart::of_rows", "WeightPart::of_columns",
    "as_formed", "as_recurrent", "largest_weights", "RowSentences::RowSentences",
};

std::string full_name(const Declaration& d) { return d.scope.empty() ? d.name : d.scope + "::" + d.name; }

// A function without parameters has nothing that a caller could get wrong. A check that speaks in the name of another
// function, its first parameter, is called under that one's At.
bool may_forget(const Declaration& d) {
  if (d.name == "params" || (d.parameters.empty() && !d.throws)) return true;
  for (const char* first :
       {"const char* where", "const char* op", "const char* who", "std::string_view where"})
    if (d.parameters.starts_with(first)) return true;
  return kCannotFail.count(full_name(d)) > 0 || kCannotFail.count(d.scope + "::") > 0;
}

std::vector<fs::path> public_headers() {
  // Internal headers (which no meson.build installs), and pointers and sizes without checks in kernels/.
  const std::set<std::string> internal = {"real_steps.h",      "recurrence.h", "operands.h",
                                          "diagnosis_rules.h", "half.h",       "json_header.h",
                                          "npy_format.h",      "walk.h",       "recurrent_norm.h",
                                          "recurrent_cases.h", "backward_pass.h", "backward_watch.h",
                                          "differences.h"};
  const std::set<std::string> names_a_file = {"replacement.h"};  // and no line, in its errors
  std::vector<fs::path> out;
  for (const char* folder : {"lib/gradus", "nn/gradus/nn"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(GRADUS_SOURCE_ROOT) / folder)) {
      const fs::path& path = entry.path();
      const std::string parent = path.parent_path().filename();
      if (path.extension() == ".h" && parent != "kernels" && parent != "products" && parent != "packed" &&
          !internal.count(path.filename()) && !names_a_file.count(path.filename()))
        out.push_back(path);
    }
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TEST_CASE("every public function that can fail knows the line of its caller") {
  size_t functions = 0, aware = 0;
  std::set<std::string> unused = kCannotFail;
  for (const fs::path& path : public_headers())
    for (const Declaration& d : declarations(text_of(path))) {
      ++functions;
      CAPTURE(path.filename().string());
      CAPTURE(d.parameters);
      unused.erase(full_name(d));
      unused.erase(d.scope + "::");
      aware += knows_its_caller(d);
      if (knows_its_caller(d)) continue;
      CHECK_MESSAGE(may_forget(d), full_name(d) << " takes neither an Input nor a Caller");
    }
  CHECK(functions > 500);
  CHECK(aware > 300);
  for (const std::string& name : unused) FAIL_CHECK(name << " is listed, and declared nowhere");
}

TEST_CASE("the reader of declarations") {
  const std::vector<Declaration> found = declarations(R"(
#define MACRO(x) \
  f(x);
namespace a {
/// A thing. @throws Error "[f] {x}".
Var f(const Input& x, double p = g(1));
template <class T>
T h(T x) { return x; }
struct Options { int n = 3; Tensor t = {}; };
enum class Kind { one, two };
struct Layer : Base {
  Parameter weight;
  Layer(int64_t n, Rng& rng, Caller caller = Caller::current()) : weight{n}, own(rng) {}
  explicit Layer(int n);
  Layer(const Layer&) = delete;
  ~Layer();
  Var operator()(const Tensor& ids, Caller caller = Caller::current()) const;
  std::function<Var(int)> make;
 private:
  void hidden(int n);
};
class Closed {
  void hidden();
 public:
  int size() const { return 1; }
};
const double& last(int n);
}  // namespace a
)");
  std::vector<std::string> names;
  for (const Declaration& d : found)
    names.push_back(full_name(d) + (knows_its_caller(d) ? " knows" : "") + (d.throws ? " throws" : ""));
  CHECK(names == std::vector<std::string>{"f knows throws", "h", "Layer::Layer knows", "Layer::Layer",
                                          "Layer::operator knows", "Closed::size", "last"});
}
