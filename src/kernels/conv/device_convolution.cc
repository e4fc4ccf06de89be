#include "kernels/conv/device_convolution.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/conv/library_convolution.h"
#include "kernels/device/convolution_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/reduce/reduce.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::ConvArguments;

// Fewer rows than this leave tiles of 64 rows almost empty.
constexpr int64_t kFewRows = 4;

device::Program& program(DType dtype, bool wide) {
  static ProgramTable<4> programs;
  const bool is_double = dtype == DType::kFloat64;
  return programs.get((is_double ? 2 : 0) + (wide ? 1 : 0), [&] {
    const std::string type = element_name(dtype), types = "<" + type + (wide ? ", uint64_t" : ", uint32_t");
    const std::string arguments = "ConvArguments";
    std::string text = include_line("convolution.cuh");
    for (const std::string form : {"kForward", "kDataGradient", "kWeights"}) {
      const std::string of_form = types + ", hybridnet::device::ConvForm::" + form + ">";
      text +=
          block_kernel_line("tiles_" + form, arguments, "convolve" + of_form, type, "hybridnet::device::kProductRoom");
      if (form != "kWeights") text += kernel_line("direct_" + form, arguments, "convolve_direct" + of_form);
    }
    return text +
           block_kernel_line("direct_kWeights", arguments, "convolve_weights_direct" + types + ">", type, "256") +
           kernel_line("join", "JoinArguments", "join_conv_parts<" + type + ">");
  });
}

// The strides of images of `channels` channels.
struct Strides {
  int64_t n, c, inner;
  Strides(int64_t channels, int64_t plane, bool channels_last)
      : n(channels * plane), c(channels_last ? 1 : plane), inner(channels_last ? channels : 1) {}
};

struct Sizes {
  explicit Sizes(const ConvGeometry& g)
      : x(g.c, g.in_size(), g.channels_last),
        y(g.o, g.out_size(), g.channels_last),
        taps(g.kernel_size()),
        group_in(g.c / g.groups),
        group_out(g.o / g.groups) {}
  Strides x, y;
  int64_t taps, group_in, group_out;
};

ConvArguments arguments_of(const ConvGeometry& g) {
  ConvArguments a{};
  a.groups = g.groups;
  a.taps = g.kernel_size();
  a.splits = 1;
  std::copy_n(g.kernel.data(), 3, a.kernel);
  std::copy_n(g.stride.data(), 3, a.stride);
  std::copy_n(g.dilate.data(), 3, a.dilate);
  std::copy_n(g.pad.data(), 3, a.pad);
  return a;
}

void set_image(ConvArguments* a, const void* image, const Strides& s, int64_t channels,
               const std::array<int64_t, 3>& of, const std::array<int64_t, 3>& points) {
  a->image = image;
  a->image_n = s.n, a->image_c = s.c, a->image_inner = s.inner;
  a->channels = channels;
  std::copy_n(of.data(), 3, a->source);
  std::copy_n(points.data(), 3, a->points);
  a->point_count = points[0] * points[1] * points[2];
}

void set_out(ConvArguments* a, void* out, const Strides& s) {
  a->out = out;
  a->out_n = s.n, a->out_c = s.c, a->out_inner = s.inner;
}

bool is_wide(const ConvArguments& a) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  int64_t most = std::max({a.columns, a.depth, a.point_count});
  for (int i = 0; i < 3; ++i) most = std::max({most, a.points[i] + a.pad[i], a.stride[i], a.source[i]});
  return most > kMax;
}

constexpr int64_t kTile = 64, kUnit = 16, kThreads = 256;  // the sizes of convolution.cuh

int64_t parts(int64_t size, int64_t part) { return (size + part - 1) / part; }

// The length of the parts of a depth with few tiles, so that there is work for all processors; by shape alone.
int64_t part_of_depth(int64_t depth, int64_t tiles) {
  constexpr int64_t kBlocks = 512, kLeastDepth = 512;
  const int64_t splits = std::clamp<int64_t>(kBlocks / std::max<int64_t>(tiles, 1), 1, depth / kLeastDepth + 1);
  return parts(parts(depth, splits), kUnit) * kUnit;
}

void split_depth(ConvArguments* a) {
  a->split_depth = part_of_depth(a->depth, a->groups * a->tiles_down * a->tiles_across);
  a->splits = std::max<int64_t>(1, parts(a->depth, std::max<int64_t>(a->split_depth, 1)));
}

void set_product(ConvArguments* a, const ConvProduct& product) {
  a->rows = product.rows, a->columns = product.columns, a->depth = product.depth;
}

void set_tiles(ConvArguments* a) {
  a->tiles_down = parts(a->rows, kTile);
  a->tiles_across = parts(a->columns, kTile);
  a->split_depth = a->depth;
}

// A product whose columns are points.
void run_points(ConvArguments a, DType dtype, const std::string& form) {
  set_tiles(&a);
  device::Program& p = program(dtype, is_wide(a));
  const int64_t outputs = a.groups * a.rows * a.columns;
  if (outputs == 0) return;
  if (a.rows <= kFewRows) return p.launch(("direct_" + form).c_str(), device::geometry_for(outputs), a);
  p.launch(("tiles_" + form).c_str(), device::geometry_for_rows(a.groups * a.tiles_down * a.tiles_across, 256), a);
}

void run_weights(ConvArguments a, DType dtype) {
  set_tiles(&a);
  device::Program& p = program(dtype, is_wide(a));
  const int64_t weights = a.groups * a.rows * a.columns;
  if (weights == 0) return;
  if (a.rows <= kFewRows && a.channels <= kFewRows)
    return p.launch("direct_kWeights", device::geometry_for_rows(weights, 256), a);
  split_depth(&a);
  void* const out = a.out;
  std::optional<OwnedBlock> parts;
  if (a.splits > 1) {
    parts.emplace(a.splits * weights * dtype_size(dtype), device::current()->device());
    a.out = parts->data();
  }
  p.launch("tiles_kWeights", device::geometry_for_rows(a.splits * a.groups * a.tiles_down * a.tiles_across, 256), a);
  if (!parts) return;
  const device::JoinArguments join{.parts = parts->data(), .out = out, .n = weights, .splits = a.splits};
  p.launch("join", device::geometry_for(weights), join);
}

}  // namespace

ConvProduct ConvProduct::forward(const ConvGeometry& g) {
  return {g.o / g.groups, g.n * g.out_size(), g.c / g.groups * g.kernel_size()};
}
ConvProduct ConvProduct::data_gradient(const ConvGeometry& g) {
  return {g.c / g.groups, g.n * g.in_size(), g.o / g.groups * g.kernel_size()};
}
ConvProduct ConvProduct::weight_gradient(const ConvGeometry& g) {
  return {g.o / g.groups, g.c / g.groups * g.kernel_size(), g.n * g.out_size()};
}

int64_t own_steps(const ConvGeometry& g, const ConvProduct& p, bool of_weights) {
  constexpr int64_t kBlocksAtOnce = 128;  // the number of device_product.cc
  const auto steps = [](int64_t blocks, int64_t depth) { return parts(blocks, kBlocksAtOnce) * parts(depth, kUnit); };
  const int64_t outputs = g.groups * p.rows * p.columns,
                tiles = g.groups * parts(p.rows, kTile) * parts(p.columns, kTile);
  if (of_weights) {
    if (p.rows <= kFewRows && g.c / g.groups <= kFewRows) return steps(outputs, parts(p.depth, kThreads));
    const int64_t part = std::max<int64_t>(part_of_depth(p.depth, tiles), 1);
    return steps(tiles * parts(p.depth, part), part);
  }
  return p.rows <= kFewRows ? steps(parts(outputs, kThreads), p.depth) : steps(tiles, p.depth);
}

void convolve(const ConvGeometry& g, DType dtype, const void* x, const void* w, const void* bias, const void* addend,
              void* y) {
  if (convolve_by_library(g, dtype, x, w, bias, addend, y)) return;
  const Sizes s(g);
  ConvArguments a = arguments_of(g);
  set_image(&a, x, s.x, s.group_in, g.in, g.out);
  set_out(&a, y, s.y);
  a.factor = w, a.bias = bias, a.addend = addend;
  set_product(&a, ConvProduct::forward(g));
  a.taps_first = g.weights_last;
  a.factor_group = s.group_out * a.depth, a.factor_row = a.depth;
  a.factor_outer = 0, a.factor_inner = 1, a.factor_inner_size = std::max<int64_t>(a.depth, 1);
  run_points(a, dtype, "kForward");
}

void convolve_data_gradient(const ConvGeometry& g, DType dtype, const void* dy, const void* w, const void* bias,
                            void* dx) {
  if (convolve_data_gradient_by_library(g, dtype, dy, w, bias, dx)) return;
  const Sizes s(g);
  ConvArguments a = arguments_of(g);
  set_image(&a, dy, s.y, s.group_out, g.out, g.in);
  set_out(&a, dx, s.x);
  a.factor = w, a.bias = bias;
  set_product(&a, ConvProduct::data_gradient(g));
  const int64_t filter = s.group_in * s.taps;
  a.factor_group = s.group_out * filter, a.factor_row = g.weights_last ? 1 : s.taps;
  a.factor_outer = filter, a.factor_inner = g.weights_last ? s.group_in : 1, a.factor_inner_size = s.taps;
  run_points(a, dtype, "kDataGradient");
}

void convolve_weight_gradient(const ConvGeometry& g, DType dtype, const void* x, const void* dy, void* dw, void* db) {
  if (convolve_weight_gradient_by_library(g, dtype, x, dy, dw, db)) return;
  const Sizes s(g);
  ConvArguments a = arguments_of(g);
  set_image(&a, x, s.x, s.group_in, g.in, g.out);
  a.out = dw, a.factor = dy;
  set_product(&a, ConvProduct::weight_gradient(g));
  a.taps_first = g.weights_last;
  a.factor_group = s.group_out * s.y.c, a.factor_row = s.y.c;
  a.factor_outer = s.y.n, a.factor_inner = s.y.inner, a.factor_inner_size = std::max<int64_t>(g.out_size(), 1);
  run_weights(a, dtype);
  if (db) sum_bias_gradient(g, dtype, dy, db);
}

void sum_bias_gradient(const ConvGeometry& g, DType dtype, const void* dy, void* db) {
  const Shape plane = g.channels_last ? Shape{g.n, g.out_size(), g.o} : Shape{g.n, g.o, g.out_size()};
  reduce(Reduction::kSum, Finish::kNone, dtype, dy, plane, g.channels_last ? 0b011 : 0b101, dtype, db);
}

}  // namespace hybridnet::kernels::on_device
