#include <translator/commands.h>

#include <fmt/core.h>

#include <cstdio>

#include <gradus/kernels/gemm.h>
#include <gradus/parallel.h>

namespace translator {

void apply(CommonOptions& options) {
  if (options.threads == 0) options.threads = gradus::available_threads();
  if (options.verbose)
    fmt::print(stderr, "OpenBLAS core {} (the CPU's best: {}), {} thread{}\n", gradus::kernels::blas_core(),
               gradus::kernels::blas_core_for_this_cpu()[0] ? gradus::kernels::blas_core_for_this_cpu()
                                                            : "OpenBLAS's choice",
               options.threads, options.threads == 1 ? "" : "s");
}

}  // namespace translator
