#include "device/convert.h"

#include "device/program_table.h"

namespace hybridnet::device {
namespace {

struct ConvertArguments {  // the same in kernels/device/convert.cuh
  const void* in;
  void* out;
  int64_t n;
};

}  // namespace

void convert(DType from, const void* in, DType to, void* out, int64_t n) {
  if (n == 0) return;
  if (from == to) {
    if (in != out) current()->copy(out, in, n * dtype_size(to));
    return;
  }
  static ProgramTable<kDTypeCodes * kDTypeCodes> programs;
  programs
      .get(static_cast<int>(from) * kDTypeCodes + static_cast<int>(to),
           [&] {
             return include_line("convert.cuh") +
                    kernel_line("convert", "ConvertArguments",
                                "convert_array<" + element_name(from) + ", " + element_name(to) + ">");
           })
      .launch("convert", geometry_for(n), ConvertArguments{in, out, n});
}

}  // namespace hybridnet::device
