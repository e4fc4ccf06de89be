#include "kernels/image/resample.h"

#include <algorithm>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/image/device_sampling.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {

AxisMap AxisMap::transposed() const {
  AxisMap t;
  t.from = to;
  t.to = from;
  std::vector<int64_t> counts(static_cast<size_t>(from) + 1, 0);
  for (int64_t i : index) ++counts[static_cast<size_t>(i) + 1];
  for (size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
  t.begin = counts;
  t.index.resize(index.size());
  t.weight.resize(index.size());
  for (int64_t k = 0; k < to; ++k) {
    for (int64_t e = begin[static_cast<size_t>(k)]; e < begin[static_cast<size_t>(k) + 1]; ++e) {
      const auto at = static_cast<size_t>(counts[static_cast<size_t>(index[static_cast<size_t>(e)])]++);
      t.index[at] = k;
      t.weight[at] = weight[static_cast<size_t>(e)];
    }
  }
  return t;
}

AxisMap AxisMap::nearest(int64_t from, int64_t to) {
  AxisMap map;
  map.from = from;
  map.to = to;
  for (int64_t k = 0; k < to; ++k) {
    map.add(k * from / to, 1);
    map.finish_element();
  }
  return map;
}

AxisMap AxisMap::bilinear(int64_t from, int64_t to, bool align_corners) {
  AxisMap map;
  map.from = from;
  map.to = to;
  double step = 0;
  if (to > 1 && align_corners)
    step = static_cast<double>(from - 1) / static_cast<double>(to - 1);
  else if (to > 1)
    step = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t k = 0; k < to; ++k) {
    const double x = static_cast<double>(k);
    const double at = align_corners ? step * x : std::max(step * (x + 0.5) - 0.5, 0.0);
    const int64_t low = std::min(static_cast<int64_t>(at), from - 1), high = std::min(low + 1, from - 1);
    const double part = from == to ? 0 : at - static_cast<double>(low);
    map.add(from == to ? k : low, 1 - part);
    map.add(from == to ? k : high, part);
    map.finish_element();
  }
  return map;
}

AxisMap AxisMap::average(int64_t from, int64_t to) {
  AxisMap map;
  map.from = from;
  map.to = to;
  for (int64_t k = 0; k < to; ++k) {
    const int64_t first = k * from / to, last = ((k + 1) * from + to - 1) / to;
    for (int64_t i = first; i < last; ++i) map.add(i, 1.0 / static_cast<double>(last - first));
    map.finish_element();
  }
  return map;
}

namespace {

// The weights in the image's type. There are fast loops for maps whose elements all have one tap, or all two.
template <typename T>
struct Taps {
  explicit Taps(const AxisMap& map) : begin(map.begin), index(map.index), weight(map.weight.begin(), map.weight.end()) {
    const size_t elements = begin.size() - 1;
    for (size_t count : {1, 2}) {
      bool all = index.size() == count * elements;
      for (size_t k = 0; all && k < elements; ++k) all = begin[k + 1] - begin[k] == static_cast<int64_t>(count);
      if (all) uniform = static_cast<int>(count);
    }
  }
  const std::vector<int64_t>&begin, &index;
  Temporary<T> weight;
  int uniform = 0;
};

// Returns the weighted sum of rows for element k of the rows' map: a row of the plane if it equals one, else `buffer`.
template <typename T>
const T* combine_rows(const Taps<T>& taps, int64_t k, const T* plane, int64_t width, T* buffer) {
  const int64_t first = taps.begin[static_cast<size_t>(k)], last = taps.begin[static_cast<size_t>(k) + 1];
  if (last - first == 1 && taps.weight[static_cast<size_t>(first)] == T(1)) {
    return plane + taps.index[static_cast<size_t>(first)] * width;
  }
  std::fill_n(buffer, width, T(0));
  for (int64_t e = first; e < last; ++e) {
    const T* row = plane + taps.index[static_cast<size_t>(e)] * width;
    const T weight = taps.weight[static_cast<size_t>(e)];
    for (int64_t x = 0; x < width; ++x) buffer[x] += weight * row[x];
  }
  return buffer;
}

template <typename T, typename Store>
void combine_columns(const Taps<T>& taps, const T* row, int64_t width, const Store& store) {
  const int64_t* index = taps.index.data();
  const T* weight = taps.weight.data();
  if (taps.uniform == 1) {
    for (int64_t x = 0; x < width; ++x) store(x, weight[x] * row[index[x]]);
  } else if (taps.uniform == 2) {
    for (int64_t x = 0; x < width; ++x)
      store(x, weight[2 * x] * row[index[2 * x]] + weight[2 * x + 1] * row[index[2 * x + 1]]);
  } else {
    for (int64_t x = 0; x < width; ++x) {
      T sum = 0;
      for (int64_t e = taps.begin[static_cast<size_t>(x)]; e < taps.begin[static_cast<size_t>(x) + 1]; ++e)
        sum += weight[e] * row[index[e]];
      store(x, sum);
    }
  }
}

}  // namespace

template <typename T>
void resample(const AxisMap& rows, const AxisMap& columns, int64_t planes, const T* in, T* out, bool accumulate) {
  if (device::current()) return on_device::resample(rows, columns, planes, in, out, accumulate);
  const Taps<T> down(rows), across(columns);
  const int64_t work = 1 + columns.from + columns.to;
  parallel_for(planes * rows.to, 1.2 * static_cast<double>(work), [&](int64_t begin, int64_t end) {
    Temporary<T> buffer(static_cast<size_t>(columns.from));
    for (int64_t i = begin; i < end; ++i) {
      const T* plane = in + i / rows.to * rows.from * columns.from;
      const T* row = combine_rows(down, i % rows.to, plane, columns.from, buffer.data());
      T* to = out + i * columns.to;
      if (accumulate)
        combine_columns(across, row, columns.to, [to](int64_t x, T v) { to[x] += v; });
      else
        combine_columns(across, row, columns.to, [to](int64_t x, T v) { to[x] = v; });
    }
  });
}

template void resample(const AxisMap&, const AxisMap&, int64_t, const float*, float*, bool);
template void resample(const AxisMap&, const AxisMap&, int64_t, const double*, double*, bool);

}  // namespace hybridnet::kernels
