#include <translator/commands.h>
#include <common/tell.h>

#include <fmt/core.h>

#include <cstdio>

#include <gradus/kernels/products/gemm.h>
#include <gradus/parallel.h>

namespace translator {

void apply(CommonOptions& options) {
  if (options.threads == 0) options.threads = gradus::available_threads();
  // A system may give fewer: found out and said once, before anything is divided among them.
  if (const int given = gradus::ThreadPool(options.threads).size(); given < options.threads) {
    fmt::print(stderr, "translator: only {} of {} threads could be started\n", given, options.threads);
    options.threads = given;
  }
  if (options.verbose)
    tell("OpenBLAS core {} (the CPU's best: {}), {} thread{}\n", gradus::kernels::blas_core(),
               gradus::kernels::blas_core_for_this_cpu()[0] ? gradus::kernels::blas_core_for_this_cpu()
                                                            : "OpenBLAS's choice",
               options.threads, options.threads == 1 ? "" : "s");
}

}  // namespace translator
