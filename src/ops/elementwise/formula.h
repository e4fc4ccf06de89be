// Elementwise operators whose loop is a formula in the operator's own file: the parameter struct is callable,
//
//   struct SquarePlus {
//     double b;
//     template <typename T>
//     T operator()(T x) const { return (x + std::sqrt(x * x + T(b))) / 2; }   // T: float or double
//   };
//
// A formula takes one to three arguments. The compiler vectorizes the loop if it can; a function that needs
// hand-written vectors gets a row in kernels/elementwise/pointwise.h instead. In both cases the operator runs in place,
// on all cores, and can be fused.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/formula_arguments.h"
#include "kernels/elementwise/integers.h"
#include "ops/device_launch.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace detail {

template <class F>
constexpr int formula_arity() {
  if constexpr (std::is_invocable_v<const F&, double>) {
    return 1;
  } else if constexpr (std::is_invocable_v<const F&, double, double>) {
    return 2;
  } else {
    static_assert(std::is_invocable_v<const F&, double, double, double>, "a formula takes one to three arguments");
    return 3;
  }
}

// The type in which a formula computes: float for 16-bit floats, double for integers, like the vector kernels.
template <typename T>
using formula_type = std::conditional_t<std::is_same_v<T, double> || std::is_integral_v<T>, double, float>;

template <class F, typename T, size_t... I>
void formula_loop(const F& formula, const void* const* in, void* out, int64_t n, std::index_sequence<I...>) {
  using C = formula_type<T>;
  const F f = formula;  // a local copy, which the loop's stores cannot alias, keeps the parameters in registers
  T* result = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i)
    result[i] = kernels::saturated_element<T>(f(static_cast<C>(static_cast<const T*>(in[I])[i])...));
}

// Formulas in kernels/functors/formulas.h have a form for devices.
template <class F>
constexpr bool has_device_form() {
  return requires { F::kFormula; };
}

template <class F>
void formula_on_device(const F& f, DType dtype, const void* in, void* out, int64_t n) {
  const std::string formula = std::string("hybridnet::kernels::") + F::kFormula;
  const bool is_double = dtype == DType::kFloat64 || !is_floating(dtype);
  const std::string types = formula + ", " + on_device::element_name(dtype) + (is_double ? ", double" : ", float");
  device::FormulaArguments<F> a;
  std::memset(&a, 0, sizeof(a));  // the padding of formulas without parameters, too: the driver copies all bytes
  a.in = in;
  a.out = out;
  a.n = n;
  if constexpr (!std::is_empty_v<F>) a.formula = f;
  on_device::launch("formula.cuh", ("FormulaArguments<" + formula + ">").c_str(), "formula<" + types + ">", n, a);
}

template <class F>
void formula_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  if constexpr (has_device_form<F>()) {
    if (device::current()) return formula_on_device(*static_cast<const F*>(params), dtype, in[0], out, n);
  }
  dispatch_dtype(dtype, [&](auto zero) {
    formula_loop<F, decltype(zero)>(*static_cast<const F*>(params), in, out, n,
                                    std::make_index_sequence<formula_arity<F>()>{});
  });
}

template <class F>
void run_formula(const F& f, const KernelArgs& a, double cost_ns) {
  const TensorRef& out = a.out[0];
  const int64_t bytes = dtype_size(out.dtype);
  if (device::current()) {
    const void* const in = a.in[0].data;
    return formula_span<F>(&f, out.dtype, &in, out.data, out.size());
  }
  parallel_for(out.size(), cost_ns, [&](int64_t begin, int64_t end) {
    const void* in[formula_arity<F>()];
    for (int i = 0; i < formula_arity<F>(); ++i) in[i] = a.in[i].as<char>() + begin * bytes;
    formula_span<F>(&f, out.dtype, in, out.as<char>() + begin * bytes, end - begin);
  });
}

}  // namespace detail

// out = p(inputs...) for inputs of equal shapes and dtypes. The caller names the inputs first, then adds doc, gradient
// and samples. cost_ns: time for one float32 element on one core.
template <class P>
OpBuilder<P>& formula(OpBuilder<P>& op, double cost_ns = 1, DTypeSet dtypes = kNumeric) {
  for (int i = 0; i < detail::formula_arity<P>(); ++i) op.inplace(i, 0);
  if constexpr (detail::has_device_form<P>()) op.any_device();
  return op.output("out", "shape and dtype of the inputs")
      .infer([](const P&, InferContext& c) { infer_elementwise(c); })
      .cpu([cost_ns](const P& p, const KernelArgs& a) { detail::run_formula(p, a, cost_ns); }, dtypes)
      .pointwise(&detail::formula_span<P>)
      .cost([cost_ns](const P&, auto, auto out) {
        return static_cast<int64_t>(static_cast<double>(out[0].shape.size()) * cost_ns);
      });
}

}  // namespace hybridnet::ops
