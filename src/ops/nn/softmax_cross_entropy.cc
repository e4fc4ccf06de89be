// softmax_cross_entropy: the loss of a whole batch as one number.
#include <cmath>
#include <limits>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/env.h"
#include "hybridnet/storage.h"
#include "kernels/device/rows_arguments.h"
#include "kernels/elementwise/convert.h"
#include "kernels/index/indices.h"
#include "kernels/reduce/reduce.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/nn/class_labels.h"

namespace hybridnet::ops {
namespace {

const OpRef kSoftmax{"softmax"}, kOneHot{"one_hot"};
constexpr double kLeastProbability = 1e-8;

void infer_cross_entropy(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(2));
  c.set_in_shape(1, Shape{c.in_shape(0)[0]});
  c.set_in_shape(0, Shape{c.in_shape(1)[0], kUnknownDim});
  c.set_out_shape(0, Shape{1});
}

template <typename T>
double row_loss(const T* row, int64_t classes, int64_t label) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (int64_t k = 0; k < classes; ++k) largest = std::max(largest, static_cast<double>(row[k]));
  for (int64_t k = 0; k < classes; ++k) total += std::exp(static_cast<double>(row[k]) - largest);
  const double most = -std::log(kLeastProbability);
  if (label < 0 || label >= classes) return most;
  const double loss = largest + std::log(total) - static_cast<double>(row[label]);
  return loss > most ? most : loss;  // NaN is kept
}

// The sum of the losses in memory of a device.
void run_on_device(const KernelArgs& a) {
  const int64_t rows = (*a.in[0].shape)[0], classes = (*a.in[0].shape)[1];
  const DType dtype = a.in[0].dtype;
  if (environment().strict) {  // the report waits for the labels
    kernels::Indices(a.in[1]).report({"softmax_cross_entropy", "label"}, kernels::Bounds::index(classes),
                                     "its probability is taken as 0");
  }
  const OwnedBlock losses((rows + 1) * static_cast<int64_t>(sizeof(double)), device::current()->device());
  auto* const of_rows = static_cast<double*>(losses.data());
  double* const total = of_rows + rows;
  on_device::launch_rows("rows.cuh", "CrossEntropyArguments", on_device::with_dtype("cross_entropy", dtype), rows,
                         device::CrossEntropyArguments{.x = a.in[0].data,
                                                       .labels = a.in[1].data,
                                                       .losses = of_rows,
                                                       .rows = rows,
                                                       .classes = classes,
                                                       .most = -std::log(kLeastProbability)});
  kernels::reduce(kernels::Reduction::kSum, kernels::Finish::kNone, DType::kFloat64, of_rows, Shape{rows}, 1,
                  DType::kFloat64, total);
  kernels::convert(DType::kFloat64, total, dtype, a.out[0].data, 1);
}

template <typename T>
void run(const KernelArgs& a) {
  const int64_t rows = (*a.in[0].shape)[0], classes = (*a.in[0].shape)[1];
  report_labels({"softmax_cross_entropy", "label"}, a.in[1].as<T>(), rows, classes, "its probability is taken as 0",
                [](int64_t) { return false; });
  double total = 0;
  for (int64_t i = 0; i < rows; ++i)
    total += row_loss(a.in[0].as<T>() + i * classes, classes, class_of(a.in[1].as<T>()[i]));
  *a.out[0].as<T>() = static_cast<T>(total);
}

void run_cross_entropy(const NoParams&, const KernelArgs& a) {
  if (device::current()) return run_on_device(a);
  a.in[0].dtype == DType::kFloat64 ? run<double>(a) : run<float>(a);
}

// The lower limit of the probability does not stop the gradient, which follows MXNet.
Values cross_entropy_gradient(const NoParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(2);
  const TensorSpec& data = g.input_spec(0);
  const Value target = call(kOneHot, {g.input(1)}, {{"depth", data.shape[1]}, {"dtype", dtype_name(data.dtype)}});
  return {(call(kSoftmax, {g.input(0)}) - target) * reshape(g.output_grad(0), Shape{1, 1}), Value{}};
}

}  // namespace

void register_softmax_cross_entropy(OpRegistry& ops) {
  ops.declare("softmax_cross_entropy")
      .doc(
          "Sum over the batch of -log(softmax(data)[label]), with probabilities of at least 1e-8. A label that is no "
          "class "
          "has probability 0.")
      .input("data", "(batch, classes)")
      .input("label", "class numbers (batch,), dtype of data; no gradient")
      .output("output", "one number: shape (1,), with NumPy shapes ()")
      .infer(infer_cross_entropy)
      .any_device()
      .cpu(run_cross_entropy, kFloating)
      .halves_through_float()
      .gradient(cross_entropy_gradient, Saves::all_inputs())
      .cost([](const NoParams&, auto in, auto) { return in[0].shape.size() * 10 + 300; })
      .amp(AmpType::kFloat)
      .sample(Sample{.inputs = {{3, 4}, {3}},
                     .low = 0,
                     .high = 3,
                     .integer_valued = true,
                     .check_gradient = false,
                     .note = "labels have no gradient"})
      .sample(Sample{.inputs = {{0, 4}, Shape{0}}, .check_gradient = false, .note = "labels have no gradient"});
}

}  // namespace hybridnet::ops
