#include "kernels/reduce/device_reduce.h"

#include <algorithm>
#include <optional>
#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/program_table.h"
#include "kernels/device/reduce_arguments.h"
#include "kernels/reduce/reduce_stages.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::ReduceArguments;

const char* step_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNansum:
      return "NansumStep";
    case Reduction::kProd:
      return "ProdStep";
    case Reduction::kNanprod:
      return "NanprodStep";
    case Reduction::kMax:
      return "MaxStep";
    case Reduction::kMin:
      return "MinStep";
    case Reduction::kSumAbs:
      return "SumAbsStep";
    case Reduction::kSumSquares:
      return "SumSquaresStep";
    default:
      return "SumStep";
  }
}

bool selects(Reduction reduction) { return reduction == Reduction::kMax || reduction == Reduction::kMin; }

DType accumulator_of(Reduction reduction, DType dtype) {
  if (is_half(dtype)) return selects(reduction) ? DType::kFloat32 : DType::kFloat64;
  if (selects(reduction)) return dtype;
  return is_floating(dtype) ? DType::kFloat64 : DType::kInt64;
}

// Few numbers suffice for the dtypes: their codes are below 16.
constexpr int kDTypeSlots = 16;
constexpr int kReductions = static_cast<int>(Reduction::kCount);

// The kernels of a reduction from elements, or from accumulators, to an output.
device::Program& reduce_program(Reduction reduction, DType in, DType out, bool maps) {
  static ProgramTable<kReductions * kDTypeSlots * kDTypeSlots * 2> programs;
  const int number =
      ((static_cast<int>(reduction) * kDTypeSlots + static_cast<int>(in)) * kDTypeSlots + static_cast<int>(out)) * 2 +
      (maps ? 1 : 0);
  return programs.get(number, [&] {
    const std::string name_space = "hybridnet::device::", step = name_space + step_name(reduction);
    const std::string acc = element_name(maps ? accumulator_of(reduction, in) : in);
    const std::string types = step + ", " + element_name(in) + ", " + element_name(out);
    const std::string joins = step + ", " + acc + ", " + element_name(out);
    std::string text = include_line("reduce.cuh");
    if (maps) text += block_kernel_line("rows", "ReduceArguments", "reduce_rows<" + types + ">", acc, "256");
    if (maps) text += kernel_line("join_rows", "ReduceArguments", "join_rows<" + joins + ">");
    text += kernel_line("columns", "ReduceArguments", "reduce_columns<" + types + (maps ? ", true>" : ", false>"));
    return text + kernel_line("join_columns", "ReduceArguments", "join_columns<" + joins + ">");
  });
}

// One stage; `a` has its layout, input and output.
void run_stage(device::Program& program, DType in, DType accumulator, bool maps, ReduceArguments a) {
  const bool rows = maps && a.inner == 1 && a.reduced > 0;
  const int64_t outputs = a.outer * a.inner;
  a.group = 1;
  if (rows) {
    a.part_rows = is_half(in) ? kReduceHalfTile : kReduceRowBlock;
    a.group = kReduceRowBlock / a.part_rows;
    a.parts = (a.reduced + a.part_rows - 1) / a.part_rows;
  } else {
    const ColumnBlocks split(a.outer, a.reduced, a.inner);
    a.part_rows = split.rows;
    a.parts = std::max<int64_t>(split.blocks, 1);
  }
  std::optional<OwnedBlock> partial;
  if (a.parts > 1) {
    partial.emplace(outputs * a.parts * dtype_size(accumulator), device::current()->device());
    a.partial = partial->data();
  }
  if (rows) {
    const int64_t groups = 256 / (accumulator == DType::kFloat32 ? 32 : 16);
    program.launch("rows", device::geometry_for_rows((outputs * a.parts + groups - 1) / groups, 256), a);
  } else {
    program.launch("columns", device::geometry_for(outputs * a.parts), a);
  }
  if (a.parts > 1) program.launch(rows ? "join_rows" : "join_columns", device::geometry_for(outputs), a);
}

// A bool is a byte of 0 or 1.
DType as_number(DType dtype) { return dtype == DType::kBool ? DType::kUInt8 : dtype; }

}  // namespace

void reduce(Reduction reduction, Finish finish, DType dtype, const void* in, const Shape& shape, uint32_t axes,
            DType out_dtype, void* out) {
  DType element = as_number(dtype);
  const DType accumulator = accumulator_of(reduction, element);
  const ReduceStages plan(shape, axes);
  ReduceArguments a{};
  a.in = in;
  a.divisor = plan.reduced_count;
  std::optional<OwnedBlock> rooms[2];  // a stage reads one and writes the other
  for (int i = 0; i < plan.count; ++i) {
    const bool last = i + 1 == plan.count;
    a.outer = plan.stages[i].outer;
    a.reduced = plan.stages[i].reduced;
    a.inner = plan.stages[i].inner;
    a.finish = static_cast<int32_t>(last ? finish : Finish::kNone);
    a.out = last
                ? out
                : rooms[i % 2].emplace(a.outer * a.inner * dtype_size(accumulator), device::current()->device()).data();
    run_stage(reduce_program(reduction, element, last ? out_dtype : accumulator, i == 0), element, accumulator, i == 0,
              a);
    a.in = a.out;
    element = accumulator;
  }
}

void cumsum(DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner, bool from_end, DType out_dtype,
            void* out) {
  if (outer * length * inner == 0) return;
  // Long sequences are summed in parts: the sums differ from the CPU's by rounding in float64 then.
  constexpr int64_t kWhole = 1024, kLeast = 256, kParts = 1024;
  const bool floating = is_floating(dtype) || is_floating(out_dtype);
  device::ScanArguments a{in, out, nullptr, outer, length, inner, 1, length, from_end ? 1 : 0};
  if (length > kWhole) {
    a.part_rows = std::max(kLeast, (length + kParts - 1) / kParts);
    a.parts = (length + a.part_rows - 1) / a.part_rows;
  }
  static ProgramTable<kDTypeSlots * kDTypeSlots> programs;
  device::Program& program = programs.get(static_cast<int>(dtype) * kDTypeSlots + static_cast<int>(out_dtype), [&] {
    const std::string in_type = element_name(dtype), sum = floating ? "double" : "uint64_t";
    return include_line("scan.cuh") +
           kernel_line("totals", "ScanArguments", "scan_totals<" + in_type + ", " + sum + ">") +
           kernel_line("starts", "ScanArguments", "scan_starts<" + sum + ">") +
           kernel_line("parts", "ScanArguments",
                       "scan_parts<" + in_type + ", " + sum + ", " + element_name(out_dtype) + ">");
  });
  std::optional<OwnedBlock> totals;
  const device::Geometry items = device::geometry_for(outer * a.parts * inner);
  if (a.parts > 1) {
    totals.emplace(outer * a.parts * inner * 8, device::current()->device());
    a.totals = totals->data();
    program.launch("totals", items, a);
    program.launch("starts", device::geometry_for(outer * inner), a);
  }
  program.launch("parts", items, a);
}

void arg_extreme(Extreme extreme, DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner,
                 DType out_dtype, void* out) {
  if (outer == 0 || inner == 0) return;
  constexpr int64_t kLeast = 32, kParts = 512;
  device::ExtremeArguments a{in, out, nullptr, outer, length, inner, 1, length};
  if (length > 2 * kLeast) {
    a.part_rows = std::max(kLeast, (length + kParts - 1) / kParts);
    a.parts = (length + a.part_rows - 1) / a.part_rows;
  }
  static ProgramTable<2 * kDTypeSlots * kDTypeSlots> programs;
  const bool is_max = extreme == Extreme::kMax;
  const int number = (static_cast<int>(dtype) * kDTypeSlots + static_cast<int>(out_dtype)) * 2 + (is_max ? 1 : 0);
  device::Program& program = programs.get(number, [&] {
    const std::string types =
        std::string(is_max ? "<true, " : "<false, ") + element_name(dtype) + ", " + element_name(out_dtype) + ">";
    return include_line("scan.cuh") + kernel_line("parts", "ExtremeArguments", "extreme_parts" + types) +
           kernel_line("join", "ExtremeArguments", "extreme_join" + types);
  });
  std::optional<OwnedBlock> positions;
  if (a.parts > 1) {
    positions.emplace(outer * inner * a.parts * 8, device::current()->device());
    a.positions = static_cast<int64_t*>(positions->data());
  }
  program.launch("parts", device::geometry_for(outer * inner * a.parts), a);
  if (a.parts > 1) program.launch("join", device::geometry_for(outer * inner), a);
}

}  // namespace hybridnet::kernels::on_device
