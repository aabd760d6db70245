#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gradus/nn/recurrent_cell.h>

// An option, told once: what a file and the command line call it, which values it takes, what it is for.
// Configurations list theirs; files, the command line and the comparison of --resume go over these lists.

namespace translator {

// Where a value is, and what it may be.

/// With `or_zero` 0 stands for a default, which a file may say.
template <class T>
struct Range {
  T* value;
  T least, most;
  bool or_zero = false;
};
using Whole = Range<int64_t>;
using Number = Range<double>;
using Few = Range<int>;
/// The least of what must be positive.
constexpr double kAboveZero = 5e-324;

/// Of random numbers: any.
struct Seed {
  uint64_t* value;
};

/// A text that is none of some names: a sentence, or what it is a `kind` of. A FILE and a DIR are paths.
struct Free {
  std::string* value;
  const char* kind = "FILE";
};

struct Switch {
  bool* value;
};

/// A text; on the command line one of the names, where there are any, or an alias of one.
struct Word {
  std::string* value;
  std::vector<std::string> names = {};
  std::map<std::string, std::string> aliases = {};
};

/// A recurrent unit by its name; its layer_norm is another option.
struct Cell {
  gradus::nn::CellType* value;
  /// @throws gradus::Error for a name that there is not.
  void set(const std::string& name) const;
};

struct Field {
  /// As for Command::option, or flag: "-e,--epochs"; empty: not on the command line.
  const char* flags;
  std::variant<Whole, Number, Few, Seed, Switch, Word, Free, Cell> value;
  /// Empty where another list explains the same option.
  const char* help = "";
  /// In a file, with a dot where it stands in an object of its own: "attention_options.window".
  const char* name = "";
  /// Every file has it. What is not required was once no option, and stays as it is where a file lacks it.
  bool required = false;

  /// The first long name of the flags: "--epochs".
  std::string option() const;
  /// The value as people write it: 0.5, yes, lstm. Of an alias the name.
  std::string text() const;
  /// Takes the value of a field of the same kind.
  void assign(const Field& other) const;
};

/// Of a Range, and of a Field.
constexpr bool kOrZero = true, kRequired = true;

using Fields = std::vector<Field>;

}  // namespace translator
