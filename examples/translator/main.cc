// The translator: Bahdanau, Cho and Bengio 2014 (arXiv:1409.0473), and Luong et al. 2015, at the scale of a laptop.
//
//   translator train                                            the embedded English-French corpus, good defaults
//   translator translate model "he doesn't like apples" --attention-map
//
// train.cc, translate.cc, evaluate.cc and corpus.cc hold the commands; trainer.cc the training loop.

#include <fmt/core.h>

#include <csignal>
#include <cstdio>

#include <gradus/error.h>
#include <gradus/kernels/gemm.h>
#include <gradus/parallel.h>
#include <translator/commands.h>
#include <translator/text/error.h>

namespace translator {

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--threads", options.threads, "Threads (default: the processors this process may use)")
      ->check(CLI::Range(1, 256));
  command.add_flag("-v,--verbose", options.verbose, "Say on stderr which BLAS kernels and how many threads are used");
}

void apply(CommonOptions& options) {
  if (options.threads == 0) options.threads = gradus::available_threads();
  if (options.verbose)
    fmt::print(stderr, "OpenBLAS core {} (the CPU's best: {}), {} thread{}\n", gradus::kernels::blas_core(),
               gradus::kernels::blas_core_for_this_cpu()[0] ? gradus::kernels::blas_core_for_this_cpu() : "OpenBLAS's choice",
               options.threads, options.threads == 1 ? "" : "s");
}

}  // namespace translator

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `translator corpus | head` ends quietly
  CLI::App app{"Trains and runs sequence-to-sequence translators with attention, on the CPU, in minutes."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "translator (Gradus) 0.1.0");
  app.footer("Exit status: 0 done, 1 bad data or a file that cannot be read or written, 2 wrong usage, 130 interrupted.\n"
             "`translator COMMAND --help` tells more.");
  int exit_code = 0;
  translator::add_corpus_command(app, exit_code);
  translator::add_train_command(app, exit_code);
  translator::add_translate_command(app, exit_code);
  translator::add_evaluate_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const translator::InputError& e) {
    fmt::print(stderr, "translator: {}\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "translator: {}\n", e.what());
    return 1;
  }
  return exit_code;
}
