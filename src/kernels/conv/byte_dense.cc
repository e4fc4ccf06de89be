#include "kernels/conv/byte_dense.h"

#include "kernels/conv/int8_ends.h"
#include "kernels/isa.h"
#include "kernels/product/byte_product.h"

namespace hybridnet::kernels {
namespace {

class ByteDense final : public Int8Convolution {
 public:
  ByteDense(const ConvGeometry& g, const Int8ConvOptions& options)
      : rows_(g.n * g.out_size()), depth_(g.c), columns_(g.o), options_(options) {}

  int64_t packed_bytes() const override { return packed_byte_weights(depth_, columns_); }
  std::string packing() const override { return byte_packing(depth_, columns_); }
  std::string description() const override { return has_avx512_vnni() ? "byte product:vnni" : "byte product:pairs"; }
  int64_t workspace_bytes() const override { return byte_product_workspace(depth_, rows_); }

  void pack(const int8_t* plain, void* packed) const override { pack_byte_weights(plain, depth_, columns_, packed); }
  std::vector<Unpacking> unpack() const override { return byte_unpacking(depth_, columns_); }

  void run(const Int8ConvTensors& t) const override {
    const Ends ends(options_, t, columns_);
    byte_product({.packed = t.weights,
                  .depth = depth_,
                  .columns = columns_,
                  .rows = t.x,
                  .is_signed = options_.data == DType::kInt8,
                  .count = rows_,
                  .workspace = t.workspace,
                  .ends = &ends});
  }

 private:
  class Ends final : public ByteProductEnds {
   public:
    Ends(const Int8ConvOptions& options, const Int8ConvTensors& t, int64_t columns)
        : options_(options), t_(t), columns_(columns) {}
    void end(const GemmTile& tile, const int32_t* sums, int64_t stride) const override {
      float values[kByteTileColumns];
      for (int64_t r = 0; r < tile.rows; ++r) {
        const int64_t offset = (tile.row + r) * columns_ + tile.column;
        finish_sums(options_, t_, {.channel = tile.column, .count = tile.columns, .offset = offset, .step = 1},
                    sums + r * stride, values);
      }
    }

   private:
    const Int8ConvOptions& options_;
    const Int8ConvTensors& t_;
    int64_t columns_;
  };

  int64_t rows_, depth_, columns_;
  Int8ConvOptions options_;
};

// AVX-VNNI without AVX-512 has no kernel here, and AMX multiplies many rows faster than VNNI.
constexpr int64_t kFewRows = 64;

}  // namespace

bool is_dense(const ConvGeometry& g) {
  const bool strided = g.stride[0] * g.stride[1] * g.stride[2] != 1 || g.pad[0] + g.pad[1] + g.pad[2] != 0;
  return !g.empty() && g.groups == 1 && g.kernel_size() == 1 && !strided && g.in == g.out &&
         (g.channels_last || g.in_size() == 1);
}

bool byte_dense_pays(const ConvGeometry& g) {
  if (!is_dense(g)) return false;
  return has_avx512_vnni() && g.n * g.out_size() <= kFewRows;
}

std::unique_ptr<Int8Convolution> make_byte_dense(const ConvGeometry& g, const Int8ConvOptions& options) {
  return std::make_unique<ByteDense>(g, options);
}

}  // namespace hybridnet::kernels
