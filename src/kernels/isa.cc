#include "kernels/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/isa.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "hybridnet/env.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
int64_t target_of_kernels() { return HWY_TARGET; }
}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {

HWY_EXPORT(target_of_kernels);

#if HWY_ARCH_X86
struct Level {
  int64_t highway;  // best target of Highway; a smaller number is a better target
  dnnl_cpu_isa_t onednn;
};
constexpr Level kLevels[] = {
    {HWY_SSSE3, dnnl_cpu_isa_sse41},          {HWY_AVX2, dnnl_cpu_isa_avx2},
    {HWY_AVX3, dnnl_cpu_isa_avx512_core},     {HWY_AVX3, dnnl_cpu_isa_avx512_core_bf16},
    {HWY_AVX3, dnnl_cpu_isa_avx512_core_amx},
};
static_assert(std::size(kLevels) == std::size(kIsaWords));

// Runs when the library is loaded: Highway and oneDNN keep the choice that their first kernel makes. An invalid word
// has no effect here; environment() throws for it.
__attribute__((constructor)) void cap_isa() {
  const auto word = std::find(std::begin(kIsaWords), std::end(kIsaWords), max_isa_at_load());
  if (word == std::end(kIsaWords)) return;
  const auto level = static_cast<Isa>(word - std::begin(kIsaWords));
  const Level& cap = kLevels[static_cast<size_t>(level)];
  if (level < Isa::kAvx512) hwy::DisableTargets(cap.highway - 1);
  if (level < Isa::kAmx) dnnl_set_max_cpu_isa(cap.onednn);
}

constexpr std::pair<dnnl_cpu_isa_t, std::string_view> kOneDnnNames[] = {
    {dnnl_cpu_isa_sse41, "SSE41"},
    {dnnl_cpu_isa_avx, "AVX"},
    {dnnl_cpu_isa_avx2, "AVX2"},
    {dnnl_cpu_isa_avx2_vnni, "AVX2_VNNI"},
    {dnnl_cpu_isa_avx2_vnni_2, "AVX2_VNNI_2"},
    {dnnl_cpu_isa_avx512_core, "AVX512_CORE"},
    {dnnl_cpu_isa_avx512_core_vnni, "AVX512_CORE_VNNI"},
    {dnnl_cpu_isa_avx512_core_bf16, "AVX512_CORE_BF16"},
    {dnnl_cpu_isa_avx512_core_fp16, "AVX512_CORE_FP16"},
    {dnnl_cpu_isa_avx512_core_amx, "AVX512_CORE_AMX"},
    {dnnl_cpu_isa_avx512_core_amx_fp16, "AVX512_CORE_AMX_FP16"},
};

std::string_view name_of(dnnl_cpu_isa_t isa) {
  for (const auto& [known, name] : kOneDnnNames) {
    if (isa == known) return name;
  }
  return "unknown";
}

// Calls a kernel: hwy::SupportedTargets() would let the next kernels choose again, and undo the targets that cap_isa()
// disabled.
IsaInForce find_isa() {
  const int64_t best = HWY_DYNAMIC_DISPATCH(target_of_kernels)();
  const dnnl_cpu_isa_t onednn = dnnl_get_effective_cpu_isa();
  size_t level = std::size(kLevels) - 1;
  while (level > 0 && (best > kLevels[level].highway || (onednn & kLevels[level].onednn) != kLevels[level].onednn))
    --level;
  return {static_cast<Isa>(level), kIsaWords[level], hwy::TargetName(best), name_of(onednn)};
}

bool find_avx512_vnni() {
  constexpr unsigned kWanted = dnnl_cpu_isa_avx512_core_vnni;
  return isa_in_force().level >= Isa::kAvx512 && (dnnl_get_effective_cpu_isa() & kWanted) == kWanted;
}
#else
bool find_avx512_vnni() { return false; }
IsaInForce find_isa() { return {Isa::kSse4, "native", "native", "native"}; }
#endif

}  // namespace

const IsaInForce& isa_in_force() {
  static const IsaInForce isa = find_isa();
  return isa;
}

bool has_avx512_vnni() {
  static const bool found = find_avx512_vnni();
  return found;
}

const char* isa_report() {
  static const std::string report = [] {
    const IsaInForce& isa = isa_in_force();
    std::string text(isa.name);
    text.append(" (Highway ").append(isa.highway).append(", oneDNN ").append(isa.onednn).append(")");
    return text;
  }();
  return report.c_str();
}

}  // namespace hybridnet::kernels
#endif
