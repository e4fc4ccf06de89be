#include "hybridnet/plan.h"

#include <new>
#include <stdexcept>
#include <thread>

#include "graph/build_graph.h"
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"
#include "plan/graph_callable.h"
#include "plan/plan.h"

namespace hybridnet::graph_testing {
namespace {

PlanStorage temporary(int64_t bytes, int first, int last) {
  PlanStorage storage;
  storage.bytes = bytes;
  storage.first = first;
  storage.last = last;
  return storage;
}

TEST(PlaceInArena, NothingThatLivesTogetherOverlaps) {
  uint32_t state = 7;
  auto below = [&](uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  };
  for (const uint32_t longest : {1u, 10u, 50u}) {  // from few to nearly all of them alive at one time
    std::vector<PlanStorage> storages;
    for (int i = 0; i < 500; ++i) {
      const int first = static_cast<int>(below(50));
      storages.push_back(temporary(1 + below(1000), first, first + static_cast<int>(below(longest))));
    }
    std::vector<PlanStorage*> pointers;
    for (PlanStorage& s : storages) pointers.push_back(&s);
    const int64_t total = place_in_arena(pointers);
    for (const PlanStorage& a : storages) {
      EXPECT_GE(a.offset, 0);
      EXPECT_LE(a.offset + a.bytes, total);
      EXPECT_EQ(a.offset % 64, 0);
      for (const PlanStorage& b : storages) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
  }
}

Ref<Plan> compile(const Graph& graph) { return Plan::compile(graph, {}); }

// Products with an estimated time of about 84 us each.
Graph products(int count, bool train = false) {
  const NodeEntry x = var("x"), w = var("w");
  NodeEntry e = x;
  for (int i = 0; i < count; ++i) e = use("dot", {e, w});
  return make_graph({x, w}, {float32({128, 128}), float32({128, 128})}, {e}, train);
}

TEST(Plan, ACallThatIsNotWorthWakingATeamHasOneCore) {
  Plan::Options call, part;
  call.wakes_team = true;
  EXPECT_EQ(Plan::compile(products(1), call)->cores(), 1);
  EXPECT_GT(Plan::compile(products(2), call)->cores(), 1);
  EXPECT_GT(Plan::compile(products(1), part)->cores(), 1);  // the team may be awake when a part of a call begins
  EXPECT_GT(Plan::compile(products(1, /*train=*/true), call)->cores(), 1);
}

TEST(Plan, AChainOfFiftyLayersNeedsTwoBuffers) {
  const NodeEntry x = var("x"), w = var("w");
  NodeEntry e = x;
  for (int i = 0; i < 50; ++i) e = use("dot", {e, w});
  Graph graph = make_graph({x, w}, {float32({16, 16}), float32({16, 16})}, {e});
  const Ref<Plan> plan = compile(graph);
  EXPECT_EQ(plan->num_instructions(), 50u);
  EXPECT_LE(plan->arena_bytes(), 2 * 16 * 16 * 4 + 64 * 1024);  // plus the products' workspaces, if any
}

TEST(Plan, ElementwiseChainsRunInThePlaceOfTheOutput) {
  const NodeEntry x = var("x");
  NodeEntry e = x;
  for (int i = 0; i < 20; ++i) e = use("tanh", {e});
  Graph graph = make_graph({x}, {float32({1024})}, {e});
  EXPECT_EQ(compile(graph)->arena_bytes(), 0);
}

TEST(Plan, ALayoutForAnotherLengthLinksWhatIsMadeForSizesOnly) {
  const NodeEntry x = var("x"), w = var("w"), start = var("start"), row = var("row"), state = var("state");
  const NodeEntry next = use("tanh", {use("elemwise_add", {row, state})});
  const NodeEntry dense = use("FullyConnected", {x, w}, {{"num_hidden", "4"}, {"no_bias", "1"}, {"flatten", "0"}});
  LoopSpec loop;
  loop.num_seq = 1;
  loop.num_carry = 1;
  const NodeEntry rows = use_foreach(std::move(loop), {use("relu", {dense}), start}, {row, state}, {next, next});
  const std::vector<NodeEntry> outputs{use("sum", {rows}, {{"axis", "0"}}), output(rows, 1)};
  const auto graph = [&](int64_t length) {
    return make_graph({x, w, start}, {float32({length, 3, 4}), float32({4, 4}), float32({3, 4})}, outputs);
  };
  const Ref<Plan> first = compile(graph(5)), second = Plan::lay_out(graph(9), {}, first->linked());
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->linked(), first->linked());
  EXPECT_EQ(second->num_instructions(), first->num_instructions());
  EXPECT_EQ(second->num_own_kernels(), 1u);  // FullyConnected's
  EXPECT_EQ(Plan::lay_out(graph(5), {}, first->linked())->num_own_kernels(), 0u);
  EXPECT_EQ(Plan::lay_out(make_graph({x}, {float32({9, 3})}, {use("tanh", {x})}), {}, first->linked()), nullptr);

  const NDArray data = random_array({9, 3, 4}, 1), weight = random_array({4, 4}, 2), zeros = random_array({3, 4}, 3);
  const auto results = [&](Plan& plan) {
    std::vector<NDArray> fresh;
    std::vector<void*> places;
    for (const TensorSpec& spec : plan.fresh_outputs()) {
      fresh.push_back(NDArray::empty(spec));
      places.push_back(fresh.back().data());
    }
    const Plan::InputBinding inputs[] = {{data.data()}, {weight.data()}, {zeros.data()}};
    plan.run({inputs, places, nullptr, {}, {}});
    return fresh;
  };
  const std::vector<NDArray> found = results(*second), expected = results(*compile(graph(9)));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(values_of(found[i]), values_of(expected[i]));
}

TEST(Plan, ViewsCostNothing) {
  const NodeEntry x = var("x");
  const NodeEntry y = use("tanh", {use("Reshape", {use("sigmoid", {x})}, {{"shape", "(3, 2)"}})});
  Graph graph = make_graph({x}, {float32({2, 3})}, {y});
  EXPECT_EQ(compile(graph)->num_instructions(), 2u);
}

// An operator whose run fails, with out of memory or another error.
void fail_to_run(const NoParams&, const KernelArgs& args) {
  if (*args.in[0].as<float>() > 0) throw std::bad_alloc();
  throw std::runtime_error("no luck");
}

TEST(Plan, AnOperatorThatRunsOutOfMemoryIsAnErrorOfThatKindAndOtherExceptionsAreErrorsOfNone) {
  const NodeEntry x = var("x");
  OpRegistry ops;
  ops.declare("failing_of_tests")
      .doc("Fails.")
      .input("data")
      .output("out")
      .infer([](const NoParams&, InferContext& c) { ops::infer_elementwise(c); })
      .cpu(fail_to_run)
      .gradient(kNotDifferentiable)
      .may_raise()
      .sample(Sample{.inputs = {Shape{2}}});
  ops.seal();
  const Op& op = ops.at("failing_of_tests");
  const NodeEntry y{make_node(op, "hungry", parse_params(op, {}, 1), {x}), 0};
  for (const auto& [value, kind] : {std::pair{1.0f, ErrorKind::kMemory}, {-1.0f, ErrorKind::kError}}) {
    for (const bool queued : {false, true}) {
      const NDArray input = make_array(Shape{1}, {value});
      Var* const writes[] = {&input.var()};
      if (queued) engine().push([input](TaskContext&) {}, {{}, writes}, {.name = "before", .cost_ns = 30'000});
      const auto function = make_ref<GraphCallable>(Symbol{{y}}, CallOptions{});
      try {
        function->call({&input, 1})[0].wait_to_read();
        ADD_FAILURE() << "ran";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind);
        EXPECT_EQ(error.fields().op, "failing_of_tests");
        EXPECT_EQ(error.fields().node, "hungry");
      }
    }
  }
}

// A symbol and its inputs, run in every way and compared.
struct Model {
  std::vector<NodeEntry> inputs;
  std::vector<NDArray> arrays;
  std::vector<NodeEntry> outputs;

  NodeEntry input(const std::string& name, const Shape& shape) {
    inputs.push_back(var(name));
    arrays.push_back(random_array(shape, static_cast<uint32_t>(inputs.size())));
    return inputs.back();
  }
  Symbol symbol() const { return Symbol{outputs}; }
  std::vector<NDArray> in_symbol_order() const {
    std::vector<NDArray> result;
    for (const NodePtr& node : symbol().list_inputs()) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].node == node) result.push_back(arrays[i]);
      }
    }
    return result;
  }
};

Model elementwise_model() {
  Model m;
  const NodeEntry x = m.input("x", {8, 33}), a = m.input("a", {8, 33}), b = m.input("b", {8, 33});
  const NodeEntry t = use("tanh", {use("elemwise_add", {use("elemwise_mul", {a, x}), b})});
  const NodeEntry s = use("elemwise_mul", {t, use("sigmoid", {x})});
  m.outputs = {use("elemwise_add", {s, x}), use("_mul_scalar", {t}, {{"scalar", "0.5"}})};
  return m;
}

Model matrix_model() {
  Model m;
  const NodeEntry x = m.input("x", {6, 5}), w = m.input("w", {5, 7}), v = m.input("v", {7, 3}),
                  b = m.input("b", {1, 7});
  const NodeEntry hidden = use("relu", {use("broadcast_add", {use("dot", {x, w}), b})});
  m.outputs = {use("tanh", {use("dot", {hidden, v})}), use("sum", {hidden}, {{"axis", "1"}})};
  return m;
}

Model view_model() {
  Model m;
  const NodeEntry x = m.input("x", {4, 6});
  const NodeEntry flat = use("Reshape", {use("tanh", {x})}, {{"shape", "(24,)"}});
  m.outputs = {flat, use("Reshape", {x}, {{"shape", "(6, 4)"}}), flat, use("sigmoid", {flat})};
  return m;
}

class Modes : public ::testing::TestWithParam<Model (*)()> {};

TEST_P(Modes, PlansGiveWhatImperativeCallsGive) {
  const Model m = GetParam()();
  const std::vector<NDArray> expected = run_imperatively(m.inputs, m.arrays, m.outputs);
  for (const char* passes : {"none", "fast_compile", "fast_run"}) {
    for (const bool keep : {false, true}) {
      CallOptions config;
      config.passes = passes;
      config.static_alloc = keep;
      auto op = make_ref<GraphCallable>(m.symbol(), config);
      for (int repeat = 0; repeat < 3; ++repeat) {
        const std::vector<NDArray> found = op->call(m.in_symbol_order());
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i]);
      }
      EXPECT_EQ(op->counts().plans, 1u);
    }
  }
}

std::vector<NDArray> gradients(const Model& m, const std::function<std::vector<NDArray>()>& forward) {
  std::vector<NDArray> buffers;
  for (const NDArray& array : m.arrays) {
    buffers.push_back(NDArray::empty(array.spec()));
    mark_variable(array, buffers.back(), GradReq::kWrite);
  }
  std::vector<NDArray> outputs, heads;
  {
    const Record record;
    outputs = forward();
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    heads.push_back(random_array(outputs[i].shape(), 100 + static_cast<uint32_t>(i)));
  backward(outputs, heads, false, true);
  for (const NDArray& array : m.arrays) drop_grad(array);
  return buffers;
}

TEST_P(Modes, GradientsOfPlansEqualThoseOfTheTape) {
  const Model m = GetParam()();
  const std::vector<NDArray> expected = gradients(m, [&] { return run_imperatively(m.inputs, m.arrays, m.outputs); });
  for (const char* passes : {"none", "fast_compile", "fast_run"}) {
    CallOptions config;
    config.passes = passes;
    auto op = make_ref<GraphCallable>(m.symbol(), config);
    const std::vector<NDArray> found = gradients(m, [&] { return op->call(m.in_symbol_order()); });
    for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-4);
  }
}

TEST_P(Modes, SecondGradientsEqualThoseOfTheTape) {
  const Model m = GetParam()();
  auto second = [&](const std::function<std::vector<NDArray>()>& forward) {
    std::vector<NDArray> buffers;
    for (const NDArray& array : m.arrays) {
      buffers.push_back(NDArray::empty(array.spec()));
      mark_variable(array, buffers.back(), GradReq::kWrite);
    }
    std::vector<NDArray> first;
    {
      const Record record;
      const std::vector<NDArray> outputs = forward();
      first = grad(outputs, {}, m.arrays, true, true, true);
    }
    std::vector<NDArray> differentiable, heads;
    for (const NDArray& g : first) {
      if (needs_gradient(g)) differentiable.push_back(g);
    }
    for (const NDArray& b : buffers) std::memset(b.data(), 0, static_cast<size_t>(b.bytes()));
    if (!differentiable.empty()) backward(differentiable, {}, false, true);
    for (const NDArray& array : m.arrays) drop_grad(array);
    return buffers;
  };
  const std::vector<NDArray> expected = second([&] { return run_imperatively(m.inputs, m.arrays, m.outputs); });
  auto op = make_ref<GraphCallable>(m.symbol(), CallOptions{});
  const std::vector<NDArray> found = second([&] { return op->call(m.in_symbol_order()); });
  for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-4);
}

TEST_P(Modes, ExecutorsWriteAndAddGradients) {
  const Model m = GetParam()();
  const std::vector<NDArray> expected = gradients(m, [&] { return run_imperatively(m.inputs, m.arrays, m.outputs); });
  const std::vector<NDArray> arguments = m.in_symbol_order();
  std::vector<NDArray> buffers;
  std::vector<GradReq> requests;
  for (size_t i = 0; i < arguments.size(); ++i) {
    buffers.push_back(
        make_array(arguments[i].shape(), std::vector<float>(static_cast<size_t>(arguments[i].size()), 1.0f)));
    requests.push_back(i % 2 == 0 ? GradReq::kWrite : GradReq::kAdd);
  }
  auto executor = make_ref<Executor>(m.symbol(), arguments, buffers, requests, std::vector<NDArray>{});
  const std::vector<NDArray> outputs = executor->forward(true);
  std::vector<NDArray> heads;
  for (size_t i = 0; i < outputs.size(); ++i)
    heads.push_back(random_array(outputs[i].shape(), 100 + static_cast<uint32_t>(i)));
  executor->backward(heads);
  for (size_t i = 0; i < arguments.size(); ++i) {
    size_t at = 0;
    while (!(m.arrays[at].impl() == arguments[i].impl())) ++at;
    std::vector<float> wanted = values_of(expected[at]);
    if (requests[i] == GradReq::kAdd) {
      for (float& v : wanted) v += 1.0f;
    }
    expect_close(buffers[i], make_array(arguments[i].shape(), wanted), 1e-4);
  }
  EXPECT_EQ(executor->forward(true)[0].data(), outputs[0].data());
}

TEST_P(Modes, CallsFromManyThreadsAgree) {
  const Model m = GetParam()();
  const std::vector<NDArray> expected = run_imperatively(m.inputs, m.arrays, m.outputs);
  CallOptions config;
  config.static_alloc = true;
  auto op = make_ref<GraphCallable>(m.symbol(), config);
  const std::vector<NDArray> arguments = m.in_symbol_order();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::vector<std::vector<float>> wanted;
  for (const NDArray& e : expected) wanted.push_back(values_of(e));
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        const std::vector<NDArray> found = op->call(arguments);
        for (size_t i = 0; i < found.size(); ++i) {
          const std::vector<float> values = values_of(found[i]);
          for (size_t k = 0; k < values.size(); ++k) wrong += std::fabs(values[k] - wanted[i][k]) > 1e-4f ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Plans, Modes, ::testing::Values(elementwise_model, matrix_model, view_model));

TEST(GraphCallable, LaysOnePlanOutForEachSignature) {
  const NodeEntry x = var("x");
  auto op = make_ref<GraphCallable>(Symbol{{use("tanh", {x})}}, CallOptions{});
  for (int64_t n : {4, 2, 4, 3, 2}) {
    const NDArray input = random_array({n}, 1);
    op->call({&input, 1});
  }
  EXPECT_EQ(op->counts().layouts, 3u);
  EXPECT_EQ(op->counts().plans, 1u);
  EXPECT_EQ(op->counts().linked, 1u);
}

TEST(GraphCallable, ForgetsTheLayoutThatWasUsedLeastRecently) {
  const NodeEntry x = var("x");
  auto op = make_ref<GraphCallable>(Symbol{{use("tanh", {x})}}, CallOptions{});
  const auto call = [&](int64_t n) {
    const NDArray input = random_array({n}, 1);
    op->call({&input, 1});
    return op->counts().layouts;
  };
  for (int64_t n = 2; n <= 41; ++n) call(n);
  EXPECT_EQ(call(10), 40u);  // the oldest of 32 that are kept
  EXPECT_EQ(call(11), 40u);
  EXPECT_EQ(call(9), 41u);  // it replaced the plan for 12
  EXPECT_EQ(call(12), 42u);
  EXPECT_EQ(call(10), 42u);
}

TEST(GraphCallable, WritesIntoGivenArrays) {
  const NodeEntry x = var("x");
  auto op = make_ref<GraphCallable>(Symbol{{use("tanh", {x})}}, CallOptions{});
  const NDArray input = random_array({5}, 1), target = random_array({5}, 2);
  const void* memory = target.data();
  const NDArray result = op->call({&input, 1}, {&target, 1})[0];
  EXPECT_EQ(result.data(), memory);
  expect_close(target,
               invoke(Runtime::get().ops().at("tanh"), Runtime::get().ops().at("tanh").default_params, {&input, 1})[0]);
  op->call({&input, 1}, {&input, 1});  // the output overwrites the input
  expect_close(input, target);
}

TEST(GraphCallable, RefusesAWrongNumberOfInputs) {
  const NodeEntry x = var("x"), y = var("y");
  auto op = make_ref<GraphCallable>(Symbol{{use("elemwise_add", {x, y})}}, CallOptions{});
  const NDArray input = random_array({5}, 1);
  EXPECT_THROW(op->call({&input, 1}), TypeError);
}

TEST(GraphCallable, NamesTheNodeWhenShapesDisagree) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry sum = use("elemwise_add", {x, y});
  sum.node->where = {intern_file("model.py"), 5};
  auto op = make_ref<GraphCallable>(Symbol{{sum}}, CallOptions{});
  const NDArray inputs[] = {random_array({5}, 1), random_array({6}, 1)};
  try {
    op->call(inputs);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_EQ(error.fields().node, sum.node->name);
    EXPECT_EQ(error.fields().where.str(), "model.py:5");
  }
}

TEST(GraphCallable, RefusesBackwardOverAnOverwrittenInput) {
  const NodeEntry x = var("x");
  auto op = make_ref<GraphCallable>(Symbol{{use("square", {x})}}, CallOptions{});
  const NDArray input = random_array({5}, 1), buffer = random_array({5}, 2), other = random_array({5}, 3);
  mark_variable(input, buffer, GradReq::kWrite);
  NDArray y;
  {
    const Record record;
    y = op->call({&input, 1})[0];
  }
  const Op& copy = Runtime::get().ops().at("_copy");
  invoke(copy, copy.default_params, {&other, 1}, {&input, 1});
  EXPECT_THROW(backward({&y, 1}, {}, false, true), GradientError);
}

TEST(GraphCallable, ABackwardFreesWhatItKeptUnlessTold) {
  const NodeEntry x = var("x");
  auto op = make_ref<GraphCallable>(Symbol{{use("tanh", {x})}}, CallOptions{});
  const NDArray input = random_array({5}, 1), buffer = random_array({5}, 2);
  mark_variable(input, buffer, GradReq::kWrite);
  NDArray y;
  {
    const Record record;
    y = op->call({&input, 1})[0];
  }
  backward({&y, 1}, {}, true, true);
  const std::vector<float> first = values_of(grad_of(input));
  backward({&y, 1}, {}, false, true);
  EXPECT_EQ(values_of(grad_of(input)), first);
  EXPECT_THROW(backward({&y, 1}, {}, false, true), GradientError);
}

}  // namespace
}  // namespace hybridnet::graph_testing
