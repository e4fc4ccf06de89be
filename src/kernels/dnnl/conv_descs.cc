#include "kernels/dnnl/conv_descs.h"

#include <algorithm>

namespace hybridnet::onednn {
namespace {

using dnnl::memory;
using kernels::ConvGeometry;
using Dims = memory::dims;

Dims spatial(const ConvGeometry& g, const std::array<int64_t, 3>& values) {
  return Dims(values.end() - g.spatial, values.end());
}

// The dense strides of `dims` if the axes are in `order` in memory, outermost first.
Dims strides_in_order(const Dims& dims, const std::vector<size_t>& order) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= std::max<int64_t>(dims[order[i]], 1);
  }
  return strides;
}

Desc plain_desc(const Dims& dims, memory::data_type type) {
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  return Desc(dims, type, strides_in_order(dims, order));
}

// The layout (leading axes, channels, spatial...) with the channels moved to the end.
Desc last_desc(const Dims& dims, memory::data_type type, size_t channel_axis) {
  std::vector<size_t> order;
  for (size_t i = 0; i < dims.size(); ++i)
    if (i != channel_axis) order.push_back(i);
  order.push_back(channel_axis);
  return Desc(dims, type, strides_in_order(dims, order));
}

}  // namespace

ConvDescs::ConvDescs(const ConvGeometry& g, Type x_type, Type w_type, Type bias_type, Type y_type) {
  Dims xd{g.n, g.c}, yd{g.n, g.o};
  Dims wd = g.groups > 1 ? Dims{g.groups, g.o / g.groups, g.c / g.groups} : Dims{g.o, g.c};
  for (int64_t v : spatial(g, g.in)) xd.push_back(v);
  for (int64_t v : spatial(g, g.out)) yd.push_back(v);
  for (int64_t v : spatial(g, g.kernel)) wd.push_back(v);
  x = g.channels_last ? last_desc(xd, x_type, 1) : plain_desc(xd, x_type);
  y = g.channels_last ? last_desc(yd, y_type, 1) : plain_desc(yd, y_type);
  w = g.weights_last ? last_desc(wd, w_type, g.groups > 1 ? 2 : 1) : plain_desc(wd, w_type);
  bias_x = plain_desc({g.c}, bias_type);
  bias_y = plain_desc({g.o}, bias_type);
  // Plain images are slow to convolve directly: copies into a blocked layout and back cost less.
  x_any = g.channels_last ? x : Desc(xd, x_type, memory::format_tag::any);
  y_any = g.channels_last ? y : Desc(yd, y_type, memory::format_tag::any);
  w_any = Desc(wd, w_type, memory::format_tag::any);
  stride = spatial(g, g.stride);
  for (int64_t v : spatial(g, g.dilate)) dilate.push_back(v - 1);
  pad_left = spatial(g, g.pad);
  for (int i = 3 - g.spatial; i < 3; ++i) {
    const size_t k = static_cast<size_t>(i);
    const int64_t reach = (g.out[k] - 1) * g.stride[k] + (g.kernel[k] - 1) * g.dilate[k] + 1;
    pad_right.push_back(reach - g.in[k] - g.pad[k]);  // negative: the end of the input, which no tap reads
  }
}

}  // namespace hybridnet::onednn
