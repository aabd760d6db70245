#pragma once

#include <cstddef>
#include <tuple>

// How a kernel becomes a function that the library calls. A kernel stands under its public name in the
// namespace of each instruction set. One line at the file's end makes the declared function out of these,
// which calls the one for this CPU; the number is that of its parameters (it does not compile with another).
//
//   GRADUS_KERNEL(softmax_rows, 5);   a template, for float and double
//   GRADUS_PLAIN_KERNEL(argmax, 2);   a function
//
// HWY_EXPORT by itself stands where a function does more than call its kernel. Names in the anonymous
// namespaces of kernels that meson.build compiles together are to differ.

namespace gradus::kernels {

template <class F>
struct Signature;
template <class R, class... Parameters>
struct Signature<R(Parameters...)> {
  using Result = R;
  template <size_t n>
  using Parameter = std::tuple_element_t<n, std::tuple<Parameters...>>;
};

}  // namespace gradus::kernels

// Newer Highways have these: the table has a name of its own, so that the function may be one of a template.
#ifndef HWY_EXPORT_T
#define HWY_EXPORT_T(TABLE, FUNCTION)                                                 \
  static decltype(&HWY_STATIC_DISPATCH(FUNCTION)) const HWY_DISPATCH_TABLE(           \
      TABLE)[HWY_MAX_DYNAMIC_TARGETS + 2] = {                                         \
      &decltype(hwy::DeduceFunctionCache(                                             \
          &HWY_STATIC_DISPATCH(FUNCTION)))::ChooseAndCall<HWY_DISPATCH_TABLE(TABLE)>, \
      HWY_CHOOSE_TARGET_LIST(FUNCTION), HWY_CHOOSE_FALLBACK(FUNCTION)}
#define HWY_DYNAMIC_DISPATCH_T(TABLE) (*(HWY_DISPATCH_TABLE(TABLE)[hwy::GetChosenTarget().GetIndex()]))
#endif

#define GRADUS_KERNEL(NAME, COUNT)                              \
  GRADUS_DISPATCH(template <>, NAME<float>, NAME##_f32, COUNT); \
  GRADUS_DISPATCH(template <>, NAME<double>, NAME##_f64, COUNT)
#define GRADUS_PLAIN_KERNEL(NAME, COUNT) GRADUS_DISPATCH(, NAME, NAME, COUNT)

#define GRADUS_DISPATCH(SPECIALIZED, FUNCTION, TABLE, COUNT)                              \
  HWY_EXPORT_T(TABLE, FUNCTION);                                                          \
  SPECIALIZED Signature<decltype(FUNCTION)>::Result FUNCTION(                             \
      GRADUS_EACH_##COUNT(GRADUS_PARAMETER, FUNCTION)) {                                  \
    return HWY_DYNAMIC_DISPATCH_T(TABLE)(GRADUS_EACH_##COUNT(GRADUS_ARGUMENT, FUNCTION)); \
  }                                                                                       \
  static_assert(true)

#define GRADUS_PARAMETER(FUNCTION, n) Signature<decltype(FUNCTION)>::Parameter<n> p##n
#define GRADUS_ARGUMENT(FUNCTION, n) p##n

// GRADUS_EACH_5(M, F) is M(F, 0), M(F, 1), ... M(F, 4).
#define GRADUS_EACH_2(M, F) M(F, 0), M(F, 1)
#define GRADUS_EACH_3(M, F) GRADUS_EACH_2(M, F), M(F, 2)
#define GRADUS_EACH_4(M, F) GRADUS_EACH_3(M, F), M(F, 3)
#define GRADUS_EACH_5(M, F) GRADUS_EACH_4(M, F), M(F, 4)
#define GRADUS_EACH_6(M, F) GRADUS_EACH_5(M, F), M(F, 5)
#define GRADUS_EACH_7(M, F) GRADUS_EACH_6(M, F), M(F, 6)
#define GRADUS_EACH_8(M, F) GRADUS_EACH_7(M, F), M(F, 7)
#define GRADUS_EACH_9(M, F) GRADUS_EACH_8(M, F), M(F, 8)
#define GRADUS_EACH_10(M, F) GRADUS_EACH_9(M, F), M(F, 9)
#define GRADUS_EACH_11(M, F) GRADUS_EACH_10(M, F), M(F, 10)
#define GRADUS_EACH_12(M, F) GRADUS_EACH_11(M, F), M(F, 11)
#define GRADUS_EACH_13(M, F) GRADUS_EACH_12(M, F), M(F, 12)
#define GRADUS_EACH_14(M, F) GRADUS_EACH_13(M, F), M(F, 13)
#define GRADUS_EACH_15(M, F) GRADUS_EACH_14(M, F), M(F, 14)
#define GRADUS_EACH_16(M, F) GRADUS_EACH_15(M, F), M(F, 15)
#define GRADUS_EACH_17(M, F) GRADUS_EACH_16(M, F), M(F, 16)
