#include "kernels/conv/int8_convolution.h"

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/conv/byte_dense.h"
#include "kernels/conv/conv_reference.h"
#include "kernels/conv/int8_ends.h"
#include "kernels/dnnl/int8_convolution.h"
#include "kernels/elementwise/integer_rows.h"
#include "kernels/memory/range_workspaces.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/memory/workspace_parts.h"

namespace hybridnet::kernels {
namespace {

// Gathers the inputs of a tile of output positions as rows of 16-bit integers, multiplies, and finishes the sums while
// they are in the cache.
class IntegerConvolution final : public Int8Convolution {
 public:
  IntegerConvolution(const ConvGeometry& g, const Int8ConvOptions& options)
      : g_(g),
        options_(options),
        depth_(g.c / g.groups * g.kernel_size()),
        outputs_(g.o / g.groups),
        row_(2 * integer_pairs(depth_)),
        tile_(std::clamp<int64_t>(kTileBytes / std::max<int64_t>(row_ * sizeof(int16_t), 1), 8, 64)),
        tiles_((g.n * g.out_size() + tile_ - 1) / tile_),
        rooms_(RangeWorkspaces::count_for(tiles_)) {}

  int64_t packed_bytes() const override {
    const int64_t values = by_channel()
                               ? g_.c * g_.kernel_size()
                               : g_.groups * integer_blocks(outputs_) * integer_pairs(depth_) * 2 * kIntegerBlock;
    return std::max<int64_t>(values, 1) * static_cast<int64_t>(sizeof(int16_t));
  }
  std::string packing() const override {
    return "int16 pairs " + std::to_string(g_.groups) + " " + std::to_string(outputs_) + " " +
           std::to_string(g_.c / std::max<int64_t>(g_.groups, 1)) + " " + std::to_string(g_.kernel_size()) +
           (g_.weights_last ? " last" : "");
  }
  std::string description() const override { return by_channel() ? "integer:by_channel" : "integer:rows"; }

  int64_t workspace_bytes() const override { return image_bytes() + rooms_ * room_in(nullptr).bytes; }

  void pack(const int8_t* plain, void* packed) const override {
    auto* to = static_cast<int16_t*>(packed);
    std::fill_n(to, packed_bytes() / static_cast<int64_t>(sizeof(int16_t)), int16_t{0});
    const int64_t channels = g_.c / g_.groups, taps = g_.kernel_size();
    const int64_t pairs = integer_pairs(depth_), blocks = integer_blocks(outputs_);
    for (int64_t o = 0; o < g_.o; ++o) {
      const int64_t group = o / outputs_, j = o % outputs_;
      for (int64_t i = 0; i < channels; ++i) {
        for (int64_t q = 0; q < taps; ++q) {
          const int8_t value = plain[g_.weights_last ? (o * taps + q) * channels + i : (o * channels + i) * taps + q];
          const int64_t k = q * channels + i;
          if (by_channel()) {
            to[q * g_.o + o] = value;
          } else {
            to[(((group * blocks + j / kIntegerBlock) * pairs + k / 2) * kIntegerBlock + j % kIntegerBlock) * 2 +
               k % 2] = value;
          }
        }
      }
    }
  }

  void run(const Int8ConvTensors& t) const override {
    options_.data == DType::kUInt8 ? run_data<uint8_t>(t) : run_data<int8_t>(t);
  }

 private:
  static constexpr int64_t kTileBytes = 128 << 10;

  bool by_channel() const { return g_.groups == g_.c && g_.groups == g_.o && g_.groups > 1; }

  // The workspace: the images with their channels last, unless they already are, and room for one tile per core.
  struct Room {
    int16_t* rows;
    int32_t* sums;
    float* values;  // one output position's
    int64_t bytes;
  };
  int64_t image_bytes() const { return g_.channels_last ? 0 : (g_.n * g_.c * g_.in_size() + 63) / 64 * 64; }
  Room room_in(void* memory) const {
    WorkspaceParts parts(memory);
    auto* rows = parts.take<int16_t>(by_channel() ? 0 : tile_ * row_);
    auto* sums = parts.take<int32_t>(tile_ * g_.o);
    auto* values = parts.take<float>(g_.o);
    return {rows, sums, values, parts.bytes()};
  }

  template <typename X>
  void run_data(const Int8ConvTensors& t) const {
    const X* x = static_cast<const X*>(t.x);
    if (!g_.channels_last) {
      StridedCopy copy;
      copy.add_axis(g_.n, g_.c * g_.in_size(), g_.c * g_.in_size());
      copy.add_axis(g_.in_size(), 1, g_.c);
      copy.add_axis(g_.c, g_.in_size(), 1);
      copy.run(x, t.workspace, 1);
      x = static_cast<const X*>(t.workspace);
    }
    const int64_t positions = g_.n * g_.out_size();
    if (positions == 0 || g_.o == 0) return;
    const double tile_ns = g_.flops() / static_cast<double>(tiles_) / 60.0;
    RangeWorkspaces rooms(static_cast<char*>(t.workspace) + image_bytes(), room_in(nullptr).bytes, rooms_);
    parallel_for(tiles_, tile_ns, [&](int64_t begin, int64_t end) {
      const RangeWorkspaces::Use use(rooms);
      const Room room = room_in(use.memory());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * tile_, count = std::min(tile_, positions - first);
        if (by_channel())
          sum_by_channel(x, static_cast<const int16_t*>(t.weights), first, count, room.sums);
        else
          sum_by_rows(x, static_cast<const int16_t*>(t.weights), first, count, room.rows, room.sums);
        for (int64_t r = 0; r < count; ++r) finish(t, first + r, room.sums + r * g_.o, room.values);
      }
    });
  }

  std::array<int64_t, 3> position(int64_t p) const {
    const int64_t in_image = p % g_.out_size();
    return {in_image / (g_.out[1] * g_.out[2]), in_image / g_.out[2] % g_.out[1], in_image % g_.out[2]};
  }
  ConvStrides image_strides() const { return ConvStrides::of(g_.c, g_.in, true); }

  template <typename X>
  void sum_by_rows(const X* x, const int16_t* weights, int64_t first, int64_t count, int16_t* rows,
                   int32_t* sums) const {
    const int64_t channels = g_.c / g_.groups, pairs = integer_pairs(depth_);
    const ConvStrides from = image_strides();
    const ConvStrides taps = ConvStrides::of(channels, g_.kernel, true);
    for (int64_t group = 0; group < g_.groups; ++group) {
      std::fill_n(rows, count * 2 * pairs, int16_t{0});
      for (int64_t r = 0; r < count; ++r) {
        const X* image = x + (first + r) / g_.out_size() * from.n + group * channels;
        int16_t* row = rows + r * 2 * pairs;
        detail::for_each_tap(g_, from, taps, position(first + r),
                             [&](int64_t tap, int64_t offset) { widen_bytes(image + offset, row + tap, channels); });
      }
      multiply_integer_rows(rows, count, pairs, weights + group * integer_blocks(outputs_) * pairs * 2 * kIntegerBlock,
                            outputs_, sums + group * outputs_, g_.o);
    }
  }

  template <typename X>
  void sum_by_channel(const X* x, const int16_t* weights, int64_t first, int64_t count, int32_t* sums) const {
    const ConvStrides from = image_strides();
    const ConvStrides taps = ConvStrides::of(g_.c, g_.kernel, true);
    std::fill_n(sums, count * g_.o, 0);
    for (int64_t r = 0; r < count; ++r) {
      const X* image = x + (first + r) / g_.out_size() * from.n;
      int32_t* sum = sums + r * g_.o;
      detail::for_each_tap(g_, from, taps, position(first + r), [&](int64_t tap, int64_t offset) {
        const X* data = image + offset;
        const int16_t* w = weights + tap;
#pragma omp simd
        for (int64_t i = 0; i < g_.c; ++i) sum[i] += static_cast<int32_t>(data[i]) * w[i];
      });
    }
  }

  // Stores the results of output position p.
  void finish(const Int8ConvTensors& t, int64_t p, const int32_t* sums, float* values) const {
    const ConvStrides to = ConvStrides::of(g_.o, g_.out, g_.channels_last);
    const std::array<int64_t, 3> at = position(p);
    const int64_t offset =
        p / g_.out_size() * to.n + at[0] * to.spatial[0] + at[1] * to.spatial[1] + at[2] * to.spatial[2];
    finish_sums(options_, t, {.channel = 0, .count = g_.o, .offset = offset, .step = to.c}, sums, values);
  }

  ConvGeometry g_;
  Int8ConvOptions options_;
  int64_t depth_, outputs_;
  int64_t row_, tile_, tiles_;  // elements of a gathered row; output positions in a tile; tiles
  int rooms_;
};

}  // namespace

std::unique_ptr<Int8Convolution> make_int8_convolution(const ConvGeometry& g, const Int8ConvOptions& options) {
  if (byte_dense_pays(g)) return make_byte_dense(g, options);
  if (auto made = onednn::make_int8_convolution(g, options)) return made;
  if (is_dense(g)) return make_byte_dense(g, options);
  return std::make_unique<IntegerConvolution>(g, options);
}

}  // namespace hybridnet::kernels
