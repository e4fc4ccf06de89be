// The state inputs of a loop's iterations, computed from the state outputs, so that gradients of loops keep these rows
// once.
#include <cstring>

#include "hybridnet/declare.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kRowsBefore{"_rows_before"};

struct RowsBeforeParams {
  bool reverse;
  static void describe(ParamSchema<RowsBeforeParams>& schema) {
    schema.field("reverse", &RowsBeforeParams::reverse)
        .default_value(false)
        .doc("Whether the rows are in reverse order, so that the row before a row follows it.");
  }
};

void infer_rows_before(const RowsBeforeParams&, InferContext& c) {
  c.unify_dtypes();
  const Shape& rows = c.in_shape(0);
  if (!rows.rank_known()) return;
  if (rows.ndim() == 0 || rows[0] == 0)
    throw ShapeError({.input = "rows", .expected = "at least one row", .given = rows.str()});
  Shape initial = rows;
  initial[0] = 1;
  c.set_in_shape(1, initial);
  c.set_out_shape(0, rows);
}

void copy_rows(const RowsBeforeParams& p, const KernelArgs& a) {
  const int64_t rows = (*a.in[0].shape)[0], row = a.in[0].size() / rows * dtype_size(a.in[0].dtype);
  if (row == 0) return;
  auto* const out = static_cast<char*>(a.out[0].data);
  std::memcpy(out + (p.reverse ? (rows - 1) * row : 0), a.in[1].data, static_cast<size_t>(row));
  if (rows == 1) return;
  std::memcpy(out + (p.reverse ? 0 : row), static_cast<const char*>(a.in[0].data) + (p.reverse ? row : 0),
              static_cast<size_t>((rows - 1) * row));
}

Values rows_before_gradient(const RowsBeforeParams& p, const GradientContext& g) {
  const Value arrived = g.output_grad(0);
  const TensorSpec& initial = g.input_spec(1);
  const int64_t rows = g.input_spec(0).shape[0], first = p.reverse ? rows - 1 : 0;
  return {g.wants(0) ? call(kRowsBefore, {arrived, zeros(initial.shape, initial.dtype)},
                            {{"reverse", p.reverse ? "False" : "True"}})
                     : Value(),
          g.wants(1) ? slice_axis(arrived, 0, first, first + 1) : Value()};
}

}  // namespace

void register_rows_before(OpRegistry& ops) {
  ops.declare<RowsBeforeParams>("_rows_before")
      .doc("Row t is row t - 1 of rows; the first row is initial.")
      .input("rows", "(T, ...), T at least 1")
      .input("initial", "(1, ...)")
      .output("out", "shape and dtype of rows")
      .infer(infer_rows_before)
      .cpu(copy_rows)
      .gradient(rows_before_gradient)
      .internal()
      .sample({{4, 3}, {1, 3}})
      .sample({{4, 3}, {1, 3}}, {{"reverse", "True"}})
      .sample({{1, 2, 3}, {1, 2, 3}});
}

}  // namespace hybridnet::ops
