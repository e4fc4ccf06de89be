#include "ops/attention/attention_products.h"

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/product/device_product.h"
#include "kernels/product/gemm.h"

namespace hybridnet::ops {
namespace {

// Up to two products run one after the other, each on all cores; more products run in parallel.
template <typename F>
void for_each_product(int64_t count, int64_t work, F&& f) {
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  };
  if (count <= 2) return range(0, count);
  parallel_for(count, 0.04 * static_cast<double>(work), range);
}

template <typename T>
void scores_of(const Projection& a, int64_t part_a, const T* pa, const Projection& b, int64_t part_b, const T* pb,
               double scale, T* out) {
  const kernels::GemmShape sizes{false, true, a.length, b.length, a.size, a.row(), b.row(), b.length};
  if (device::current())
    return kernels::on_device::gemm(sizes, dtype_of<T>::value, scale, pa + a.offset(0, part_a),
                                    pb + b.offset(0, part_b), 0, out,
                                    {a.matrices(), a.step(), b.step(), a.length * b.length});
  for_each_product(a.matrices(), a.length * b.length * a.size, [&](int64_t i) {
    kernels::gemm(sizes, static_cast<T>(scale), pa + a.offset(i, part_a), pb + b.offset(i, part_b), T(0),
                  out + i * a.length * b.length);
  });
}

template <typename T>
void mix_of(const T* scores, bool transpose, const Projection& v, int64_t part_v, const T* pv, double scale,
            const Projection& o, int64_t part_o, T* out) {
  const kernels::GemmShape sizes{transpose, false,  o.length, v.size, v.length, transpose ? o.length : v.length,
                                 v.row(),   o.row()};
  if (device::current())
    return kernels::on_device::gemm(sizes, dtype_of<T>::value, scale, scores, pv + v.offset(0, part_v), 0,
                                    out + o.offset(0, part_o), {v.matrices(), o.length * v.length, v.step(), o.step()});
  for_each_product(v.matrices(), o.length * v.length * v.size, [&](int64_t i) {
    kernels::gemm(sizes, static_cast<T>(scale), scores + i * o.length * v.length, pv + v.offset(i, part_v), T(0),
                  out + o.offset(i, part_o));
  });
}

}  // namespace

void attention_scores(const TensorRef& a, PartOf part_a, const TensorRef& b, PartOf part_b, int64_t heads, double scale,
                      const TensorRef& out) {
  if (out.size() == 0) return;
  const Projection left(*a.shape, heads, part_a.parts), right(*b.shape, heads, part_b.parts);
  if (out.dtype == DType::kFloat64) {
    scores_of(left, part_a.part, a.as<double>(), right, part_b.part, b.as<double>(), scale, out.as<double>());
  } else {
    scores_of(left, part_a.part, a.as<float>(), right, part_b.part, b.as<float>(), scale, out.as<float>());
  }
}

void attention_mix(const TensorRef& scores, bool transpose, const TensorRef& values, PartOf part_values, int64_t heads,
                   double scale, const TensorRef& out, PartOf part_out) {
  if (out.size() == 0) return;
  if (part_out.parts > 1) kernels::zero_bytes(out.data, out.size() * dtype_size(out.dtype));
  const Projection v(*values.shape, heads, part_values.parts), o(*out.shape, heads, part_out.parts);
  if (out.dtype == DType::kFloat64) {
    mix_of(scores.as<double>(), transpose, v, part_values.part, values.as<double>(), scale, o, part_out.part,
           out.as<double>());
  } else {
    mix_of(scores.as<float>(), transpose, v, part_values.part, values.as<float>(), scale, o, part_out.part,
           out.as<float>());
  }
}

void require_projection(const InferContext& c, int i, int64_t heads, int64_t parts) {
  const Shape& s = c.in_shape(i);
  if (!s.rank_known()) return;
  if (s.ndim() == 3 && (s[2] == kUnknownDim || s[2] % (heads * parts) == 0)) return;
  throw ShapeError(
      {.input = c.input_name(i),
       .expected = "(length, batch, heads * " + std::to_string(parts) + " * size) with heads=" + std::to_string(heads),
       .given = "shape " + s.str()});
}

}  // namespace hybridnet::ops
