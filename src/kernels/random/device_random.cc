#include "kernels/random/device_random.h"

#include <string>

#include "kernels/device/program_table.h"
#include "kernels/device/random_arguments.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::RandomArguments;

void launch(device::Program& program, const RandomArguments& a) {
  program.launch("fill", device::geometry_for(a.n), a);
}
std::string text_of(const std::string& function) {
  return include_line("random.cuh") + kernel_line("fill", "RandomArguments", function);
}

uint64_t below_of(double keep) { return static_cast<uint64_t>(keep * 0x1p32); }

}  // namespace

void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask) {
  if (n == 0) return;
  static ProgramTable<1> programs;
  launch(programs.get(0, [] { return text_of("bernoulli"); }),
         {.out = mask, .begin = begin, .n = n, .seed = key.seed, .stream = key.stream, .below = below_of(keep)});
}

void fill_normal(RngKey key, float mean, float deviation, int64_t begin, int64_t n, float* out) {
  if (n == 0) return;
  static ProgramTable<1> programs;
  launch(programs.get(0, [] { return text_of("normal"); }), {.out = out,
                                                             .begin = begin,
                                                             .n = n,
                                                             .seed = key.seed,
                                                             .stream = key.stream,
                                                             .low = static_cast<double>(mean),
                                                             .high = static_cast<double>(deviation)});
}

void fill_normal(RngKey key, double mean, double deviation, int64_t n, double* out) {
  if (n == 0) return;
  static ProgramTable<1> programs;
  launch(programs.get(0, [] { return text_of("normal_double"); }),
         {.out = out, .n = n, .seed = key.seed, .stream = key.stream, .low = mean, .high = deviation});
}

void fill_uniform(RngKey key, DType dtype, double low, double high, int64_t n, void* out) {
  if (n == 0) return;
  static ProgramTable<kDTypeCodes> programs;
  launch(programs.get(static_cast<int>(dtype), [dtype] { return text_of("uniform<" + element_name(dtype) + ">"); }),
         {.out = out, .n = n, .seed = key.seed, .stream = key.stream, .low = low, .high = high});
}

void drop(RngKey key, double keep, double factor, DType dtype, const void* in, int64_t n, uint8_t* mask, void* out) {
  if (n == 0) return;
  static ProgramTable<kDTypeCodes> programs;
  launch(
      programs.get(static_cast<int>(dtype), [dtype] { return text_of("dropout<" + element_name(dtype) + ", true>"); }),
      {.out = out,
       .n = n,
       .seed = key.seed,
       .stream = key.stream,
       .high = factor,
       .below = below_of(keep),
       .in = in,
       .mask = mask});
}

void apply_mask(double factor, DType dtype, const void* in, const uint8_t* mask, int64_t n, void* out) {
  if (n == 0) return;
  static ProgramTable<kDTypeCodes> programs;
  launch(
      programs.get(static_cast<int>(dtype), [dtype] { return text_of("dropout<" + element_name(dtype) + ", false>"); }),
      {.out = out, .n = n, .high = factor, .in = in, .mask = const_cast<uint8_t*>(mask)});
}

}  // namespace hybridnet::kernels::on_device
