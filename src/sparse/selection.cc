// Slices and rows of csr matrices, retained rows of row_sparse arrays, and concatenation of csr matrices along axis 0.
#include "kernels/index/indices.h"
#include "ops/shape/slice_ranges.h"
#include "sparse/parts.h"
#include "sparse/rules.h"

namespace hybridnet {

NDArray retained(const SparseCall& call) { return retain_rows(call.inputs[0], call.inputs[1]); }

namespace {

std::optional<int64_t> integer(const AttrValue& value) {
  const auto* number = std::get_if<int64_t>(&value.value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

OptionalInts integers(const AttrValue& value) {
  OptionalInts list;
  if (const auto* items = std::get_if<AttrValue::List>(&value.value))
    for (const AttrValue& item : *items) list.push_back(integer(item));
  return list;
}

NDArray sliced(const NDArray& a, const ops::SliceRanges& ranges) {
  for (const ops::SliceRange& range : ranges)
    if (range.step != 1) return {};
  return slice_csr(a, ranges[0].begin, ranges[0].begin + ranges[0].count, ranges[1].begin,
                   ranges[1].begin + ranges[1].count);
}

}  // namespace

NDArray slice_of(const SparseCall& call) {
  return sliced(call.inputs[0], ops::slice_ranges(integers(call.parameter("begin")), integers(call.parameter("end")),
                                                  integers(call.parameter("step")), call.inputs[0].shape()));
}

NDArray slice_axis_of(const SparseCall& call) {
  const int axis = normalize_axis(integer(call.parameter("axis")).value_or(0), 2);
  OptionalInts begin(static_cast<size_t>(axis)), end(static_cast<size_t>(axis));
  begin.push_back(integer(call.parameter("begin")));
  end.push_back(integer(call.parameter("end")));
  return sliced(call.inputs[0], ops::slice_ranges(begin, end, {}, call.inputs[0].shape()));
}

// Takes whole rows of a csr matrix in another order.
ResultStorage take_storage(const SparseUse& use) {
  const bool rows = integer(use.parameter("axis")).value_or(0) == 0 && use.storages[1] == StorageType::kDefault;
  return rows ? as_csr_input(use) : ResultStorage();
}

NDArray take_csr(const SparseCall& call) {
  if (call.inputs[1].ndim() != 1) return {};
  const NDArray& a = call.inputs[0];
  const AttrValue mode = call.parameter("mode");
  const auto* word = std::get_if<std::string>(&mode.value);
  call.inputs[1].wait_to_read();
  kernels::Indices rows(call.inputs[1].ref());
  if (rows.size() > 0)
    rows.resolve(word == nullptr || *word == "clip" ? kernels::IndexMode::kClip
                 : *word == "wrap"                  ? kernels::IndexMode::kWrap
                                                    : kernels::IndexMode::kRaise,
                 a.shape()[0], {"take", "indices"});
  const SparseStorage& parts = checked_parts(a);
  const kernels::CsrPattern pattern = read_pattern(parts);
  std::vector<int64_t> indptr{0}, indices, positions;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    for (int64_t k = pattern.indptr[row]; k < pattern.indptr[row + 1]; ++k) {
      indices.push_back(pattern.indices[static_cast<size_t>(k)]);
      positions.push_back(k);
    }
    indptr.push_back(static_cast<int64_t>(indices.size()));
  }
  return make_csr(Shape{rows.size(), a.shape()[1]}, gather_positions(parts.data, std::move(positions)),
                  int64_array(indices), int64_array(indptr));
}

ResultStorage concat_storage(const SparseUse& use) {
  const AttrValue dim = use.parameter("dim");
  const auto* axis = std::get_if<int64_t>(&dim.value);
  const bool rows = axis != nullptr && (*axis == 0 || *axis == -2);
  return rows && all_stored_as(use, StorageType::kCsr) ? as_input(use) : ResultStorage();
}

NDArray concat_csr(const SparseCall& call) {
  std::vector<int64_t> indptr{0};
  std::vector<NDArray> data, indices;
  const NDArray& first = call.inputs[0];
  for (const NDArray& a : call.inputs) {
    if (a.shape()[1] != first.shape()[1] || a.dtype() != first.dtype()) return {};
    const SparseStorage& parts = checked_parts(a);
    const int64_t before = indptr.back();
    for (const int64_t start : read_int64(parts.indptr).subspan(1)) indptr.push_back(before + start);
    if (parts.data.size() == 0) continue;
    data.push_back(parts.data);
    indices.push_back(parts.indices);
  }
  const Shape shape{static_cast<int64_t>(indptr.size()) - 1, first.shape()[1]};
  if (data.empty()) return sparse_zeros(StorageType::kCsr, {shape, first.dtype()}, first.device());
  return make_csr(shape, concatenated(data), concatenated(indices), int64_array(indptr));
}

}  // namespace hybridnet
