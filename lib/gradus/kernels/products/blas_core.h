#pragma once

#include <string>

// Internal to the kernels and their tests (not installed).

namespace gradus::kernels {

/// Sees to it, once per process, that OpenBLAS runs single-threaded and on kernels that fit this CPU.
/// Thread-safe; must have returned before the first BLAS call of a thread.
/// @throws Error when there is no room for OpenBLAS's work area.
void prepare_blas();

/// Makes OpenBLAS use the kernels called `name` ("SkylakeX", "Haswell", "Prescott", ...) from now on. Returns
/// false, with the kernels in use before still in place, when this OpenBLAS has no such kernels, or cannot
/// switch. No BLAS call may be running.
bool switch_blas_core(const std::string& name);

}  // namespace gradus::kernels
