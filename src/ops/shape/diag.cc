// diag: builds a diagonal matrix from a vector, or extracts the diagonals of a tensor.
#include <algorithm>
#include <cstdlib>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct DiagParams {
  int64_t k;
  int32_t axis1, axis2;
  static void describe(ParamSchema<DiagParams>& schema) {
    schema.field("k", &DiagParams::k)
        .default_value(0)
        .doc("Index of the diagonal: 0 the main one, positive above, negative below.");
    schema.field("axis1", &DiagParams::axis1).default_value(0).doc("The axis of rows. Not for vectors.");
    schema.field("axis2", &DiagParams::axis2).default_value(1).doc("The axis of columns. Not for vectors.");
  }
};

struct PlaceDiagParams {
  int64_t k;
  int32_t axis1, axis2;
  Tuple shape;
  static void describe(ParamSchema<PlaceDiagParams>& schema) {
    schema.field("k", &PlaceDiagParams::k).default_value(0).doc("Same as in diag.");
    schema.field("axis1", &PlaceDiagParams::axis1).default_value(0).at_least(0).doc("Same as in diag.");
    schema.field("axis2", &PlaceDiagParams::axis2).default_value(1).at_least(0).doc("Same as in diag.");
    schema.field("shape", &PlaceDiagParams::shape).doc("Shape of the output.");
  }
};

// Clamps the index of a diagonal to a range that no tensor exceeds, so no diagonal is lost.
int64_t within_tensors(int64_t k) { return std::clamp(k, -kMaxElements, kMaxElements); }

// The diagonals of a tensor: a walk over the other axes, then along the diagonal.
struct Diagonals {
  int axis1, axis2;
  int64_t length, first;  // number of elements of a diagonal, offset of its first element
  Diagonals(const Shape& data, int64_t given_k, int32_t given1, int32_t given2)
      : axis1(normalize_axis(given1, data.ndim(), "axis1")), axis2(normalize_axis(given2, data.ndim(), "axis2")) {
    if (axis1 == axis2) {
      throw ParamError({.input = "axis2", .expected = "another axis than axis1", .given = std::to_string(given2)});
    }
    const int64_t rows = data[axis1], columns = data[axis2], k = within_tensors(given_k);
    length = rows < 0 || columns < 0
                 ? kUnknownDim
                 : std::max<int64_t>(0, k >= 0 ? std::min(rows, columns - k) : std::min(rows + k, columns));
    if (length == 0 && rows > 0 && columns > 0 && !is_np_shape()) {
      throw ParamError({.input = "k",
                        .expected = "a diagonal of the matrices, in (-" + std::to_string(rows) + ", " +
                                    std::to_string(columns) + ")",
                        .given = std::to_string(k)});
    }
    first = 0;
    if (data.known() && length > 0) {
      const kernels::Strides strides(data);
      first = k >= 0 ? k * strides[axis2] : -k * strides[axis1];
    }
  }
  Shape shape(const Shape& data) const {
    Shape out = Shape::scalar();
    for (int i = 0; i < data.ndim(); ++i) {
      if (i != axis1 && i != axis2) out.push_back(data[i]);
    }
    out.push_back(length);
    return out;
  }
  // Copies between the tensor (strided) and its diagonals (dense).
  void copy(const Shape& data, const void* src, void* dst, int64_t bytes, bool read) const {
    if (length == 0) return;
    const kernels::Strides strides(data);
    int64_t dense = length;
    for (int i = 0; i < data.ndim(); ++i) dense *= i != axis1 && i != axis2 ? data[i] : 1;
    kernels::StridedCopy plan;
    auto add = [&](int64_t size, int64_t stride) {
      dense = size == 0 ? 0 : dense / size;
      plan.add_axis(size, read ? stride : dense, read ? dense : stride);
    };
    for (int i = 0; i < data.ndim(); ++i) {
      if (i != axis1 && i != axis2) add(data[i], strides[i]);
    }
    add(length, strides[axis1] + strides[axis2]);
    const int64_t skip = first * bytes;
    plan.run(static_cast<const char*>(src) + (read ? skip : 0), static_cast<char*>(dst) + (read ? 0 : skip), bytes);
  }
};

void infer_diag(const DiagParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  if (in.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least 1 dimension", .given = "()"});
  if (in.ndim() == 1) {
    const int64_t edge = in[0] < 0 ? kUnknownDim : in[0] + std::abs(within_tensors(p.k));
    c.set_out_shape(0, Shape({edge, edge}));
  } else {
    c.set_out_shape(0, Diagonals(in, p.k, p.axis1, p.axis2).shape(in));
  }
}

void run_diag(const DiagParams& p, const KernelArgs& a) {
  const Shape& in = *a.in[0].shape;
  const int64_t bytes = dtype_size(a.in[0].dtype);
  if (in.ndim() == 1) {
    kernels::zero_bytes(a.out[0].data, a.out[0].size() * bytes);
    Diagonals(*a.out[0].shape, p.k, 0, 1).copy(*a.out[0].shape, a.in[0].data, a.out[0].data, bytes, false);
  } else if (in.size() > 0) {
    Diagonals(in, p.k, p.axis1, p.axis2).copy(in, a.in[0].data, a.out[0].data, bytes, true);
  }
}

Values diag_gradient(const DiagParams& p, const GradientContext& g) {
  static const OpRef kDiag{"diag"}, kPlace{"_backward_diag"};
  const Shape& in = g.input_spec(0).shape;
  if (!g.output_grad(0)) return {};
  if (in.ndim() == 1) return {call(kDiag, {g.output_grad(0)}, {{"k", p.k}})};
  return {call(kPlace, {g.output_grad(0)},
               ParamSchema<PlaceDiagParams>::box({p.k, normalize_axis(p.axis1, in.ndim(), "axis1"),
                                                  normalize_axis(p.axis2, in.ndim(), "axis2"), in}))};
}

}  // namespace

void register_diag(OpRegistry& ops) {
  ops.declare<DiagParams>("diag")
      .doc("The diagonals of a tensor, or a matrix with a vector on its diagonal.")
      .input("data", "at least 1 dimension, any dtype")
      .names_its_input()
      .output("output", "shape of data without the two axes, the diagonal last; for a vector (n + |k|, n + |k|)")
      .infer(infer_diag)
      .any_device()
      .cpu(run_diag)
      .gradient(diag_gradient, Saves::nothing())
      .sample({{3}}, {})
      .sample({{3}}, {{"k", "-1"}})
      .sample({{3, 4}}, {{"k", "1"}})
      .sample({{2, 3, 4}}, {{"axis1", "-1"}, {"axis2", "1"}, {"k", "-1"}});
  ops.declare<PlaceDiagParams>("_backward_diag")
      .doc("Zeros with data on the diagonals: the gradient of diag.")
      .input("data", "the diagonals")
      .output("output", "shape given by the parameter")
      .infer([](const PlaceDiagParams& p, InferContext& c) {
        c.unify_dtypes();
        c.set_out_shape(0, p.shape);
        c.set_in_shape(0, Diagonals(p.shape, p.k, p.axis1, p.axis2).shape(p.shape));
      })
      .any_device()
      .cpu([](const PlaceDiagParams& p, const KernelArgs& a) {
        const int64_t bytes = dtype_size(a.in[0].dtype);
        kernels::zero_bytes(a.out[0].data, a.out[0].size() * bytes);
        if (a.in[0].size() > 0) {
          Diagonals(p.shape, p.k, p.axis1, p.axis2).copy(p.shape, a.in[0].data, a.out[0].data, bytes, false);
        }
      })
      .gradient(
          [](const PlaceDiagParams& p, const GradientContext& g) {
            static const OpRef kDiag{"diag"};
            if (!g.output_grad(0)) return Values{};
            return Values{call(kDiag, {g.output_grad(0)}, ParamSchema<DiagParams>::box({p.k, p.axis1, p.axis2}))};
          },
          Saves::nothing())
      .internal()
      .sample({{2, 3}}, {{"shape", "(3, 2, 4)"}, {"axis1", "2"}, {"axis2", "0"}});
}

}  // namespace hybridnet::ops
