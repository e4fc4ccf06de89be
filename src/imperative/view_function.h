// The tape step of a view: its values come from ranges of other arrays, which share its memory.
#pragma once

#include "hybridnet/imperative.h"

namespace hybridnet {

// A range of the view and the range of a source that it shows. Counted in elements, in row-major order.
struct ViewPiece {
  int64_t begin = 0, size = 0;  // in the view
  size_t source = 0;            // number of the input
  int64_t from = 0;             // in the source
};

// Elements that no piece covers are constant. Pieces do not overlap.
class ViewFunction final : public RecordedFunction {
 public:
  ViewFunction(TensorSpec view, std::vector<TensorSpec> sources, std::vector<ViewPiece> pieces);
  std::string name() const override { return "view"; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override;
  bool returns_fresh_arrays() const override { return !is_reshape(); }
  std::vector<Value> as_graph(std::span<const Value> inputs) const override;

 private:
  bool is_reshape() const {
    return sources_.size() == 1 && pieces_.size() == 1 && pieces_[0].size == view_.shape.size() &&
           sources_[0].shape.size() == view_.shape.size();
  }
  NDArray copied_gradient(size_t source, const NDArray& gradient) const;
  NDArray recorded_gradient(size_t source, const NDArray& gradient) const;

  TensorSpec view_;
  std::vector<TensorSpec> sources_;
  std::vector<ViewPiece> pieces_;  // sorted by source, then by place in the source
};

// Records that `view` shows a part of the memory of `array`; returns it.
NDArray recorded_view(const NDArray& array, NDArray view);

}  // namespace hybridnet
