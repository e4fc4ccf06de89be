#include "ops/optimizer/update_loop.h"

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/memory/strided_copy.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

void unify_update_shapes(InferContext& c, const UpdateLayout& layout, int i) {
  const int in = i * layout.stride();
  Shape known = c.out_shape(i);
  for (int k = 0; k < layout.stride(); ++k) {
    c.set_in_shape(in + k, known);
    known = c.in_shape(in + k);
  }
  for (int k = 0; k < layout.stride(); ++k) c.set_in_shape(in + k, known);
  for (int k = 0; k < layout.num_outputs() / layout.count; ++k) c.set_out_shape(i + k * layout.count, known);
}

// Tensors of any sizes, divided into consecutively numbered chunks.
class Chunks {
 public:
  Chunks(const KernelArgs& a, const UpdateLayout& layout) : first_(static_cast<size_t>(layout.count) + 1, 0) {
    for (int i = 0; i < layout.count; ++i) {
      const int64_t size = a.in[static_cast<size_t>(i * layout.stride())].size();
      sizes_.push_back(size);
      elements_ += size;
      first_[static_cast<size_t>(i) + 1] = first_[static_cast<size_t>(i)] + (size + kUpdateChunk - 1) / kUpdateChunk;
    }
  }
  int64_t count() const { return first_.back(); }
  // Cost of the average chunk: chunks of small tensors are not full.
  double chunk_ns() const {
    return kUpdateNs * static_cast<double>(elements_) / static_cast<double>(std::max<int64_t>(count(), 1));
  }

  // Updates chunks [begin, end), with one call per tensor.
  void update(UpdateRangeFn update, const void* closure, int64_t begin, int64_t end) const {
    size_t tensor = static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), begin) - first_.begin()) - 1;
    for (int64_t chunk = begin; chunk < end;) {
      while (first_[tensor + 1] <= chunk) ++tensor;
      const int64_t base = first_[tensor];
      const int64_t stop = std::min(end, first_[tensor + 1]);
      update(closure, static_cast<int>(tensor), (chunk - base) * kUpdateChunk,
             std::min(sizes_[tensor], (stop - base) * kUpdateChunk));
      chunk = stop;
    }
  }

 private:
  Temporary<int64_t> first_;  // index of the first chunk of each tensor, then the number of chunks
  Temporary<int64_t> sizes_;
  int64_t elements_ = 0;
};

}  // namespace

void for_each_update_range(const KernelArgs& a, const UpdateLayout& layout, UpdateRangeFn update, const void* closure) {
  if (layout.count == 1) {
    parallel_for(a.in[0].size(), kUpdateNs, [&](int64_t begin, int64_t end) { update(closure, 0, begin, end); });
    return;
  }
  const Chunks chunks(a, layout);
  parallel_for(chunks.count(), chunks.chunk_ns(),
               [&](int64_t begin, int64_t end) { chunks.update(update, closure, begin, end); });
}

void infer_updates(InferContext& c, const UpdateLayout& layout) {
  if (c.num_in() < layout.num_inputs()) {
    throw ParamError(
        {.expected = std::to_string(layout.num_inputs()) + " inputs for " + std::to_string(layout.count) + " tensors",
         .given = std::to_string(c.num_in())});
  }
  DType weight = DType::kUnknown;
  for (int i = 0; i < layout.count && weight == DType::kUnknown; ++i) {
    weight = c.in_dtype(i * layout.stride());
    if (weight == DType::kUnknown) weight = c.in_dtype(i * layout.stride() + 1);
    if (weight == DType::kUnknown) weight = c.out_dtype(i);
  }
  const DType state = layout.master ? DType::kFloat32 : weight;
  for (int i = 0; i < layout.count; ++i) {
    unify_update_shapes(c, layout, i);
    const int in = i * layout.stride();
    c.set_in_dtype(in, weight);
    c.set_in_dtype(in + 1, weight);
    c.set_out_dtype(i, weight);
    for (int k = 0; k < layout.states; ++k) {
      c.set_in_dtype(in + 2 + k, state);
      c.set_out_dtype(i + (1 + k) * layout.count, state);
    }
    if (layout.master) {
      c.set_in_dtype(in + 2 + layout.states, DType::kFloat32);
      c.set_out_dtype(i + (1 + layout.states) * layout.count, DType::kFloat32);
    }
  }
}

void infer_lazy_update(InferContext& c, int states) {
  const int rows = 2 + states;
  Shape weight;
  DType dtype = c.in_dtype(1);
  for (int pass = 0; pass < 2; ++pass) {  // the second pass propagates shapes and dtypes found in the first
    for (int k = 0; k <= states; ++k) {
      const int in = k == 0 ? 0 : 1 + k;
      c.set_in_shape(in, weight);
      c.set_out_shape(k, c.in_shape(in));
      weight = c.out_shape(k);
      c.set_in_dtype(in, dtype);
      c.set_out_dtype(k, c.in_dtype(in));
      dtype = c.out_dtype(k);
    }
  }
  c.set_in_dtype(1, dtype);
  if (!weight.rank_known()) return;
  if (weight.ndim() < 1) throw ShapeError({.input = "weight", .expected = "at least one axis", .given = weight.str()});
  Shape grad = weight;
  grad[0] = kUnknownDim;
  c.set_in_shape(1, grad);
  c.set_in_shape(rows, Shape{c.in_shape(1)[0]});
  if (c.in_shape(rows).rank_known()) grad[0] = c.in_shape(rows)[0];
  c.set_in_shape(1, grad);
}

kernels::Indices begin_lazy_update(const KernelArgs& a, int states) {
  kernels::Indices rows(a.in[static_cast<size_t>(2 + states)]);
  if (rows.size() > 0) rows.resolve(kernels::IndexMode::kRaise, (*a.in[0].shape)[0]);
  for (int k = 0; k <= states; ++k) {
    const TensorRef& from = a.in[k == 0 ? 0 : static_cast<size_t>(1 + k)];
    const TensorRef& to = a.out[static_cast<size_t>(k)];
    if (from.data != to.data) kernels::copy_bytes(from.data, to.data, to.size() * dtype_size(to.dtype));
  }
  return rows;
}

void check_per_tensor(const char* name, size_t given, int expected) {
  if (given == static_cast<size_t>(expected)) return;
  throw ParamError({.input = name,
                    .expected = "one number per tensor, " + std::to_string(expected),
                    .given = std::to_string(given)});
}

}  // namespace hybridnet::ops
