// AdaGrad (Duchi et al., 2011): one learning rate per element, and one per row.
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/functors/update_adaptive.h"
#include "ops/optimizer/declare_update.h"
#include "ops/optimizer/device_squares.h"

namespace hybridnet::kernels {

void AdagradParams::describe(ParamSchema<AdagradParams>& schema) {
  ops::describe_lr<AdagradParams>(schema);
  schema.field("epsilon", &AdagradParams::epsilon)
      .default_value(1e-7)
      .doc("Added under the root, against division by zero.");
  schema.field("wd", &AdagradParams::wd)
      .default_value(0.0)
      .doc("Weight decay: lr * wd * weight is subtracted separately.");
  ops::describe_rescale_clip<AdagradParams>(schema);
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {

using kernels::AdagradParams, kernels::AdagradRule;

struct GroupAdagradParams {
  double lr, rescale_grad, clip_gradient, epsilon;
  static void describe(ParamSchema<GroupAdagradParams>& schema) {
    describe_lr<GroupAdagradParams>(schema);
    describe_rescale_clip<GroupAdagradParams>(schema);
    schema.field("epsilon", &GroupAdagradParams::epsilon)
        .default_value(1e-5)
        .doc("Added under the root, against division by zero.");
  }
};

// weight and grad (rows, ...), history (rows, 1).
void infer_group(const GroupAdagradParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.out_shape(0));
  c.set_in_shape(0, c.in_shape(1));
  const Shape weight = c.in_shape(0);
  c.set_in_shape(1, weight);
  c.set_out_shape(0, weight);
  if (!weight.rank_known()) return;
  if (weight.ndim() < 1) throw ShapeError({.input = "weight", .expected = "at least one axis", .given = weight.str()});
  const Shape history({weight[0], 1});
  c.set_in_shape(2, history);
  c.set_out_shape(1, history);
}

// Updates the rows of `grad`: all rows in order (rows null), or the rows with numbers in `rows`.
template <typename T, typename A>
void update_rows(const GroupAdagradParams& p, const KernelArgs& a, const int64_t* rows) {
  const int64_t count = (*a.in[1].shape)[0], width = count == 0 ? 0 : a.in[1].size() / count;
  if (width == 0) return;
  const A lr = static_cast<A>(p.lr), rescale = static_cast<A>(p.rescale_grad), epsilon = static_cast<A>(p.epsilon);
  const A bound = clip_bound<A>(p.clip_gradient);
  T *out = a.out[0].as<T>(), *history = a.out[1].as<T>();
  const T *grad = a.in[1].as<T>(), *weight = a.in[0].as<T>(), *before = a.in[2].as<T>();
  if (rows != nullptr) weight = out, before = history;  // copies of the inputs: a row that comes twice sees its update
  parallel_for(count, kUpdateNs * static_cast<double>(width), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t row = rows == nullptr ? at : rows[at];
      const T *g = grad + at * width, *w = weight + row * width;
      A squares = 0;
      for (int64_t i = 0; i < width; ++i) {
        const A clipped = clip_to(static_cast<A>(g[i]) * rescale, bound);
        squares += clipped * clipped;
      }
      const A sum = static_cast<A>(before[row]) + squares / static_cast<A>(width);
      history[row] = static_cast<T>(sum);
      const A rate = lr / std::sqrt(sum + epsilon);
      for (int64_t i = 0; i < width; ++i)
        out[row * width + i] =
            static_cast<T>(static_cast<A>(w[i]) - rate * clip_to(static_cast<A>(g[i]) * rescale, bound));
    }
  });
}

void update_rows_on_device(const GroupAdagradParams& p, const KernelArgs& a) {
  const int64_t count = (*a.in[1].shape)[0], width = count == 0 ? 0 : a.in[1].size() / count;
  if (width == 0) return;
  on_device::rows_adagrad({.weight = a.in[0].data,
                           .grad = a.in[1].data,
                           .before = a.in[2].data,
                           .out = a.out[0].data,
                           .history = a.out[1].data,
                           .count = count,
                           .width = width,
                           .lr = p.lr,
                           .rescale_grad = p.rescale_grad,
                           .epsilon = p.epsilon,
                           .clip_gradient = p.clip_gradient},
                          a.in[0].dtype);
}

// weight (m, ...), grad (n, ...), history (m, 1), rows (n,).
void infer_lazy_group(const GroupAdagradParams&, InferContext& c) {
  c.unify_dtypes({0, 1, 2}, {0, 1});
  c.set_in_shape(0, c.out_shape(0));
  const Shape weight = c.in_shape(0);
  c.set_out_shape(0, weight);
  if (!weight.rank_known()) return;
  if (weight.ndim() < 1) throw ShapeError({.input = "weight", .expected = "at least one axis", .given = weight.str()});
  const Shape history({weight[0], 1});
  c.set_in_shape(2, history);
  c.set_out_shape(1, history);
  Shape grad = weight;
  grad[0] = kUnknownDim;
  c.set_in_shape(1, grad);
  c.set_in_shape(3, Shape{c.in_shape(1)[0]});
  grad[0] = c.in_shape(3)[0];
  c.set_in_shape(1, grad);
}

}  // namespace

void register_adagrad(OpRegistry& ops) {
  declare_update<AdagradRule, AdagradParams>(ops, "_sparse_adagrad_update", {"history"})
      .doc(
          "g = clip(rescale_grad * grad); history += g * g; weight -= lr * (g / sqrt(history + epsilon) + wd * weight)")
      .updates_rows_by("_lazy_adagrad_update")
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}}, 0.1, 2.0)
      .sample({{5}, {5}, {5}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}, {"epsilon", "0.1"}}, 0.1, 2.0);
  declare_lazy_update<AdagradRule, AdagradParams>(ops, "_lazy_adagrad_update", {"history"})
      .doc("_sparse_adagrad_update of the rows of the gradient.")
      .sample(lazy_sample(1, {{"lr", "0.1"}, {"wd", "0.01"}}));
  Sample rows = lazy_sample(1, {{"lr", "0.1"}});
  rows.inputs[2] = Shape{4, 1};
  ops.declare<GroupAdagradParams>("_lazy_group_adagrad_update")
      .doc("_contrib_group_adagrad_update of the rows of the gradient.")
      .input("weight", "floating tensor (m, ...)")
      .input("grad", "(n, ...), dtype of weight")
      .input("history", "(m, 1); its rows are replaced")
      .input("rows", "(n,): numbers of the rows of weight that correspond to grad, integers of any dtype")
      .output("weight_out", "updated weight")
      .output("history_out", "replaces history")
      .visible_outputs(1)
      .inplace(0, 0)
      .inplace(2, 1)
      .writeback(2, 1)
      .internal()
      .may_raise()
      .infer(infer_lazy_group)
      .cpu(
          [](const GroupAdagradParams& p, const KernelArgs& a) {
            const kernels::Indices named = begin_lazy_update(a, 1);
            dispatch_floating(a.in[0].dtype, [&](auto zero) {
              update_rows<decltype(zero), accumulator_t<decltype(zero)>>(p, a, named.data());
            });
          },
          kUpdateDTypes)
      .cost(
          [](const GroupAdagradParams&, auto in, auto) { return kUpdateNs * static_cast<double>(in[1].shape.size()); })
      .gradient(kNotDifferentiable)
      .sample(rows);
  ops.declare<GroupAdagradParams>("_contrib_group_adagrad_update")
      .any_device()
      .doc(
          "g = clip(rescale_grad * grad); history += mean of g * g over the row; weight -= lr * g / sqrt(history + "
          "epsilon)")
      .input("weight", "floating tensor (rows, ...)")
      .input("grad", "shape and dtype of weight")
      .input("history", "(rows, 1); replaced")
      .output("weight_out", "updated weight")
      .output("history_out", "replaces history")
      .visible_outputs(1)
      .inplace(0, 0)
      .inplace(2, 1)
      .writeback(2, 1)
      .infer(infer_group)
      .cpu(
          [](const GroupAdagradParams& p, const KernelArgs& a) {
            if (device::current()) return update_rows_on_device(p, a);
            dispatch_floating(a.in[0].dtype, [&](auto zero) {
              update_rows<decltype(zero), accumulator_t<decltype(zero)>>(p, a, nullptr);
            });
          },
          kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .updates_rows_by("_lazy_group_adagrad_update")
      .sample({{3, 4}, {3, 4}, {3, 1}}, {{"lr", "0.1"}}, 0.1, 2.0)
      .sample({{2, 3, 2}, {2, 3, 2}, {2, 1}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}, {"rescale_grad", "2"}}, 0.1,
              2.0);
}

}  // namespace hybridnet::ops
