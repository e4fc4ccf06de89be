#include "op/memory_order.h"

#include <gtest/gtest.h>

#include "../ops/op_samples.h"

namespace hybridnet::testing {
namespace {

// The values of an operator's inputs or outputs in memory order: channels-last for images if requested. Kernels see
// them in the dtypes of the specs.
struct Memory {
  std::vector<TensorSpec> specs;
  std::vector<Format> formats;
  std::vector<std::vector<float>> values;
  std::vector<std::vector<int8_t>> bytes = {};

  std::vector<TensorRef> refs() {
    std::vector<TensorRef> refs;
    bytes.resize(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      bytes[i].assign(values[i].begin(), values[i].end());
      void* data = is_bytes(i) ? static_cast<void*>(bytes[i].data()) : values[i].data();
      refs.push_back({data, &specs[i].shape, specs[i].dtype, formats[i], nullptr});
    }
    return refs;
  }
  void read_back() {
    for (size_t i = 0; i < specs.size(); ++i)
      if (is_bytes(i)) values[i].assign(bytes[i].begin(), bytes[i].end());
  }
  bool is_bytes(size_t i) const { return dtype_size(specs[i].dtype) == 1; }
};

// Moves element (n, c, space) of each image to (n, space, c), or back.
std::vector<float> exchanged(const std::vector<float>& values, const Shape& shape, bool to_last) {
  const int64_t channels = shape[1], space = shape.size(2, shape.ndim());
  std::vector<float> result(values.size());
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t s = 0; s < space; ++s) {
        const auto plain = static_cast<size_t>((n * channels + c) * space + s);
        const auto last = static_cast<size_t>((n * space + s) * channels + c);
        result[to_last ? last : plain] = values[to_last ? plain : last];
      }
  return result;
}

struct Use {
  const Op& op;
  ParamsPtr params;
  Memory in;
  int rank = 0;

  Use(const Op& o, ParamsPtr p, const std::vector<Shape>& shapes, const std::vector<DType>& dtypes = {})
      : op(o), params(std::move(p)) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      in.specs.push_back({shapes[i], i < dtypes.size() ? dtypes[i] : DType::kFloat32});
      in.formats.push_back(Format::kPlain);
      in.values.emplace_back();
      for (const double v : random_values(shapes[i].size(), 0.5, 2, 5 + static_cast<unsigned>(i)))
        in.values.back().push_back(in.is_bytes(i) ? static_cast<float>(static_cast<int8_t>(50 * v))
                                                  : static_cast<float>(v));
      rank = std::max(rank, shapes[i].ndim());
    }
  }

  Memory outputs() {
    std::vector<TensorSpec> out(static_cast<size_t>(op.num_outputs(params->data())));
    InferContext context(op, in.specs, out);
    op.infer(params->data(), context);
    Memory memory;
    for (const TensorSpec& spec : out) {
      memory.specs.push_back(spec);
      memory.formats.push_back(Format::kPlain);
      memory.values.emplace_back(static_cast<size_t>(spec.shape.size()));
      rank = std::max(rank, spec.shape.ndim());
    }
    return memory;
  }

  // Runs the operator, with images of the largest rank channels-last if `last`; returns results in plain order.
  std::vector<std::vector<float>> run(bool last) {
    Memory out = outputs(), given = in;
    const auto is_image = [&](const TensorSpec& spec) {
      return last && spec.shape.ndim() == rank && spec.shape.size(2, rank) != 1;
    };
    for (size_t i = 0; i < given.specs.size(); ++i) {
      if (!is_image(given.specs[i])) continue;
      given.formats[i] = Format::kChannelsLast;
      given.values[i] = exchanged(given.values[i], given.specs[i].shape, true);
    }
    for (size_t i = 0; i < out.specs.size(); ++i)
      if (is_image(out.specs[i])) out.formats[i] = Format::kChannelsLast;
    LinkContext context;
    context.params = params->data();
    context.in = given.specs;
    context.out = out.specs;
    context.in_format = given.formats;
    context.out_format = out.formats;
    EXPECT_EQ(needs_memory_order(op, context), last) << op.name;
    const Ref<Kernel> kernel = op.link(context);
    std::vector<char> workspace(static_cast<size_t>(kernel->workspace_bytes()) + 64);
    const std::vector<TensorRef> in_refs = given.refs(), out_refs = out.refs();
    KernelArgs args;
    args.params = params->data();
    args.in = in_refs;
    args.out = out_refs;
    args.workspace = workspace.data();
    kernel->run(args);
    out.read_back();
    for (size_t i = 0; i < out.specs.size(); ++i)
      if (out.formats[i] == Format::kChannelsLast) out.values[i] = exchanged(out.values[i], out.specs[i].shape, false);
    return out.values;
  }
};

void expect_same(Use& use) {
  const auto plain = use.run(false), last = use.run(true);
  for (size_t i = 0; i < plain.size(); ++i)
    for (size_t k = 0; k < plain[i].size(); ++k)
      ASSERT_NEAR(last[i][k], plain[i][k], 1e-5 * std::max(1.0F, std::abs(plain[i][k]))) << use.op.name;
}

TEST(MemoryOrder, OperatorsThatNumberAxesGiveTheSameOnChannelsLastImages) {
  int ran = 0;
  for (const Op* op : Runtime::get().ops().all()) {
    if (!op->renumbered_params) continue;
    for (const Sample& sample : op->samples) {
      Use use(*op, op->schema->parse(sample.attrs, op->name, false), sample.inputs, sample.dtypes);
      use.outputs();
      if (use.rank < 3 || !op->renumbered_params(use.params->data(), channels_last_axes(use.rank))) continue;
      expect_same(use);
      ++ran;
    }
  }
  EXPECT_GE(ran, 20);
}

TEST(MemoryOrder, BroadcastsGiveTheSameOnChannelsLastImages) {
  int ran = 0;
  for (const Op* op : Runtime::get().ops().all()) {
    const bool takes_two = op->pointwise && op->name.starts_with("broadcast_") && op->dtypes.has(DType::kFloat32);
    if (!takes_two) continue;
    Use use(*op, op->default_params, {{2, 3, 4, 5}, {1, 3, 1, 1}});
    if (use.outputs().specs[0].dtype != DType::kFloat32) continue;
    expect_same(use);
    ++ran;
  }
  EXPECT_GE(ran, 8);
}

TEST(MemoryOrder, ReductionsThatWouldExchangeOtherAxesHaveNoForm) {
  const Op& sum = Runtime::get().ops().at("sum");
  const auto form = [&](const TextAttrs& attrs) {
    return sum.renumbered_params(sum.schema->parse(attrs, "sum", false)->data(), channels_last_axes(4));
  };
  EXPECT_TRUE(form({{"axis", "(2, 3)"}}));
  EXPECT_TRUE(form({{"axis", "1"}}));
  EXPECT_TRUE(form({{"axis", "0"}, {"keepdims", "True"}}));
  EXPECT_FALSE(form({{"axis", "0"}}));
  EXPECT_FALSE(form({{"axis", "(0, 2)"}}));
}

TEST(MemoryOrder, APlainImageBesideChannelsLastOnesIsAnError) {
  const Op& op = Runtime::get().ops().at("Concat");
  const std::vector<TensorSpec> in(2, {Shape{2, 3, 4}, DType::kFloat32}), out{{Shape{2, 6, 4}, DType::kFloat32}};
  const Format formats[] = {Format::kChannelsLast, Format::kPlain, Format::kChannelsLast};
  const ParamsPtr params = op.schema->parse({{"num_args", "2"}}, "Concat", false);
  LinkContext context;
  context.params = params->data();
  context.in = in;
  context.out = out;
  context.in_format = std::span(formats).first(2);
  context.out_format = std::span(formats).last(1);
  EXPECT_THROW(op.link(context), Error);
}

}  // namespace
}  // namespace hybridnet::testing
