// Winograd's algorithms compared with oneDNN's direct convolution, if choose_convolution() selects them.
#include "kernels/comparison.h"
#include "kernels/conv/winograd.h"
#include "kernels/dnnl/conv_choice.h"
#include "kernels/dnnl/winograd.h"

namespace hybridnet::benchmarks {
namespace {

using kernels::ConvGeometry;
using onednn::ConvAlgorithm;
using onednn::ConvKind;
using onednn::Convolution;

ConvGeometry geometry(int64_t n, int64_t channels, int64_t side) {
  ConvGeometry g;
  g.n = n;
  g.c = g.o = channels;
  g.in = g.out = {1, side, side};
  g.kernel = {1, 3, 3};
  g.pad = {0, 1, 1};
  g.channels_last = true;
  return g;
}

const char* name_of(ConvKind kind) {
  return kind == ConvKind::kForward ? "" : kind == ConvKind::kBackwardData ? ", gradient of data" : ", of weights";
}

void add(Comparisons& all, const ConvGeometry& g, ConvKind kind) {
  Convolution::Options options;
  options.kind = kind;
  options.remember = true;
  const ConvAlgorithm chosen = onednn::choose_convolution({g, options, /*may_round_more=*/true});
  const std::string work =
      std::to_string(g.n) + "x" + std::to_string(g.c) + "x" + std::to_string(g.in[1]) + "x" + std::to_string(g.in[2]);
  const bool weights = kind == ConvKind::kBackwardWeights;
  const Floats a(g.n * g.c * g.in_size()), b(weights ? a.size() : g.c * g.o * 9),
      out(weights ? g.c * g.o * 9 : a.size()), out_library(out.size());
  const auto tensors = [=](const Floats& target, const Buffer<char>& workspace, DerivedData* derived) {
    Convolution::Tensors t;
    t.a = a.get();
    t.b.data = b.get();
    t.b.derived = derived;
    t.out0 = target.get();
    t.workspace = workspace.get();
    return t;
  };
  const auto derived = std::make_shared<DerivedData>();
  const auto direct = std::make_shared<Convolution>(g, options);
  const Buffer<char> direct_space(direct->workspace_bytes());
  const auto run_direct = [=] { direct->run(tensors(out_library, direct_space, derived.get())); };
  const auto off = [=] { return difference(out, out_library); };
  if (chosen == ConvAlgorithm::kWinograd4x4) {
    const auto fast = std::make_shared<onednn::Winograd>(g, options);
    const Buffer<char> space(fast->workspace_bytes());
    all.push_back({std::string("winograd 4x4") + name_of(kind), work,
                   [=] { fast->run(tensors(out, space, derived.get())); }, run_direct, off});
  }
  const bool forward = kind == ConvKind::kForward;
  if (forward && onednn::choose_convolution({g, options, false}) == ConvAlgorithm::kWinograd2x2) {
    const Buffer<char> packed(kernels::winograd_weight_bytes(g)), space(kernels::winograd_workspace_bytes(g));
    auto* weights_2x2 = reinterpret_cast<float*>(packed.get());
    kernels::winograd_pack(g, b.get(), false, weights_2x2);
    all.push_back({"winograd 2x2", work,
                   [=] { kernels::winograd_forward(g, a.get(), weights_2x2, {}, out.get(), space.get()); },
                   [=, keep = packed] { run_direct(); }, off});
  }
}

}  // namespace

void add_convolution(Comparisons& all) {
  for (const ConvKind kind : {ConvKind::kForward, ConvKind::kBackwardData, ConvKind::kBackwardWeights}) {
    add(all, geometry(1, 64, 56), kind);
    add(all, geometry(8, 64, 56), kind);
    add(all, geometry(8, 128, 28), kind);
    add(all, geometry(8, 256, 14), kind);
    add(all, geometry(8, 512, 7), kind);
  }
}

}  // namespace hybridnet::benchmarks
