#pragma once

#include <istream>
#include <string>
#include <vector>

#include "output.h"

namespace lens {

/// What in a document breaks a schema, a line each: "steps[2].loss: must be number or string, is null". Empty:
/// nothing. The part of JSON Schema that it knows: type (a name or several), const, enum, minimum, maximum,
/// required, properties, additionalProperties (false or a schema), items, prefixItems, minItems, maxItems,
/// oneOf, $ref to "#/$defs/NAME", and description. Anything else throws, so that no rule is overlooked.
std::vector<std::string> problems(const json& document, const json& schema);

/// The schema of traces, tools/lens/page/trace.schema.json.
const json& trace_schema();
/// Of the lines of train.log, tools/lens/page/run-log.schema.json.
const json& run_log_schema();

/// What breaks the schema in a line of train.log whose "event" is text, whichever version wrote it: what is
/// there is as the schema has it, but fields may be missing or unknown; not of where a validation or resume is.
std::vector<std::string> event_problems(const json& event);
/// In a line of what checks logged, its numbers' count included.
std::vector<std::string> check_problems(const json& check);

/// Reads a log's next line; false at its end. Errors call the log `path`, and the line by its number.
/// @throws translator::InputError for a line of more than 64 MB: whatever that is, it is no log.
bool next_line(std::istream& log, const std::string& path, int64_t number, std::string& line);

}  // namespace lens
