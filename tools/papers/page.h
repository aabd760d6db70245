#pragma once

#include <string>
#include <vector>

#include "experiment.h"

namespace papers {

/// The page as Markdown, with the picture NAME.svg in it.
std::string markdown(const Experiment& experiment, const Page& page, const std::vector<Log>& logs);

/// One row of the list of all pages: name, picture, claim, how many of its orders hold.
std::string index_row(const Experiment& experiment, const Page& page);
std::string index_of(const std::vector<std::string>& rows);

}  // namespace papers
