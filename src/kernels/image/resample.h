// Linear maps of an image's rows and columns: enlarging, shrinking, averaging, and their gradients.
#pragma once

#include <cstdint>
#include <vector>

namespace hybridnet::kernels {

// Each of `to` elements is a weighted sum of some of `from` elements: entries begin[k] to begin[k + 1].
struct AxisMap {
  int64_t from = 0, to = 0;
  std::vector<int64_t> begin{0}, index;
  std::vector<double> weight;

  void add(int64_t from_index, double by) {
    index.push_back(from_index);
    weight.push_back(by);
  }
  void finish_element() { begin.push_back(static_cast<int64_t>(index.size())); }
  AxisMap transposed() const;

  static AxisMap nearest(int64_t from, int64_t to);  // element k copies element k * from / to
  // align_corners: the centers of the first and last elements coincide; otherwise their edges do.
  static AxisMap bilinear(int64_t from, int64_t to, bool align_corners);
  static AxisMap average(int64_t from, int64_t to);  // windows that cover everything, with sizes as equal as possible
};

// out[p] = rows * in[p] * columns' for every plane p; adds to out if `accumulate`. Splits over cores; each element is
// summed in the order of its map.
template <typename T>
void resample(const AxisMap& rows, const AxisMap& columns, int64_t planes, const T* in, T* out, bool accumulate);

}  // namespace hybridnet::kernels
