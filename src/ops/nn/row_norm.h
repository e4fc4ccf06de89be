// Shared by the operators that normalize the rows along one axis. Inputs: the data, then values for each element of the
// axis (gamma, beta). Outputs: the result, then the moments of each row: mean and standard deviation (LayerNorm), or
// the root mean square (RMSNorm).
#pragma once

#include "kernels/norm/layer_norm.h"
#include "ops/float_kernel.h"
#include "ops/nn/axis_as_rows.h"

namespace hybridnet::ops {

inline kernels::NormRows rows_of(const Shape& data) { return {data.size(0, data.ndim() - 1), data[data.ndim() - 1]}; }

void infer_row_norm(int axis, InferContext& c);
Values row_norm_gradient(const OpRef& backward, int axis, const GradientContext& g);

// The operator `backward` works along the last axis: (dy, data, gamma, moments...) -> (dx, dgamma, dbeta if any).
void infer_row_norm_backward(const NoParams&, InferContext& c);
Values row_norm_backward_gradient(const NoParams&, const GradientContext& g);
// Returns the gradients of `inputs`, the inputs of `backward`, given the gradients `arriving` at its outputs; null is
// zero.
Values row_norm_second_gradient(const Values& inputs, const Values& arriving);

int64_t layer_norm_cost_ns(const TensorSpec& data);

// Norm::forward(rows, x, y, eps, args) and Norm::backward(rows, args) compute contiguous rows in args.workspace.
template <typename Norm>
struct RowNorm {
  template <typename T>
  class Forward final : public Kernel {
   public:
    Forward(int axis, double eps, const Shape& data)
        : eps_(eps), memory_(kernels::RowShape::along(data, normalize_axis(axis, data.ndim()))) {}
    int64_t workspace_bytes() const override { return axis_as_rows_workspace<T>(memory_); }
    void run(const KernelArgs& a) override {
      axis_as_rows(memory_, a.in[0].as<T>(), a.out[0].as<T>(), a.workspace, [&](const T* x, T* y) {
        Norm::template forward<T>({memory_.rows(), memory_.length}, x, y, eps_, a);
      });
    }

   private:
    double eps_;
    kernels::RowShape memory_;
  };

  template <typename T>
  class Backward final : public Kernel {
   public:
    explicit Backward(const Shape& data) : rows_(rows_of(data)) {}
    int64_t workspace_bytes() const override { return kernels::layer_norm_gradient_workspace(rows_, sizeof(T)); }
    void run(const KernelArgs& a) override { Norm::template backward<T>(rows_, a); }

   private:
    kernels::NormRows rows_;
  };

  template <typename P>
  static Ref<Kernel> link(const P& p, const LinkContext& c) {
    return make_float_kernel<Forward>(c.in[0].dtype, p.axis, p.eps, c.in[0].shape);
  }
  static Ref<Kernel> link_backward(const NoParams&, const LinkContext& c) {
    return make_float_kernel<Backward>(c.in[0].dtype, c.in[1].shape);
  }
};

}  // namespace hybridnet::ops
