// Operators whose output is the input or a constant of its shape, and the operator that writes a state.
#include <cstring>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/memory/fill.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {

void run_copy(const NoParams&, const KernelArgs& a) {
  if (a.out[0].data == a.in[0].data) return;
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.out[0].size());
}

void fill(const TensorRef& out, double value) {
  if (device::current()) return kernels::fill(out, value);
  char item[8];
  kernels::store_scalar(out.dtype, value, item);
  const int64_t size = dtype_size(out.dtype);
  parallel_for(out.size(), 0.3, [&](int64_t begin, int64_t end) {
    char* to = static_cast<char*>(out.data) + begin * size;
    if (value == 0) {
      std::memset(to, 0, static_cast<size_t>((end - begin) * size));
      return;
    }
    const auto repeat = [&]<class U>(U bits) {
      std::memcpy(&bits, item, sizeof(bits));
      std::fill_n(reinterpret_cast<U*>(to), end - begin, bits);
    };
    switch (size) {
      case 1:
        return repeat(uint8_t{});
      case 2:
        return repeat(uint16_t{});
      case 4:
        return repeat(uint32_t{});
      default:
        return repeat(uint64_t{});
    }
  });
}

void infer_same(const NoParams&, InferContext& c) { infer_elementwise(c); }

// data -> data; the gradient passes unchanged.
OpBuilder<NoParams> identity_op(OpRegistry& ops, const char* name, const char* doc) {
  auto op = ops.declare(name);
  op.doc(doc)
      .input("data", "array of any shape")
      .output("out", "shape and dtype of data")
      .infer(infer_same)
      .any_device()
      .cpu(run_copy)
      .pointwise(&pointwise_span<kernels::Pointwise::kCopy>)
      .inplace(0, 0)
      .identity_when([](const NoParams&, bool) { return true; })
      .sample({{3, 4}})
      .sample({Shape{0, 4}});
  return op;
}

// lhs -> lhs; rhs only contributes its known shape and dtype.
void register_identity_like(OpRegistry& ops) {
  ops.declare("_identity_with_attr_like_rhs")
      .doc("lhs unchanged; its shape and dtype are those of rhs, whichever of the two is known.")
      .input("lhs", "array of any shape")
      .input("rhs", "defines shape and dtype only")
      .output("out", "shape and dtype of both")
      .infer(infer_same)
      .any_device()
      .cpu(run_copy)
      .inplace(0, 0)
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0), {}};
          },
          Saves::nothing())
      .sample({{3, 4}, {3, 4}});
}

void infer_write_state(const NoParams&, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.unify_dtypes({1, 2}, {1});
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  c.set_in_shape(1, c.in_shape(2));
  c.set_in_shape(2, c.in_shape(1));
  c.set_out_shape(1, c.in_shape(1));
}

// The last operator of a scan that updates shared values.
void register_write_state(OpRegistry& ops) {
  ops.declare("_write_state")
      .doc("data unchanged; writes value into state.")
      .input("data", "array of any shape")
      .input("value", "array of any shape")
      .auxiliary("state", "shape and dtype of value")
      .output("out", "shape and dtype of data")
      .output("new_state", "shape and dtype of value")
      .visible_outputs(1)
      .infer(infer_write_state)
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) {
        for (size_t i = 0; i < 2; ++i)
          if (a.out[i].data != a.in[i].data)
            kernels::convert_parallel(a.in[i].dtype, a.in[i].data, a.out[i].dtype, a.out[i].data, a.out[i].size());
      })
      .inplace(0, 0)
      .writeback(2, 1)
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0), {}, {}};
          },
          Saves::nothing())
      .sample({{3, 4}, {2}, {2}})
      .sample({{3, 4}, Shape{0, 4}, Shape{0, 4}});
}

OpBuilder<NoParams> constant_like(OpRegistry& ops, const char* name, double value, const char* doc) {
  auto op = ops.declare(name);
  op.doc(doc)
      .input("data", "array of any shape; its values are not read")
      .output("out", "shape and dtype of data")
      .infer(infer_same)
      .any_device()
      .cpu([value](const NoParams&, const KernelArgs& a) { fill(a.out[0], value); })
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .fills_with([value](const NoParams&) { return std::optional(value); })
      .format_agnostic()
      .inplace(0, 0)
      .sample({{3, 4}})
      .sample({Shape{2, 0}});
  return op;
}

Values pass(const NoParams&, const GradientContext& g) { return {g.output_grad(0)}; }
Values stop(const NoParams&, const GradientContext&) { return Values(1); }

}  // namespace

void register_copies(OpRegistry& ops) {
  register_identity_like(ops);
  register_write_state(ops);
  identity_op(ops, "_copy", "Copies the input.")
      .alias("_np_copy")
      .alias("identity")
      .alias("_copyto")
      .alias("_npi_copyto")
      .gradient(pass, Saves::nothing())
      .c_form({"$a"})
      .sparse(SparseForm::kCopy, SparseGradient::kOnSparse)
      .keeps_zeros();
  identity_op(ops, "BlockGrad", "Copies the input; stops the gradient.")
      .alias("stop_gradient")
      .alias("_sparse_stop_gradient")
      .gradient(stop, Saves::nothing())
      .stops_gradient();
  constant_like(ops, "zeros_like", 0.0, "Zeros of the input's shape and dtype.")
      .alias("_sparse_zeros_like")
      .sparse(SparseForm::kZeros);
  constant_like(ops, "ones_like", 1.0, "Ones of the input's shape and dtype.");
}

}  // namespace hybridnet::ops
