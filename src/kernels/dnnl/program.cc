#include "kernels/dnnl/program.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/short_lived_blocks.h"
#include "hybridnet/error.h"

namespace hybridnet::onednn {
namespace {

constexpr int64_t kAlignment = 64;

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  throw Error(ErrorKind::kError,
              {.message = std::string("oneDNN could not ") + what + ", status " + std::to_string(status)});
}

}  // namespace

const dnnl::engine& cpu_engine() {
  static const auto* engine = [] {
    // Plans keep their primitives; the ones that oneDNN caches besides (1,024 by default, of 40 KB each) only help if a
    // shape is used again after its plan was dropped.
    dnnl::set_primitive_cache_capacity(256);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);  // kernels may outlive static destruction
  }();
  return *engine;
}

dnnl_stream_t thread_stream() {
  thread_local const dnnl::stream stream(cpu_engine());
  return stream.get();
}

dnnl::memory::data_type data_type(DType dtype) {
  return dtype == DType::kBFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

bool has_bfloat16() {
  static const bool has = [] {
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  }();
  return has;
}

namespace {

std::string name_of(const Desc& desc) {
  std::string name = std::to_string(static_cast<int>(desc.get_data_type()));
  const auto append = [&name](const char* what, const std::vector<dnnl_dim_t>& values) {
    name += what;
    for (const dnnl_dim_t value : values) name += " " + std::to_string(value);
  };
  append(" sizes", desc.get_dims());
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) {
    // Layouts that oneDNN does not describe: equal to no other.
    static std::atomic<uint64_t> next{0};
    return name + " opaque " + std::to_string(next.fetch_add(1, std::memory_order_relaxed));
  }
  append(" padded", desc.get_padded_dims());
  append(" strides", desc.get_strides());
  append(" blocks", desc.get_inner_blks());
  append(" of", desc.get_inner_idxs());
  return name;
}

}  // namespace

std::string reorder_name(const Desc& from, const Desc& to) { return name_of(from) + " to " + name_of(to); }

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

int rounded_cores(int cores) {
  if (cores <= 4 || cores == cpu_cores()) return std::max(cores, 1);
  int power = 4;
  while (power * 2 <= cores) power *= 2;
  return power;
}

int64_t worthwhile_cores(double flops) {
  constexpr double kFlopsPerCore = 1.0e6;  // about 10 us of one core
  if (flops < 2 * kFlopsPerCore) return 1;
  return std::max<int64_t>(kSmallMachine, static_cast<int64_t>(std::min(flops / kFlopsPerCore, 4096.0)));
}

int cores_for(double flops) {
  return rounded_cores(static_cast<int>(std::min<int64_t>(current_cores(), worthwhile_cores(flops))));
}

PrimitiveCores::PrimitiveCores(double flops)
    : lease_(cores_for(flops)), count_(rounded_cores(lease_.cores())), scope_(count_) {}

// Memory objects of all steps, in step order. Only one run uses them at a time.
struct Program::Bound {
  struct StepMemory {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  std::vector<StepMemory> steps;
};

Program::~Program() = default;

Program::Idle::Idle() = default;
Program::Idle::~Idle() = default;

Place Program::reserve_bytes(int64_t bytes) {
  Place place;
  place.offset = bytes_;
  bytes_ += (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

void Program::add(const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments) {
  const Desc scratch = pd.scratchpad_desc();
  if (scratch.get_size() > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch, reserve(scratch)});
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, pd.get()), "make a primitive");
  steps_.push_back({dnnl::primitive(), std::move(arguments)});
  steps_.back().primitive.reset(primitive);
}

void Program::reorder_into(const Desc& from, Place place, const Desc& to, Place target) {
  const dnnl::reorder::primitive_desc pd(cpu_engine(), from, cpu_engine(), to, user_scratchpad());
  add(pd, {{DNNL_ARG_FROM, from, place}, {DNNL_ARG_TO, to, target}});
}

Place Program::reorder(const Desc& from, Place place, const Desc& to) {
  if (from == to) return place;
  const Place target = reserve(to);
  reorder_into(from, place, to, target);
  return target;
}

std::vector<kernels::Unpacking> unpack_of(const Desc& plain, const Desc& packed) {
  if (plain.get_data_type() != packed.get_data_type()) return {};
  const auto write = [plain, packed](const void* from, void* to) {
    Program program;
    program.reorder_into(packed, Place::tensor(0), plain, Place::tensor(1));
    const OwnedBlock workspace(program.workspace_bytes());
    void* const tensors[] = {const_cast<void*>(from), to};
    program.run(tensors, workspace.data());
  };
  return {{0, static_cast<int64_t>(plain.get_size()), write}};
}

std::unique_ptr<Program::Bound> Program::bind() const {
  auto bound = std::make_unique<Bound>();
  bound->steps.resize(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Argument& a : steps_[i].arguments) {
      bound->steps[i].memories.emplace_back(a.desc, cpu_engine(), nullptr);
      bound->steps[i].arguments.push_back({a.id, bound->steps[i].memories.back().get()});
    }
  }
  return bound;
}

void Program::run(std::span<void* const> externals, void* workspace) const {
  if (steps_.empty()) return;
  std::unique_ptr<Bound> bound = idle_->spares.take();
  if (!bound) bound = idle_->spares.take_any();
  // Memory that a first run allocates may stay: oneDNN generates the code of its products then.
  std::optional<ShortLivedBlocks> blocks;
  if (bound)
    blocks.emplace();
  else
    bound = bind();
  for (size_t i = 0; i < steps_.size(); ++i) {
    Bound::StepMemory& m = bound->steps[i];
    for (size_t j = 0; j < m.arguments.size(); ++j) {
      const Place place = steps_[i].arguments[j].place;
      void* data = place.external >= 0 ? externals[static_cast<size_t>(place.external)]
                                       : static_cast<char*>(workspace) + place.offset;
      check(dnnl_memory_set_data_handle(m.arguments[j].memory, data), "take a tensor");
    }
    check(dnnl_primitive_execute(steps_[i].primitive.get(), thread_stream(), static_cast<int>(m.arguments.size()),
                                 m.arguments.data()),
          "run a primitive");
  }
  idle_->spares.give(bound);
}

}  // namespace hybridnet::onednn
