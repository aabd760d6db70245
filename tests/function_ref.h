#pragma once

namespace gradus::testing {

/// Refers to something callable, for functions that are called with so many lambdas that a copy of them for
/// each, or the eight functions of a std::function, would tell in the time it takes to compile. Give it the
/// address of a function: a parameter refers to the pointer for as long as the call takes.
template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  [[gnu::always_inline]] FunctionRef(const F& f) : f_(&f), call_(&call<F>) {}
  Result operator()(Args... args) const { return call_(f_, args...); }

 private:
  template <class F>
  static Result call(const void* f, Args... args) {
    return (*static_cast<const F*>(f))(args...);
  }
  const void* f_;
  Result (*call_)(const void*, Args...);
};

}  // namespace gradus::testing
