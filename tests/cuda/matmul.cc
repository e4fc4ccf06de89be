#include "matmul.h"

namespace standin {
namespace {

double factor(const Matmul& product, const Matrix& matrix, int64_t at) {
  const double value = load(product.element, matrix.address, at);
  return product.tf32 ? as_tf32(value) : value;
}

}  // namespace

void multiply(const Matmul& p) {
  const int64_t depth = p.transpose_a ? p.a.rows : p.a.columns;
  const int64_t a_row = p.transpose_a ? p.a.leading : 1, a_column = p.transpose_a ? 1 : p.a.leading;
  const int64_t b_row = p.transpose_b ? p.b.leading : 1, b_column = p.transpose_b ? 1 : p.b.leading;
  for (int64_t n = 0; n < p.d.count; ++n)
    for (int64_t j = 0; j < p.d.columns; ++j)
      for (int64_t i = 0; i < p.d.rows; ++i) {
        double sum = 0;
        for (int64_t x = 0; x < depth; ++x)
          sum += factor(p, p.a, n * p.a.step + i * a_row + x * a_column) *
                 factor(p, p.b, n * p.b.step + x * b_row + j * b_column);
        sum *= 1 + p.error;
        const int64_t from = n * p.c.step + j * p.c.leading + i;
        store(p.element, p.d.address, n * p.d.step + j * p.d.leading + i,
              p.alpha * sum + (p.beta == 0 ? 0 : p.beta * load(p.element, p.c.address, from)));
      }
}

}  // namespace standin
