#include "ops/shape/reshape_codes.h"

#include <algorithm>

#include "base/checked_size.h"
#include "kernels/memory/strided_copy.h"

namespace hybridnet::ops {
namespace {

// Reads codes and source sizes from one end and writes target sizes.
class CodeReader {
 public:
  CodeReader(const Shape& from, const Tuple& target, bool reverse) : from_(from), target_(target), reverse_(reverse) {}

  Shape read() {
    const int n = target_.ndim();
    for (int i = 0; i < n; ++i) {
      const int64_t code = at(i);
      if (code == -4) {
        if (i + 2 >= n)
          bad_code(code, reverse_ ? "to have two sizes before it, as codes are read from the right"
                                  : "to have two sizes after it");
        split(at(i + 1), at(i + 2), code);
        i += 2;
      } else {
        one(code);
      }
    }
    if (inferred_ >= 0) infer_rest();
    if (reverse_) std::reverse(out_.data(), out_.data() + out_.ndim());
    return out_;
  }

 private:
  int64_t at(int i) const { return target_[reverse_ ? target_.ndim() - 1 - i : i]; }

  int64_t take(int64_t code) {
    if (next_ >= from_.ndim()) bad_code(code, "to have a size of the data to apply to");
    const int axis = reverse_ ? from_.ndim() - 1 - next_ : next_;
    ++next_;
    return from_[axis];
  }

  void one(int64_t code) {
    switch (code) {
      case 0:
        out_.push_back(take(code));
        break;
      case -1:
        if (inferred_ >= 0) bad_code(code, "to stand at most once");
        inferred_ = out_.ndim();
        out_.push_back(1);
        ++next_;
        break;
      case -2:
        while (next_ < from_.ndim()) out_.push_back(take(code));
        break;
      case -3: {
        const int64_t a = take(code), b = take(code);
        out_.push_back(a < 0 || b < 0 ? kUnknownDim : checked_times(a, b, "shape"));
        break;
      }
      default:
        if (code < 0) bad_code(code, "to be one of -4, -3, -2, -1, 0 or a positive size");
        out_.push_back(code);
        ++next_;
    }
  }

  // Splits a source size into left x right, in the order of reading.
  void split(int64_t left, int64_t right, int64_t code) {
    const int64_t whole = take(code);
    if (left == -1 && right == -1) bad_code(-4, "to have at most one -1 after it");
    if ((left < 1 && left != -1) || (right < 1 && right != -1))
      bad_code(-4, "to have two sizes after it, positive or -1");
    if (whole < 0) {
      left = left == -1 ? kUnknownDim : left;
      right = right == -1 ? kUnknownDim : right;
    } else {
      if (left == -1) left = whole / right;
      if (right == -1) right = whole / left;
      if (checked_times(left, right, "shape") != whole) {
        throw ShapeError({.input = "shape",
                          .expected = "two sizes after -4 that multiply to " + std::to_string(whole),
                          .given = std::to_string(left) + " and " + std::to_string(right)});
      }
    }
    out_.push_back(left);
    out_.push_back(right);
  }

  void infer_rest() {
    int64_t others = 1;
    bool known = from_.known();
    for (int i = 0; i < out_.ndim(); ++i) {
      if (i == inferred_) continue;
      if (out_[i] < 0)
        known = false;
      else
        others = checked_times(others, out_[i], "shape");
    }
    if (!known) {
      out_[inferred_] = kUnknownDim;
      return;
    }
    const int64_t size = from_.size();
    if (others == 0) {
      if (size != 0) mismatch(size);
      out_[inferred_] = 0;
      return;
    }
    if (size % others != 0) mismatch(size);
    out_[inferred_] = size / others;
  }

  [[noreturn]] void bad_code(int64_t code, const char* expected) const {
    throw ParamError({.input = "shape",
                      .expected = "code " + std::to_string(code) + " " + expected,
                      .given = "shape=" + target_.str(),
                      .because = "data has shape " + from_.str()});
  }
  [[noreturn]] void mismatch(int64_t size) const {
    throw ShapeError({.input = "shape",
                      .expected = "sizes that divide the " + std::to_string(size) + " elements of the data",
                      .given = "shape=" + target_.str(),
                      .because = "data has shape " + from_.str()});
  }

  const Shape& from_;
  const Tuple& target_;
  const bool reverse_;
  Shape out_ = Shape::scalar();
  int next_ = 0;
  int inferred_ = -1;
};

}  // namespace

Shape apply_reshape_codes(const Shape& from, const Tuple& target, bool reverse) {
  const Shape out = CodeReader(from, target, reverse).read();
  if (from.known() && out.known() && from.size() != out.size()) {
    throw ShapeError({.input = "shape",
                      .expected = "as many elements as the data has, " + std::to_string(from.size()),
                      .given = out.str() + ", which has " + std::to_string(out.size()),
                      .because = "data has shape " + from.str() + " and shape=" + target.str(),
                      .fix = "use -1 for one size to have it computed"});
  }
  return out;
}

void copy_first_input(const KernelArgs& args) {
  kernels::copy_bytes(args.in[0].data, args.out[0].data, args.out[0].size() * dtype_size(args.out[0].dtype));
}

}  // namespace hybridnet::ops
