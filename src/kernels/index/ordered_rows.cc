#include "kernels/index/ordered_rows.h"

#include <algorithm>
#include <cstring>

#include "hybridnet/storage.h"
#include "hybridnet/threads.h"

namespace hybridnet::kernels {
namespace {

// The rows with one number: those of all entries at one place of the middle.
class Column {
 public:
  Column(const OrderedLayout& layout, const int32_t* order, const char* data, char* out)
      : l_(layout), order_(order), data_(data), out_(out) {}

  void copy(int64_t middle, int64_t row, char* kept) const {
    if (data_ == out_) {
      if (is_in_place(row)) return;
      for (int64_t e = 0; e < l_.entries; ++e) std::memcpy(kept + e * l_.bytes, data_ + at(e, middle, row), bytes());
    }
    for (int64_t e = 0; e < l_.entries; ++e) {
      const int64_t from = source(e, row);
      const char* const source = data_ == out_ ? kept + from * l_.bytes : data_ + at(from, middle, row);
      std::memcpy(out_ + at(e, middle, row), source, bytes());
    }
  }

 private:
  size_t bytes() const { return static_cast<size_t>(l_.bytes); }
  int64_t at(int64_t entry, int64_t middle, int64_t row) const {
    return ((entry * l_.middle + middle) * l_.rows + row) * l_.bytes;
  }
  int64_t source(int64_t entry, int64_t row) const {
    return std::clamp<int64_t>(order_[entry * l_.rows + row], 0, l_.entries - 1);
  }
  bool is_in_place(int64_t row) const {
    for (int64_t e = 0; e < l_.entries; ++e)
      if (source(e, row) != e) return false;
    return true;
  }

  const OrderedLayout l_;
  const int32_t* const order_;
  const char* const data_;
  char* const out_;
};

}  // namespace

void gather_ordered_rows(const void* data, const OrderedLayout& l, const int32_t* order, void* out) {
  if (l.entries * l.bytes == 0) return;
  const Column column(l, order, static_cast<const char*>(data), static_cast<char*>(out));
  const double ns = 2.0 * static_cast<double>(l.entries) * (2 + 0.1 * static_cast<double>(l.bytes));
  parallel_for(l.middle * l.rows, ns, [&](int64_t begin, int64_t end) {
    const OwnedBlock kept(l.entries * l.bytes);
    for (int64_t i = begin; i < end; ++i) column.copy(i / l.rows, i % l.rows, static_cast<char*>(kept.data()));
  });
}

}  // namespace hybridnet::kernels
