// Dropout: zeroes elements at random in training and scales the others to keep the expected value.
#include <algorithm>
#include <cstring>
#include <optional>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/random/bernoulli.h"
#include "kernels/random/device_random.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_backward_Dropout"};

enum class DropoutMode : int32_t { kTraining, kAlways };

struct DropoutParams {
  double p;
  DropoutMode mode;
  Tuple axes;
  std::optional<bool> cudnn_off;
  static void describe(ParamSchema<DropoutParams>& schema) {
    schema.field("p", &DropoutParams::p).default_value(0.5).range(0, 1).doc("Probability that an element becomes 0.");
    schema.field("mode", &DropoutParams::mode)
        .default_value("training")
        .choice("training", DropoutMode::kTraining)
        .choice("always", DropoutMode::kAlways)
        .doc("training: the identity outside of training; always: drops elements in both.");
    schema.field("axes", &DropoutParams::axes)
        .default_value(Tuple::scalar())
        .doc("Axes along which all elements share one decision.");
    schema.field("cudnn_off", &DropoutParams::cudnn_off).default_value(false).hidden();
  }
  bool is_identity(bool train) const { return p == 0 || (mode == DropoutMode::kTraining && !train); }
  double scale() const { return p < 1 ? 1 / (1 - p) : 0; }
};

Shape mask_shape(const DropoutParams& p, Shape shape) {
  for (int64_t axis : p.axes) shape[normalize_axis(axis, shape.ndim(), "axes")] = 1;
  return shape;
}

void infer_dropout(const DropoutParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_dtype(1, DType::kUInt8);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  if (c.in_shape(0).rank_known()) c.set_out_shape(1, mask_shape(p, c.in_shape(0)));
}

// A mask that repeats along some axes of the data, viewed as rows: the data's last axis, or the whole data if nothing
// repeats.
class MaskRows {
 public:
  MaskRows(const Shape& data, const Shape& mask) : data_(data), mask_(mask), flat_(data == mask) {
    length_ = flat_ ? data.size() : data[data.ndim() - 1];
    count_ = flat_ ? (length_ > 0 ? 1 : 0) : (length_ > 0 ? data.size() / length_ : 0);
    repeats_ = !flat_ && mask[mask.ndim() - 1] == 1 && length_ != 1;
  }
  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  bool repeats() const { return repeats_; }  // one mask element per row
  bool flat() const { return flat_; }
  int64_t mask_offset(int64_t row) const {
    if (flat_) return 0;
    int64_t offset = 0, stride = mask_[mask_.ndim() - 1];
    for (int axis = data_.ndim() - 2; axis >= 0; --axis) {
      if (mask_[axis] != 1) offset += row % data_[axis] * stride;
      row /= data_[axis];
      stride *= mask_[axis];
    }
    return offset;
  }

 private:
  const Shape &data_, &mask_;
  bool flat_, repeats_;
  int64_t length_, count_;
};

constexpr int64_t kTile = 4096;  // elements whose mask fits the L1 cache
constexpr double kElementNs = 0.8;

template <typename T>
void scale_kept(const T* in, const uint8_t* mask, int64_t n, double scale, T* out) {
  using Acc = accumulator_t<T>;
  const Acc factor = static_cast<Acc>(scale);
  for (int64_t i = 0; i < n; ++i) out[i] = mask[i] ? static_cast<T>(static_cast<Acc>(in[i]) * factor) : T(0.0f);
}

// A mask that repeats is written out.
void apply_mask_on_device(DType dtype, const void* in, const Shape& shape, const uint8_t* mask, const Shape& mask_shape,
                          double scale, void* out) {
  const int64_t n = shape.size();
  if (shape == mask_shape) return kernels::on_device::apply_mask(scale, dtype, in, mask, n, out);
  const OwnedBlock whole(n, device::current()->device());
  kernels::broadcast_copy(mask, mask_shape, 1, whole.data(), shape);
  kernels::on_device::apply_mask(scale, dtype, in, static_cast<const uint8_t*>(whole.data()), n, out);
}

template <typename T>
void apply_mask(const T* in, const Shape& shape, const uint8_t* mask, const Shape& mask_shape, double scale, T* out) {
  if (device::current()) return apply_mask_on_device(dtype_of<T>::value, in, shape, mask, mask_shape, scale, out);
  const MaskRows rows(shape, mask_shape);
  if (rows.flat()) {
    parallel_for(shape.size(), kElementNs, [&](int64_t begin, int64_t end) {
      scale_kept(in + begin, mask + begin, end - begin, scale, out + begin);
    });
    return;
  }
  using Acc = accumulator_t<T>;
  const int64_t length = rows.length();
  parallel_for(rows.count(), kElementNs * static_cast<double>(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* keep = mask + rows.mask_offset(row);
      const T* from = in + row * length;
      T* to = out + row * length;
      if (!rows.repeats()) {
        scale_kept(from, keep, length, scale, to);
      } else if (*keep == 0) {
        std::fill_n(to, length, T(0.0f));
      } else {
        const Acc factor = static_cast<Acc>(scale);
        for (int64_t i = 0; i < length; ++i) to[i] = static_cast<T>(static_cast<Acc>(from[i]) * factor);
      }
    }
  });
}

void run_identity(const KernelArgs& a) {
  kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size() * dtype_size(a.in[0].dtype));
  if (a.out[1].data) kernels::fill(a.out[1], 1);
}

// Data and mask have the same shape: each piece of the mask is used while it is in the cache.
template <typename T>
void run_flat(const DropoutParams& p, const KernelArgs& a, uint8_t* mask) {
  const T* in = a.in[0].as<T>();
  T* out = a.out[0].as<T>();
  const int64_t n = a.in[0].size(), tiles = (n + kTile - 1) / kTile;
  if (device::current())
    return kernels::on_device::drop(a.rng, 1 - p.p, p.scale(), dtype_of<T>::value, in, n, mask, out);
  parallel_for(tiles, kElementNs * static_cast<double>(kTile), [&](int64_t first, int64_t last) {
    uint8_t own[kTile];  // used if the mask is not an output
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t begin = tile * kTile, count = std::min(n - begin, kTile);
      uint8_t* keep = mask ? mask + begin : own;
      kernels::fill_bernoulli(a.rng, 1 - p.p, begin, count, keep);
      scale_kept(in + begin, keep, count, p.scale(), out + begin);
    }
  });
}

void run_dropout(const DropoutParams& p, const KernelArgs& a) {
  if (p.is_identity(a.train)) return run_identity(a);
  const Shape& shape = *a.in[0].shape;
  const Shape masked = mask_shape(p, shape);
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    uint8_t* mask = a.out[1].as<uint8_t>();
    if (masked == shape) return run_flat<T>(p, a, mask);
    std::optional<OwnedBlock> own;
    if (!mask) {
      const device::Stream* stream = device::current();
      own.emplace(masked.size(), stream ? stream->device() : Device{});
      mask = static_cast<uint8_t*>(own->data());
    }
    kernels::fill_bernoulli(a.rng, 1 - p.p, 0, masked.size(), mask);
    apply_mask(a.in[0].as<T>(), shape, mask, masked, p.scale(), a.out[0].as<T>());
  });
}

Values dropout_gradient(const DropoutParams& p, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  if (!dy || p.is_identity(g.train())) return {dy};
  return {call(kBackward, {dy, g.output(1)}, {{"p", p.p}})};
}

// ---- gradient helper: linear in its first input
struct BackwardParams {
  double p;
  static void describe(ParamSchema<BackwardParams>& schema) {
    schema.field("p", &BackwardParams::p).range(0, 1).doc("Probability of the dropout.");
  }
};

void run_backward(const BackwardParams& p, const KernelArgs& a) {
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    apply_mask(a.in[0].as<T>(), *a.in[0].shape, a.in[1].as<uint8_t>(), *a.in[1].shape, p.p < 1 ? 1 / (1 - p.p) : 0,
               a.out[0].as<T>());
  });
}

void infer_backward(const BackwardParams&, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_in_dtype(1, DType::kUInt8);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape &data = c.in_shape(0), &mask = c.in_shape(1);
  if (data.rank_known() && mask.rank_known() && data.ndim() != mask.ndim())
    throw ShapeError({.input = "mask", .expected = std::to_string(data.ndim()) + " axes", .given = mask.str()});
}

// ---- the factors of a dropout, for gradients of operators that contain one
struct KeptParams {
  Tuple shape;
  double p;
  DType dtype = DType::kFloat32;
  static void describe(ParamSchema<KeptParams>& schema) {
    schema.field("shape", &KeptParams::shape).doc("Shape of the elements that were dropped.");
    schema.field("p", &KeptParams::p).range(0, 1).doc("Probability of the dropout.");
    schema.field("dtype", &KeptParams::dtype).default_value("float32").doc("float32 or float64.");
  }
};

template <typename T>
void write_kept(RngKey rng, const KeptParams& p, int64_t n, T* to) {
  const T factor = p.p < 1 ? static_cast<T>(1 / (1 - p.p)) : T(0);
  uint8_t kept[kTile];
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t count = std::min(kTile, n - first);
    kernels::fill_bernoulli(rng, 1 - p.p, first, count, kept);
    for (int64_t i = 0; i < count; ++i) to[first + i] = kept[i] ? factor : T(0);
  }
}

void run_kept(const KeptParams& p, const KernelArgs& a) {
  RngKey rng;
  std::memcpy(&rng, a.in[0].data, sizeof(rng));
  const int64_t n = a.out[0].size();
  p.dtype == DType::kFloat64 ? write_kept(rng, p, n, a.out[0].as<double>())
                             : write_kept(rng, p, n, a.out[0].as<float>());
}

void infer_kept(const KeptParams& p, InferContext& c) {
  c.set_in_dtype(0, DType::kInt64);
  c.set_in_shape(0, Shape{2});
  c.set_out_dtype(0, p.dtype);
  c.set_out_shape(0, p.shape);
}

}  // namespace

void register_dropout(OpRegistry& ops) {
  Sample sample;
  sample.inputs = {{3, 4}};
  sample.check_gradient = false;
  sample.note = "every run draws another mask";
  Sample shared = sample, identity = sample;
  shared.inputs = {{3, 4, 5}};
  shared.attrs = {{"p", "0.3"}, {"axes", "(1,)"}, {"mode", "always"}};
  identity.attrs = {{"p", "0"}};
  identity.check_gradient = true;
  identity.note = "";
  ops.declare<DropoutParams>("Dropout")
      .alias("_npx_dropout")
      .doc(
          "In training, sets elements to 0 with probability p and divides the others by 1 - p; the identity "
          "otherwise.\n\n"
          "Srivastava et al.: Dropout: a simple way to prevent neural networks from overfitting, JMLR 15 (2014).")
      .input("data", "floating array of any shape")
      .names_its_input()
      .output("output", "shape and dtype of data")
      .output("mask", "uint8, 1 where elements were kept; shape of data with size 1 along axes")
      .visible_outputs(1)
      .infer(infer_dropout)
      .any_device()
      .cpu(run_dropout, kFloating)
      .random()
      .train_sensitive()
      .prediction_params([](DropoutParams p) {
        if (p.mode == DropoutMode::kTraining) p.p = 0;
        return p;
      })
      .training_params([](DropoutParams p) {
        p.mode = DropoutMode::kAlways;
        return p;
      })
      .skips_unwanted_outputs()
      .identity_when([](const DropoutParams& p, bool train) { return p.is_identity(train); })
      .inplace(0, 0)
      .gradient(dropout_gradient, Saves::of({}, {1}))
      .cost([](const DropoutParams&, auto in, auto) { return in[0].shape.size() * 5; })  // with the draws
      .light()
      .sample(sample)
      .sample(shared)
      .sample(identity);

  Sample backward;
  backward.inputs = {{3, 4, 2}, {3, 4, 1}};
  backward.dtypes = {DType::kUnknown, DType::kUInt8};
  backward.attrs = {{"p", "0.25"}};
  backward.integer_valued = true;
  backward.low = 0;
  backward.high = 1;
  ops.declare<BackwardParams>("_backward_Dropout")
      .internal()
      .doc("Input gradient of Dropout.")
      .input("grad", "output gradient")
      .input("mask", "uint8; the mask output of Dropout")
      .output("out", "shape and dtype of grad")
      .infer(infer_backward)
      .any_device()
      .cpu(run_backward, kFloating)
      .inplace(0, 0)
      .gradient(
          [](const BackwardParams& p, const GradientContext& g) -> Values {
            if (!g.output_grad(0)) return {};
            return {call(kBackward, {g.output_grad(0), g.input(1)}, {{"p", p.p}}), Value{}};
          },
          Saves::of({1}))
      .sample(backward);

  Sample kept;
  kept.inputs = {{2}};
  kept.attrs = {{"shape", "(2, 3, 5)"}, {"p", "0.25"}};
  kept.dtypes = {DType::kInt64};
  kept.integer_valued = true;
  kept.low = 0;
  kept.high = 100;
  kept.check_gradient = false;
  kept.note = "no gradient: a key of random numbers";
  ops.declare<KeptParams>("_dropout_kept")
      .internal()
      .doc("The factors of a dropout with this key: 0 or 1 / (1 - p).")
      .input("rng", "(2,): output rng of an operator that contains dropout")
      .output("output", "shape given by the parameter")
      .infer(infer_kept)
      .cpu(run_kept, DTypeSet(DType::kInt64))
      .gradient(kNotDifferentiable)
      .cost([](const KeptParams& p, auto, auto) { return 2 * p.shape.size(); })
      .sample(kept);
}

}  // namespace hybridnet::ops
