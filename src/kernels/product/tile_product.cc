#include "kernels/product/tile_product.h"

#include <algorithm>
#include <cstring>

#include "hybridnet/error.h"
#include "hybridnet/threads.h"
#include "kernels/amx_tiles.h"

namespace hybridnet::kernels {
namespace {

// A tile holds 16 rows of 32 bfloat16, or of 16 sums. A tile of weights holds 32 elements of the depth for 16 columns:
// row r has elements 2 r and 2 r + 1 of column 0, then of column 1, and so on. A panel is two tiles wide and as deep as
// the weights.
constexpr int64_t kRows = 16, kDepth = 32, kColumns = 16, kPanel = 2 * kColumns, kTile = kRows * kDepth;

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t steps_of(int64_t depth) { return divided_up(depth, kDepth); }
int64_t panel_size(int64_t depth) { return steps_of(depth) * 2 * kTile; }

// Calls f(element of the plain weights, element of the packed ones) for all weights of a panel.
template <typename F>
void each_weight(int64_t depth, int64_t columns, int64_t panel, const F& f) {
  for (int64_t j = 0; j < std::min(kPanel, columns - panel * kPanel); ++j) {
    const int64_t from = (panel * kPanel + j) * depth;
    const int64_t to = panel * panel_size(depth) + j / kColumns * kTile + j % kColumns * 2;
    for (int64_t k = 0; k < depth; ++k)
      f(from + k, to + k / kDepth * 2 * kTile + k % kDepth / 2 * 2 * kColumns + k % 2);
  }
}

template <typename F>
void each_panel(int64_t depth, int64_t columns, const F& f) {
  parallel_for(divided_up(columns, kPanel), static_cast<double>(kPanel * depth), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) f(panel);
  });
}

bool needs_padding(const TileProduct& p) { return p.depth % kDepth != 0 || p.count % kRows != 0; }

// Returns rows (16 i, 32 j) with zeros behind the given ones.
const bfloat16* padded_rows(const TileProduct& p) {
  auto* const padded = static_cast<bfloat16*>(p.workspace);
  const int64_t depth = steps_of(p.depth) * kDepth;
  parallel_for(divided_up(p.count, kRows) * kRows, 0.1 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t given = i < p.count ? p.depth : 0;
      bfloat16* const to = std::copy_n(p.rows + i * p.depth, given, padded + i * depth);
      std::memset(to, 0, static_cast<size_t>(depth - given) * sizeof(bfloat16));
    }
  });
  return padded;
}

#if defined(__x86_64__)

// The next panel's bytes, of which each step of the depth fetches a share: weights come from memory.
struct Fetch {
  const char *next, *end;
  int64_t bytes;
  HYBRIDNET_AMX void step() {
    for (int64_t i = 0; i < bytes && next < end; i += 64, next += 64) _mm_prefetch(next, _MM_HINT_T1);
  }
};

// sums (16 kTiles, kPanel) = rows * panel.
template <int kTiles>
HYBRIDNET_AMX void multiply(const bfloat16* rows, int64_t row, const bfloat16* panel, int64_t steps, Fetch& fetch,
                            float* sums) {
  const int64_t stride = row * 2, tiles = kRows * row;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t i = 0; i < steps; ++i, rows += kDepth, panel += 2 * kTile) {
    _tile_loadd(4, rows, stride);
    _tile_loadd(6, panel, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, panel + kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTiles == 2) {
      _tile_loadd(5, rows + tiles, stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    fetch.step();
  }
  constexpr int kSumsStride = kPanel * sizeof(float);
  _tile_stored(0, sums, kSumsStride);
  _tile_stored(1, sums + kColumns, kSumsStride);
  if constexpr (kTiles == 2) {
    _tile_stored(2, sums + kRows * kPanel, kSumsStride);
    _tile_stored(3, sums + kRows * kPanel + kColumns, kSumsStride);
  }
}

HYBRIDNET_AMX inline __m512 load_halves(__mmask16 mask, const bfloat16* from) {
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Ends the sums of `rows` rows of a panel and stores them.
HYBRIDNET_AMX void finish(const TileProduct& p, int64_t row, int64_t rows, int64_t panel, float* sums) {
  const int64_t first = panel * kPanel;
  const auto each_vector = [&](const auto& f) HYBRIDNET_AMX {
    for (int64_t half = 0; half < kPanel; half += kColumns) {
      const int64_t columns = std::clamp<int64_t>(p.columns - first - half, 0, kColumns);
      const auto mask = static_cast<__mmask16>((1u << columns) - 1);
      if (columns == 0) continue;
      const __m512 bias = p.bias ? load_halves(mask, p.bias + first + half) : _mm512_setzero_ps();
      for (int64_t i = 0; i < rows; ++i) f(sums + i * kPanel + half, (row + i) * p.columns + first + half, mask, bias);
    }
  };
  const auto added = [&](const float* from, int64_t at, __mmask16 mask, __m512 bias) HYBRIDNET_AMX {
    __m512 sum = _mm512_add_ps(_mm512_load_ps(from), bias);
    if (p.addend) sum = _mm512_add_ps(sum, load_halves(mask, p.addend + at));
    return sum;
  };
  const auto store = [&](__m512 sum, int64_t at, __mmask16 mask) HYBRIDNET_AMX {
    _mm256_mask_storeu_epi16(p.out + at, mask, (__m256i)_mm512_cvtneps_pbh(sum));
  };
  if (!p.ends) {
    each_vector([&](float* from, int64_t at, __mmask16 mask, __m512 bias)
                    HYBRIDNET_AMX { store(added(from, at, mask, bias), at, mask); });
    return;
  }
  each_vector([&](float* from, int64_t at, __mmask16 mask, __m512 bias)
                  HYBRIDNET_AMX { _mm512_store_ps(from, added(from, at, mask, bias)); });
  p.ends->end(sums, rows * kPanel);
  each_vector([&](float* from, int64_t at, __mmask16 mask, __m512)
                  HYBRIDNET_AMX { store(_mm512_load_ps(from), at, mask); });
}

// Rows of a task stay in the second-level cache while the panels pass.
constexpr int64_t kTaskBytes = 1 << 20, kBlock = 2 * kRows;

struct Tasks {
  int64_t rows, panels, count;
  explicit Tasks(const TileProduct& p)
      : rows(std::max<int64_t>(1, kTaskBytes / (p.depth * 2 * kBlock)) * kBlock),
        panels(divided_up(p.columns, kPanel)),
        count(divided_up(p.count, rows) * panels) {}
};

HYBRIDNET_AMX void run_tasks(const TileProduct& p, const bfloat16* padded, const Tasks& tasks, int64_t begin,
                             int64_t end) {
  const TileScope scope(&kWholeTiles);
  const int64_t steps = steps_of(p.depth), depth = steps * kDepth;
  alignas(64) float sums[kBlock * kPanel];
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task / tasks.panels * tasks.rows, last = std::min(first + tasks.rows, p.count);
    const int64_t panel = task % tasks.panels, size = panel_size(p.depth);
    const auto* const weights = static_cast<const bfloat16*>(p.packed) + panel * size;
    const auto* const next = reinterpret_cast<const char*>(weights + size);
    const int64_t blocks = divided_up(last - first, kBlock), step_bytes = 2 * kTile * sizeof(bfloat16);
    Fetch fetch{next, task + 1 < end && panel + 1 < tasks.panels ? next + size * 2 : next,
                divided_up(step_bytes / 64, blocks) * 64};
    for (int64_t row = first; row < last; row += kBlock) {
      const int64_t rows = std::min(kBlock, last - row);
      if (rows > kRows) {
        multiply<2>(padded + row * depth, depth, weights, steps, fetch, sums);
      } else {
        multiply<1>(padded + row * depth, depth, weights, steps, fetch, sums);
      }
      finish(p, row, rows, panel, sums);
    }
  }
}

#endif

}  // namespace

#if defined(__x86_64__)
bool has_tile_products() { return has_amx(); }

void tile_product(const TileProduct& p) {
  const Tasks tasks(p);
  const bfloat16* const rows = needs_padding(p) ? padded_rows(p) : p.rows;
  // With few rows, reading the weights takes as long as with this many.
  constexpr int64_t kFewRows = 128;
  const double ns = 0.0006 * static_cast<double>(std::max(kFewRows, std::min(tasks.rows, p.count)) * p.depth * kPanel);
  parallel_for(tasks.count, ns, [&](int64_t begin, int64_t end) { run_tasks(p, rows, tasks, begin, end); });
}
#else
bool has_tile_products() { return false; }
void tile_product(const TileProduct&) {
  throw UnsupportedError({.input = "rows", .expected = "a processor with AMX", .given = "another one"});
}
#endif

int64_t packed_tile_weights(int64_t depth, int64_t columns) {
  return divided_up(columns, kPanel) * panel_size(depth) * static_cast<int64_t>(sizeof(bfloat16));
}

void pack_tile_weights(const bfloat16* weights, int64_t depth, int64_t columns, void* packed) {
  auto* const to = static_cast<bfloat16*>(packed);
  each_panel(depth, columns, [&](int64_t panel) {
    std::memset(to + panel * panel_size(depth), 0, static_cast<size_t>(panel_size(depth)) * sizeof(bfloat16));
    each_weight(depth, columns, panel, [&](int64_t plain, int64_t at) { to[at] = weights[plain]; });
  });
}

void unpack_tile_weights(const void* packed, int64_t depth, int64_t columns, bfloat16* weights) {
  const auto* const from = static_cast<const bfloat16*>(packed);
  each_panel(depth, columns, [&](int64_t panel) {
    each_weight(depth, columns, panel, [&](int64_t plain, int64_t at) { weights[plain] = from[at]; });
  });
}

std::string tile_packing(int64_t depth, int64_t columns) {
  return "tiles of " + std::to_string(columns) + " x " + std::to_string(depth);
}

std::vector<Unpacking> tile_unpacking(int64_t depth, int64_t columns) {
  return {{0, depth * columns * static_cast<int64_t>(sizeof(bfloat16)), [=](const void* packed, void* to) {
             unpack_tile_weights(packed, depth, columns, static_cast<bfloat16*>(to));
           }}};
}

int64_t tile_product_workspace(int64_t depth, int64_t count) {
  if (!needs_padding({.depth = depth, .count = count})) return 0;
  return divided_up(count, kRows) * kRows * steps_of(depth) * kDepth * static_cast<int64_t>(sizeof(bfloat16));
}

}  // namespace hybridnet::kernels
