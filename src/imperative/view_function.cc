#include "imperative/view_function.h"

#include <algorithm>

#include "device/memory.h"
#include "hybridnet/graph.h"

namespace hybridnet {
namespace {

const OpRef kReshape{"Reshape"}, kSliceAxis{"slice_axis"}, kConcat{"Concat"}, kZeros{"_zeros"};

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

ParamsPtr params_of(const OpRef& op, const Attributes& attributes) {
  return op.op().schema->parse(attributes, op.op().name);
}

ParamsPtr range_params(int64_t begin, int64_t end) {
  return params_of(kSliceAxis, {{"axis", 0}, {"begin", begin}, {"end", end}});
}

NDArray zeros(int64_t size, const NDArray& like) {
  const ParamsPtr params =
      params_of(kZeros, {{"shape", AttrValue(Shape{size})}, {"dtype", AttrValue(dtype_name(like.dtype()))}});
  const NDArray out = NDArray::empty(Shape{size}, like.dtype(), like.device());
  return invoke(kZeros.op(), params, {}, {&out, 1})[0];
}

}  // namespace

NDArray recorded_view(const NDArray& array, NDArray view) {
  const int64_t from = (view.impl()->offset - array.impl()->offset) / dtype_size(array.dtype());
  record(Ref<RecordedFunction>(new ViewFunction(view.spec(), {array.spec()}, {{0, view.size(), 0, from}})), {&array, 1},
         {&view, 1});
  return view;
}

ViewFunction::ViewFunction(TensorSpec view, std::vector<TensorSpec> sources, std::vector<ViewPiece> pieces)
    : view_(std::move(view)), sources_(std::move(sources)), pieces_(std::move(pieces)) {
  std::sort(pieces_.begin(), pieces_.end(), [](const ViewPiece& a, const ViewPiece& b) {
    return a.source != b.source ? a.source < b.source : a.from < b.from;
  });
}

std::vector<NDArray> ViewFunction::backward(std::span<const NDArray> out_grads, bool create_graph) {
  std::vector<NDArray> found(sources_.size());
  if (!out_grads[0]) return found;
  for (size_t source = 0; source < found.size(); ++source)
    found[source] = create_graph ? recorded_gradient(source, out_grads[0]) : copied_gradient(source, out_grads[0]);
  return found;
}

NDArray ViewFunction::copied_gradient(size_t source, const NDArray& gradient) const {
  const Shape& shape = sources_[source].shape;
  if (is_reshape()) return gradient.reshaped(shape);
  const NDArray result = NDArray::deferred({shape, gradient.dtype()}, gradient.device());
  const NDArray reads[] = {gradient}, writes[] = {result};
  run_task("view", reads, writes, result.bytes() / 4,
           [self = Ref<RecordedFunction>(const_cast<ViewFunction*>(this)), source, gradient, result](TaskContext&) {
             const auto& pieces = static_cast<const ViewFunction&>(*self).pieces_;
             const size_t width = static_cast<size_t>(dtype_size(gradient.dtype()));
             const char* from = static_cast<const char*>(gradient.data());
             char* to = static_cast<char*>(result.data());
             device::zero_memory(to, result.bytes());
             for (const ViewPiece& piece : pieces)
               if (piece.source == source)
                 device::copy_memory(to + static_cast<size_t>(piece.from) * width,
                                     from + static_cast<size_t>(piece.begin) * width,
                                     piece.size * static_cast<int64_t>(width));
           });
  return result;
}

// Computes the gradient by recorded operations: views of `gradient`, joined with zeros between them.
NDArray ViewFunction::recorded_gradient(size_t source, const NDArray& gradient) const {
  const TensorSpec& spec = sources_[source];
  if (is_reshape()) return recorded_view(gradient, gradient.reshaped(spec.shape));
  const NDArray flat = gradient.reshaped(Shape{view_.shape.size()});
  std::vector<NDArray> parts;
  int64_t at = 0;
  const auto skip_to = [&](int64_t place) {
    if (place > at) parts.push_back(zeros(place - at, gradient));
    at = place;
  };
  for (const ViewPiece& piece : pieces_) {
    if (piece.source != source) continue;
    skip_to(piece.from);
    parts.push_back(recorded_view(gradient, flat.sliced(piece.begin, piece.begin + piece.size)));
    at += piece.size;
  }
  skip_to(spec.shape.size());
  if (parts.size() == 1) return recorded_view(gradient, parts[0].reshaped(spec.shape));
  const ParamsPtr params =
      params_of(kConcat, {{"num_args", AttrValue(static_cast<int64_t>(parts.size()))}, {"dim", AttrValue(0)}});
  const NDArray joined = invoke_one(kConcat.op(), params, parts);
  return recorded_view(joined, joined.reshaped(spec.shape));
}

// Supports one source only: with several, a graph does not know the values between the pieces.
std::vector<Value> ViewFunction::as_graph(std::span<const Value> inputs) const {
  if (pieces_.size() != 1 || pieces_[0].size != view_.shape.size()) return {};
  NodeEntry value = to_entry(inputs[pieces_[0].source]);
  const auto apply = [&](const OpRef& op, ParamsPtr params) {
    value = {make_node(op.op(), op.op().name, std::move(params), {value}), 0};
  };
  const Shape &source = sources_[pieces_[0].source].shape, &view = view_.shape;
  const int64_t row = source.ndim() == 0 || source[0] == 0 ? 0 : source.size() / source[0];
  const int64_t begin = pieces_[0].from, end = begin + pieces_[0].size;
  Shape given = source;
  if (row > 0 && begin % row == 0 && end % row == 0) {
    if (end - begin != source.size()) apply(kSliceAxis, range_params(begin / row, end / row));
    given[0] = (end - begin) / row;
  } else {
    apply(kReshape, params_of(kReshape, {{"shape", AttrValue(Shape{source.size()})}}));
    apply(kSliceAxis, range_params(begin, end));
    given = Shape{end - begin};
  }
  if (!(given == view)) apply(kReshape, params_of(kReshape, {{"shape", AttrValue(view)}}));
  return {to_value(value)};
}

}  // namespace hybridnet
