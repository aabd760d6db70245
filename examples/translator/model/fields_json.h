#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <translator/model/fields.h>

// Fields as a file has them, JSON. Whatever is wrong there is said with the file and the field.

namespace translator {

/// A file that is being read, and how complaints about it begin.
struct FieldsFile {
  std::string path;
  /// "is not a translator's configuration"
  const char* not_one;
  /// of numbers out of their range: "describes no network that can be built"
  const char* impossible;

  /// @throws InputError "PATH: is not ...: what".
  [[noreturn]] void fault(const std::string& what) const;
};

nlohmann::ordered_json to_json(const Field& field);
/// Sets the field from a value, which errors call `name`. A text may be any: whether it is one of the names,
/// and what is said where it is not, is up to the caller.
/// @throws InputError for a value of another kind, or out of the range.
void set_from_json(const Field& field, const nlohmann::ordered_json& value, const FieldsFile& file,
                   const std::string& name);

/// All fields under their names, in `place` ("network.") of the file.
void write_fields(nlohmann::ordered_json& file, const std::string& place, const Fields& fields);
/// Sets the fields that are there. @throws InputError as set_from_json, and where a required one is missing.
void read_fields(const nlohmann::ordered_json& object, const FieldsFile& file, const std::string& place,
                 const Fields& fields);

}  // namespace translator
