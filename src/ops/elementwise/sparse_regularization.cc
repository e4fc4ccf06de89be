// IdentityAttachKLSparseReg: drives the mean activation of sigmoid units toward a target.
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "kernels/device/matrix_arguments.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/reduce/reduce.h"
#include "ops/device_launch.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {

struct SparseRegParams {
  double sparseness_target, penalty, momentum;
  static void describe(ParamSchema<SparseRegParams>& schema) {
    schema.field("sparseness_target", &SparseRegParams::sparseness_target)
        .default_value(0.1)
        .range(0, 1)
        .doc("Target of the mean activation.");
    schema.field("penalty", &SparseRegParams::penalty).default_value(0.001).doc("Weight of the penalty.");
    schema.field("momentum", &SparseRegParams::momentum)
        .default_value(0.9)
        .range(0, 1)
        .doc("Momentum of the moving mean.");
  }
};

void infer_sparse_reg(const SparseRegParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() != 2) throw ShapeError({.input = "data", .expected = "(batch, units)", .given = data.str()});
  c.set_in_shape(1, Shape{data[1]});
  c.set_out_shape(1, Shape{data[1]});
}

void update_on_device(const SparseRegParams& p, const KernelArgs& a, bool updates) {
  const TensorRef& data = a.in[0];
  const int64_t units = a.in[1].size();
  if (!updates) return kernels::copy_bytes(a.in[1].data, a.out[1].data, units * dtype_size(data.dtype));
  const OwnedBlock mean(units * static_cast<int64_t>(sizeof(double)), device::current()->device());
  kernels::reduce(kernels::Reduction::kSum, kernels::Finish::kDivide, data.dtype, data.data, *data.shape, 1u,
                  DType::kFloat64, mean.data());
  const device::MovingMeanArguments moved{.before = a.in[1].data,
                                          .mean = static_cast<const double*>(mean.data()),
                                          .after = a.out[1].data,
                                          .n = units,
                                          .momentum = p.momentum};
  on_device::launch("matrices.cuh", "MovingMeanArguments", on_device::with_dtype("move_means", data.dtype), units,
                    moved);
}

// Copies the data; in training, updates the moving mean with this batch.
void run_sparse_reg(const SparseRegParams& p, const KernelArgs& a) {
  const TensorRef& data = a.in[0];
  const void* in[] = {data.data};
  if (device::current()) {
    kernels::copy_bytes(data.data, a.out[0].data, data.size() * dtype_size(data.dtype));
    return update_on_device(p, a, a.train && data.size() > 0);
  }
  if (a.out[0].data != data.data) {
    kernels::apply_parallel(span_loops<kernels::Pointwise::kCopy>(), data.dtype, in, a.out[0].data, data.size());
  }
  const bool updates = a.train && data.size() > 0;
  dispatch_floating(data.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* before = a.in[1].as<T>();
    T* after = a.out[1].as<T>();
    const int64_t units = a.in[1].size();
    if (!updates) {
      if (after != before) std::copy_n(before, units, after);
      return;
    }
    std::vector<double> mean(static_cast<size_t>(units));
    kernels::reduce(kernels::Reduction::kSum, kernels::Finish::kDivide, data.dtype, data.data, *data.shape, 1u,
                    DType::kFloat64, mean.data());
    for (int64_t i = 0; i < units; ++i) {
      const double old = static_cast<double>(before[i]);
      after[i] = static_cast<T>(p.momentum * old + (1 - p.momentum) * mean[static_cast<size_t>(i)]);
    }
  });
}

// The derivative of the Kullback-Leibler divergence between target and moving mean.
Values sparse_reg_gradient(const SparseRegParams& p, const GradientContext& g) {
  const Value mean = g.output(1);
  const Value slope = (1 - p.sparseness_target) / (1.0 - mean) - p.sparseness_target / mean;
  return {g.output_grad(0) +
              broadcast_to(reshape(slope * p.penalty, Shape{1, g.input_spec(1).shape[0]}), g.input_spec(0).shape),
          {}};
}

}  // namespace

void register_sparse_regularization(OpRegistry& ops) {
  ops.declare<SparseRegParams>("IdentityAttachKLSparseReg")
      .doc(
          "Copies the input and adds the gradient of a penalty to its gradient: the divergence between a target and "
          "the moving mean of\neach unit. For outputs of sigmoid only: the moving mean must lie inside (0, 1).")
      .input("data", "(batch, units), values in (0, 1)")
      .auxiliary("moving_avg", "(units,): moving mean of the activations, updated in training")
      .initialized("moving_avg", R"(["zero", {}])")
      .output("out", "shape and dtype of data")
      .output("new_moving_avg", "(units,)")
      .visible_outputs(1)
      .infer(infer_sparse_reg)
      .cpu(run_sparse_reg, kFloating)
      .any_device()
      .inplace(0, 0)
      .inplace(1, 1)
      .writeback(1, 1)
      .writeback_active([](const SparseRegParams&, bool train) { return train; })
      .train_sensitive()
      .gradient(sparse_reg_gradient, Saves::of({}, {1}))
      .amp(AmpType::kFloat)
      .sample({.inputs = {{3, 4}, {4}},
               .low = 0.2,
               .high = 0.8,
               .check_gradient = false,
               .note = "adds a penalty by definition"});
}

}  // namespace hybridnet::ops
