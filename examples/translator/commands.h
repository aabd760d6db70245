#pragma once

#include <CLI/CLI.hpp>

namespace translator {

// Each adds its subcommand to the program; the callback sets `exit_code`.
void add_corpus_command(CLI::App& app, int& exit_code);
void add_train_command(CLI::App& app, int& exit_code);
void add_translate_command(CLI::App& app, int& exit_code);
void add_evaluate_command(CLI::App& app, int& exit_code);

/// --threads, default: the processors this process may use; and --verbose, which says on stderr what is computed with.
struct CommonOptions {
  int threads = 0;
  bool verbose = false;
};
void add_common_options(CLI::App& command, CommonOptions& options);
/// Fills the default and prints the --verbose line.
void apply(CommonOptions& options);

}  // namespace translator
