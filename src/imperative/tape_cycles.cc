// Finds arrays that would hold themselves through the tape (tape.h, break_cycles).
#include <unordered_set>

#include "imperative/tape.h"
#include "imperative/write_history.h"

namespace hybridnet {
namespace {

// Follows all references that lead from a mark.
class Walk {
 public:
  explicit Walk(const ArrayImpl* sought) : sought_(sought) {}

  // True if a leaf on the way has the array as its gradient buffer. Steps that saved the array drop its handle.
  bool finds_buffer(const TapeMark& start) {
    follow(&start);
    while (!marks_.empty()) {
      const TapeMark* mark = marks_.back();
      marks_.pop_back();
      if (mark->node) enter(*mark->node);
      if (!mark->grad) continue;
      found_ |= mark->grad.impl() == sought_ || mark->grad.impl()->chunk == sought_->chunk;
      follow(own_mark_of(mark->grad));
    }
    return found_;
  }

 private:
  void follow(const TapeMark* mark) {
    if (mark != nullptr && seen_.insert(mark).second) marks_.push_back(mark);
  }

  void enter(TapeNode& node) {
    if (!seen_.insert(&node).second) return;
    const auto visit = [&](NDArray& saved) {
      if (!saved) return;
      if (saved.impl() == sought_)
        saved = saved.detached();
      else
        follow(own_mark_of(saved));
    };
    for (TapeNode::Input& input : node.inputs) {
      follow(input.mark.get());
      visit(input.saved.array);
    }
    if (node.function) node.function->visit_saved(visit);
  }

  const ArrayImpl* const sought_;
  bool found_ = false;
  std::vector<const TapeMark*> marks_;
  std::unordered_set<const void*> seen_;
};

}  // namespace

void break_cycles(std::span<const NDArray> given) {
  for (const NDArray& array : given) {
    const TapeMark* mark = own_mark_of(array);
    if (mark == nullptr || !mark->node) continue;
    if (!mark->is_buffer && !was_saved(*array.impl()->chunk)) continue;  // the common case: nothing holds it
    const Ref<TapeMark> recorded(const_cast<TapeMark*>(mark));
    if (!Walk(array.impl()).finds_buffer(*recorded)) continue;
    keep_as_buffer(array);
    if (WriteHistory* history = WriteHistory::find(*array.impl()->chunk)) history->note(array, {});
  }
}

void require_other_gradient(const NDArray& a, const NDArray& grad, const TapeMark& mark) {
  if (a.impl() != grad.impl() && own_mark_of(grad) == nullptr) return;  // the common case: a new buffer
  if (!Walk(a.impl()).finds_buffer(mark)) return;
  throw ValueError({.input = "gradient",
                    .expected = "an array that is neither the variable itself nor has its gradient in the variable",
                    .given = a.impl() == grad.impl() ? "the variable" : "an array whose gradient is the variable",
                    .because = "backward would overwrite the one by the other",
                    .fix = "use an array of its own: mark_variables(x, x.zeros_like())"});
}

}  // namespace hybridnet
