// The device forms of elementwise functions: kernels over the functors of the CPU's loops (kernels/device/map.cuh),
// with the CPU's bits except where kernels/functors/special.h calls the C++ library. pointwise.h, broadcast.h, add_n.h
// and select.h call them when the thread has a current device; all pointers but `scalars` are memory of that device.
// Owner:   the process keeps compiled kernels, one program for each functor, dtype and form.
// Threads: any.
// Throws:  DeviceError.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/base.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

struct DeviceFunction {
  const SpanLoops& loops;  // an entry of a table: identifies the function
  DType dtype;             // of the inputs, and of the output unless is_predicate
  DType through =
      DType::kUnknown;        // computes in this dtype; unknown: in dtype if the function has it, else dtype_through
  bool is_predicate = false;  // the output is f(...) != 0, bool
};

// The dtype in which a function computes, and its functor for that dtype, as a type in the text of a kernel.
DType computed_in(const DeviceFunction& function);
std::string functor_type(const DeviceFunction& function);

// out[i] = f(in[0][i], ...)
void map_on_device(const DeviceFunction& function, const void* const* in, void* out, int64_t n,
                   const double* scalars = nullptr, Repeat repeat = Repeat::kNone);
// One input is a number, converted to the dtype in which f computes; `side` is the number's.
void number_on_device(const DeviceFunction& function, double number, Repeat side, const void* data, void* out,
                      int64_t n);
void broadcast_on_device(const DeviceFunction& function, const BroadcastLayout& layout, const void* const* in,
                         void* out);
void broadcast_copy_on_device(const BroadcastLayout& layout, const void* in, int64_t item_size, void* out);
void add_n_on_device(DType dtype, std::span<const void* const> in, void* out, int64_t n);
void select_on_device(DType condition_dtype, const void* condition, int64_t item_size, const void* x, const void* y,
                      void* out, int64_t n);

}  // namespace hybridnet::kernels

namespace hybridnet::device {

// Every text that these functions may compile, for tests: all functions, dtypes and forms. The extension module calls
// it, which sees no name of kernels.
std::vector<std::string> elementwise_texts();

}  // namespace hybridnet::device
