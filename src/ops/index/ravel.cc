// _ravel_multi_index and _unravel_index: tuples of indices as flat indices, and back.
#include <algorithm>
#include <array>

#include "hybridnet/declare.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/indices.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"

namespace hybridnet::ops {
namespace {

struct RavelParams {
  Tuple shape;
  static void describe(ParamSchema<RavelParams>& schema) {
    schema.field("shape", &RavelParams::shape)
        .doc("Shape of the tensor that the indices belong to; its first size may be -1.");
  }
};

void infer_ravel(const RavelParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  if (in.ndim() < 1 || (in[0] >= 0 && in[0] != p.shape.ndim())) {
    throw ShapeError({.input = "data",
                      .expected = std::to_string(p.shape.ndim()) + " rows, one per axis of shape=" + p.shape.str(),
                      .given = in.str()});
  }
  Shape out = Shape::scalar();
  for (int i = 1; i < in.ndim(); ++i) out.push_back(in[i]);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  c.set_out_shape(0, out);
}

// The largest index of an axis. The size of axis 0 may be unknown (-1): then there is no limit.
int64_t last_index(const RavelParams& p, int axis) {
  return axis == 0 && p.shape[0] < 0 ? INT64_MAX : p.shape[axis] - 1;
}

device::RavelArguments ravel_arguments(const RavelParams& p, const kernels::Indices& ids, int64_t count) {
  device::RavelArguments arguments{.ids = ids.data(), .count = count, .ndim = p.shape.ndim()};
  for (int axis = 0; axis < p.shape.ndim(); ++axis) arguments.sizes[axis] = p.shape[axis];
  return arguments;
}

void run_ravel(const RavelParams& p, const KernelArgs& a) {
  const kernels::Indices ids(a.in[0]);
  const int64_t count = a.out[0].size();
  if (device::current()) {
    device::RavelArguments arguments = ravel_arguments(p, ids, count);
    arguments.out[0] = a.out[0].data;
    return on_device::launch("values.cuh", "RavelArguments", on_device::with_dtype("ravel", a.out[0].dtype), count,
                             arguments);
  }
  for (int axis = 0; axis < p.shape.ndim(); ++axis)
    kernels::report_numbers({"_ravel_multi_index", "data"}, ids.data() + axis * count, count,
                            {0, last_index(p, axis), "index"}, "its tuple gives the place of another one or none",
                            axis * count);
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = a.out[0].as<T>();
    for (int64_t i = 0; i < count; ++i) {
      uint64_t flat = 0;  // wraps around for indices and sizes beyond those of a tensor
      for (int axis = 0; axis < p.shape.ndim(); ++axis)
        flat = flat * static_cast<uint64_t>(p.shape[axis]) + static_cast<uint64_t>(ids[axis * count + i]);
      out[i] = static_cast<T>(static_cast<int64_t>(flat));
    }
  });
}

void infer_unravel(const RavelParams& p, InferContext& c) {
  c.unify_dtypes();
  if (!c.in_shape(0).rank_known()) return;
  Shape out({p.shape.ndim()});
  for (int64_t size : c.in_shape(0)) out.push_back(size);
  c.set_out_shape(0, out);
}

int64_t last_place(const RavelParams& p) {
  if (p.shape.ndim() > 0 && p.shape[0] < 0) return INT64_MAX;
  int64_t places = 1;
  for (int64_t size : p.shape)
    if (__builtin_mul_overflow(places, size, &places)) return INT64_MAX;
  return places - 1;
}

// target(axis) returns the destination of the indices along this axis.
template <typename T, typename F>
void unravel(const RavelParams& p, const TensorRef& places, const kernels::IndexUse& use, F&& target) {
  const kernels::Indices ids(places);
  const int rank = p.shape.ndim();
  if (device::current()) {
    ids.report(use, {0, last_place(p), "index"}, "its tuple lies outside of shape");
    device::RavelArguments arguments = ravel_arguments(p, ids, ids.size());
    for (int axis = 0; axis < rank; ++axis) arguments.out[axis] = target(axis);
    return on_device::launch("values.cuh", "RavelArguments", on_device::with_dtype("unravel", places.dtype), ids.size(),
                             arguments);
  }
  kernels::report_numbers(use, ids.data(), ids.size(), {0, last_place(p), "index"}, "its tuple lies outside of shape");
  std::array<T*, kMaxDims> out;
  for (int axis = 0; axis < rank; ++axis) out[static_cast<size_t>(axis)] = target(axis);
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t rest = ids[i];
    for (int axis = rank - 1; axis > 0; --axis) {
      const int64_t size = std::max<int64_t>(1, p.shape[axis]);
      out[static_cast<size_t>(axis)][i] = static_cast<T>(rest % size);
      rest /= size;
    }
    if (rank > 0) out[0][i] = static_cast<T>(rest);
  }
}

void run_unravel(const RavelParams& p, const KernelArgs& a) {
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    unravel<T>(p, a.in[0], {"_unravel_index", "data"},
               [&](int axis) { return a.out[0].as<T>() + axis * a.in[0].size(); });
  });
}

void infer_unravel_axes(const RavelParams& p, InferContext& c) {
  if (p.shape.ndim() == 0)
    throw ParamError({.input = "shape", .expected = "at least one axis", .given = p.shape.str()});
  c.unify_dtypes();
  for (int axis = 0; axis < p.shape.ndim(); ++axis) c.set_out_shape(axis, c.in_shape(0));
}

void run_unravel_axes(const RavelParams& p, const KernelArgs& a) {
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    unravel<T>(p, a.in[0], {"_npi_unravel_index", "indices"},
               [&](int axis) { return a.out[static_cast<size_t>(axis)].as<T>(); });
  });
}

}  // namespace

void register_ravel(OpRegistry& ops) {
  Sample tuples;
  tuples.inputs = {{2, 4}};
  tuples.attrs = {{"shape", "(3, 5)"}};
  tuples.low = 0;
  tuples.high = 2;
  tuples.integer_valued = true;
  ops.declare<RavelParams>("_ravel_multi_index")
      .alias("ravel_multi_index")
      .doc("Tuples of indices, one per column, as flat indices into a tensor of the given shape.")
      .input("data", "shape (M, ...), M the number of axes of shape")
      .names_its_input()
      .output("output", "shape of data without its first axis; dtype of data")
      .infer(infer_ravel)
      .any_device()
      .cpu(run_ravel)
      .gradient(kNotDifferentiable)
      .sample(tuples);
  Sample places = tuples;
  places.inputs = {{4}};
  places.high = 14;
  ops.declare<RavelParams>("_unravel_index")
      .alias("unravel_index")
      .doc("Flat indices into a tensor of the given shape as tuples of indices, one per column.")
      .input("data", "any shape")
      .names_its_input()
      .output("output", "shape (M, ...), M the number of axes of shape; dtype of data")
      .infer(infer_unravel)
      .any_device()
      .cpu(run_unravel)
      .gradient(kNotDifferentiable)
      .sample(places);
  ops.declare<RavelParams>("_npi_unravel_index")
      .doc("Flat indices into a tensor of the given shape as indices, one array for each axis.")
      .input("indices", "any shape")
      .output("output", "shape and dtype of indices")
      .num_outputs([](const RavelParams& p) { return std::max(p.shape.ndim(), 1); })
      .infer(infer_unravel_axes)
      .any_device()
      .cpu(run_unravel_axes)
      .gradient(kNotDifferentiable)
      .sample(places);
}

}  // namespace hybridnet::ops
