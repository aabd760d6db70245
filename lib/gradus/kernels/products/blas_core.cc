#include <gradus/error.h>
#include <gradus/kernels/products/behind_gemm.h>
#include <gradus/kernels/products/gemm.h>

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <string_view>

// OpenBLAS chooses its kernels by CPU model. A model younger than the library gets the SSE3 ones of 2004
// ("Prescott"), without a word and 4 to 6 times slower. What the instruction set allows is known better from
// the CPU's feature flags, so we look at those and switch.
//
// These two undo and redo the choice that the library made when it was loaded; redoing reads
// OPENBLAS_CORETYPE. They are exported but documented nowhere, hence weak: an OpenBLAS built without run-time
// choice does not have them.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init(void);
__attribute__((weak)) void gotoblas_dynamic_quit(void);
}

namespace gradus::kernels {
namespace {

constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view other) {
    return std::equal(name.begin(), name.end(), other.begin(), other.end(), [](char a, char b) {
      return (a | 0x20) == (b | 0x20);  // OpenBLAS spells some names in several ways
    });
  });
}

/// Whether the kernels called `core` leave unused what `best` uses. A name we do not know is taken for newer
/// than this file, and stays.
bool falls_short_of(std::string_view core, std::string_view best) {
  if (best.empty()) return false;
  if (is_one_of(core, {"Unknown", "Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom", "Core2",
                       "Penryn", "Dunnington", "Nehalem", "Sandybridge", "Athlon", "Opteron", "Opteron_SSE3",
                       "Barcelona", "Bobcat", "Bulldozer", "Piledriver", "Steamroller", "Excavator",
                       "Nano"})) {
    return true;
  }
  return best == "SkylakeX" && is_one_of(core, {"Haswell", "Zen"});
}

/// Asks OpenBLAS to choose again, with OPENBLAS_CORETYPE at `name` meanwhile.
void choose_again(const char* name) {
  const char* before = std::getenv(kCoreVariable);
  const std::string kept = before ? before : "";
  setenv(kCoreVariable, name, 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  // Programs that we start are to choose for themselves.
  before ? setenv(kCoreVariable, kept.c_str(), 1) : unsetenv(kCoreVariable);
}

/// A thread's first call takes a work area; where it gets none OpenBLAS (0.3.21, blas_memory_alloc) asks again
/// for ever. So we ask once, before it does.
bool room_for_blas() {
  constexpr size_t bytes = (size_t{128} << 20) + (size_t{1} << 20);  // its BUFFER_SIZE on x86-64, and some
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return false;
  munmap(at, bytes);
  return true;
}

}  // namespace

bool switch_blas_core(const std::string& name) {
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit) return false;
  const std::string before = openblas_get_corename();
  choose_again(name.c_str());
  if (is_one_of(openblas_get_corename(), {name})) return true;
  choose_again(before.c_str());
  return false;
}

void prepare_blas() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Gradus has its own threads; BLAS threads on top of them would only fight for the same cores.
    openblas_set_num_threads(1);
    if (std::getenv(kCoreVariable)) return;  // the user has chosen
    const char* best = blas_core_for_this_cpu();
    if (falls_short_of(openblas_get_corename(), best)) switch_blas_core(best);
  });
  thread_local bool room = false;
  room = room || room_for_blas();
  if (!room)
    fail("gemm", "there is no room for the 128 MB that OpenBLAS works in: is a limit set (ulimit -v)?");
}

const char* blas_core() {
  prepare_blas();
  return openblas_get_corename();
}

const char* blas_core_for_this_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  const bool haswell = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (haswell && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return "SkylakeX";
  }
  if (haswell) return "Haswell";
#endif
  return "";
}

}  // namespace gradus::kernels
