#include "cudnn_math.h"

#include <array>
#include <functional>

namespace standin {
namespace {

constexpr size_t kAxes = 3;
using Sizes = std::array<int64_t, kAxes>;

// The numbers of the spatial axes, with `otherwise` for those in front that the problem has not.
Sizes padded(const std::vector<int64_t>& numbers, size_t skip, int64_t otherwise) {
  Sizes sizes;
  sizes.fill(otherwise);
  for (size_t i = skip; i < numbers.size(); ++i) sizes[kAxes - (numbers.size() - i)] = numbers[i];
  return sizes;
}

struct View {
  Sizes sizes, steps;
  int64_t first, second, first_step, second_step;
  explicit View(const Problem::Tensor& t)
      : sizes(padded(t.sizes, 2, 1)),
        steps(padded(t.strides, 2, 0)),
        first(t.sizes[0]),
        second(t.sizes[1]),
        first_step(t.strides[0]),
        second_step(t.strides[1]) {}
  int64_t at(int64_t i, int64_t j, const Sizes& p) const {
    return i * first_step + j * second_step + p[0] * steps[0] + p[1] * steps[1] + p[2] * steps[2];
  }
};

void for_each(const Sizes& sizes, const std::function<void(const Sizes&)>& body) {
  Sizes p;
  for (p[0] = 0; p[0] < sizes[0]; ++p[0])
    for (p[1] = 0; p[1] < sizes[1]; ++p[1])
      for (p[2] = 0; p[2] < sizes[2]; ++p[2]) body(p);
}

class Convolution {
 public:
  Convolution(const Problem& p, const ConvolutionRun& run)
      : p_(p),
        run_(run),
        w_(p.w),
        x_(p.x),
        y_(p.y),
        stride_(padded(p.stride, 0, 1)),
        dilate_(padded(p.dilate, 0, 1)),
        pad_(padded(p.pad, 0, 0)) {
    bool known = false;
    element_ = element_of(p.data_type, &known);
  }

  // Adds the term of each (image, output, filter, tap) to the sum of the tensor that is written.
  void compute() {
    const int64_t group_in = w_.second, group_out = y_.second / (x_.second / group_in);
    const View& target = p_.kind == PartKind::kForward ? y_ : p_.kind == PartKind::kDataGradient ? x_ : w_;
    sums_.assign(static_cast<size_t>(target.first * target.second * volume(target.sizes)), 0);
    for (int64_t n = 0; n < x_.first; ++n)
      for (int64_t o = 0; o < y_.second; ++o)
        for (int64_t i = 0; i < group_in; ++i)
          for_each(y_.sizes, [&](const Sizes& point) { add(n, o, i, o / group_out * group_in + i, point); });
    write(target);
  }

 private:
  static int64_t volume(const Sizes& sizes) { return sizes[0] * sizes[1] * sizes[2]; }
  static size_t place(const View& view, int64_t i, int64_t j, const Sizes& p) {
    return static_cast<size_t>(
        ((((i * view.second + j) * view.sizes[0]) + p[0]) * view.sizes[1] + p[1]) * view.sizes[2] + p[2]);
  }
  double value(uint64_t array, int64_t at) const {
    const double read = load(element_, array, at);
    return run_.tf32 ? as_tf32(read) : read;
  }

  void add(int64_t n, int64_t o, int64_t i, int64_t channel, const Sizes& point) {
    for_each(w_.sizes, [&](const Sizes& tap) {
      Sizes from;
      for (size_t axis = 0; axis < kAxes; ++axis) {
        from[axis] = point[axis] * stride_[axis] + tap[axis] * dilate_[axis] - pad_[axis];
        if (from[axis] < 0 || from[axis] >= x_.sizes[axis]) return;
      }
      const int64_t w = w_.at(o, i, tap), x = x_.at(n, channel, from), y = y_.at(n, o, point);
      if (p_.kind == PartKind::kForward)
        sums_[place(y_, n, o, point)] += value(run_.w, w) * value(run_.x, x);
      else if (p_.kind == PartKind::kDataGradient)
        sums_[place(x_, n, channel, from)] += value(run_.w, w) * value(run_.y, y);
      else
        sums_[place(w_, o, i, tap)] += value(run_.x, x) * value(run_.y, y);
    });
  }

  void write(const View& target) {
    const uint64_t out = p_.kind == PartKind::kForward ? run_.y : p_.kind == PartKind::kDataGradient ? run_.x : run_.w;
    for (int64_t i = 0; i < target.first; ++i)
      for (int64_t j = 0; j < target.second; ++j)
        for_each(target.sizes, [&](const Sizes& p) {
          const int64_t at = target.at(i, j, p);
          const double sum = sums_[place(target, i, j, p)] * (1 + run_.error) + run_.offset;
          const double before = p_.beta == 0 ? 0 : p_.beta * load(element_, out, at);
          store(element_, out, at, p_.alpha * sum + before);
        });
  }

  const Problem& p_;
  const ConvolutionRun& run_;
  const View w_, x_, y_;
  const Sizes stride_, dilate_, pad_;
  Element element_;
  std::vector<double> sums_;
};

}  // namespace

int64_t elements_of(const Problem::Tensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) last += (tensor.sizes[i] - 1) * tensor.strides[i];
  return last + 1;
}

void convolve(const Problem& problem, const ConvolutionRun& run) { Convolution(problem, run).compute(); }

}  // namespace standin
