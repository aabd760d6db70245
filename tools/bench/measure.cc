#include "measure.h"

#include <gradus/kernels/products/gemm.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bench {
double quantile(std::vector<double> x, double q) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  double tail = std::min(q, 1 - q);
  size_t skip = std::min(x.size() - 1, static_cast<size_t>(tail * static_cast<double>(x.size()) + 1e-9));
  return q <= 0.5 ? x[skip] : x[x.size() - 1 - skip];
}

double rounded(double x, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(x * scale) / scale;
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<double>(usage.ru_maxrss) / (1024 * 1024);
#else
  return static_cast<double>(usage.ru_maxrss) / 1024;
#endif
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

std::string products_by() {
  return gradus::kernels::blas_core() + std::string(gradus::kernels::amx_ready() ? ", AMX" : "");
}

double exponent(const std::vector<double>& x, const std::vector<double>& y) {
  double n = static_cast<double>(x.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double u = std::log(x[i]), v = std::log(y[i]);
    sx += u;
    sy += v;
    sxx += u * u;
    sxy += u * v;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

int in_own_process(const std::function<int()>& f) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) return f();
  if (child == 0) {
    const int code = f();
    _exit(std::fflush(nullptr) == 0 ? code : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace bench
