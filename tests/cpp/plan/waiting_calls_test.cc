// If a thread waits for each result, its calls run on that thread; if it makes more calls first, they do not.
#include "graph/build_graph.h"
#include "hybridnet/engine.h"
#include "hybridnet/plan.h"
#include "plan/graph_callable.h"

namespace hybridnet::graph_testing {
namespace {

// A product too long for the calling thread by itself.
struct Product {
  Ref<GraphCallable> op;
  NDArray a = random_array({700, 700}, 1), b = random_array({700, 700}, 2);
  Product() {
    Runtime::get();  // owns the registry
    op = make_ref<GraphCallable>(Symbol{{use("dot", {var("a"), var("b")})}}, CallOptions{});
  }
  NDArray call() const { return op->call(std::vector<NDArray>{a, b})[0]; }
  // The number of calls queued while f() runs 40 times.
  template <typename F>
  static uint64_t queued_of_40(const F& f) {
    for (int i = 0; i < 5; ++i) f();
    const uint64_t before = engine().counters().queued;
    for (int i = 0; i < 40; ++i) f();
    return engine().counters().queued - before;
  }
};

TEST(WaitingCalls, RunOnTheThreadThatWaits) {
  const Product product;
  const std::vector<float> expected = values_of(product.call());
  std::vector<float> last;
  const uint64_t queued = Product::queued_of_40([&] { last = values_of(product.call()); });
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // sanitizers: slower than the time in which a
                                                                     // caller may begin to wait
  EXPECT_LT(queued, 20U);  // none, unless other threads used the core between many calls and their waits
#else
  (void)queued;
#endif
  EXPECT_EQ(last, expected);
}

TEST(WaitingCalls, TwoCallsBeforeAWaitAreQueued) {
  const Product product;
  EXPECT_EQ(Product::queued_of_40([&] {
              const NDArray first = product.call(), second = product.call();
              second.wait_to_read();
              first.wait_to_read();
            }),
            80U);
}

// A row of a product too long for the calling thread by itself; it fails for row 700.
struct RowOfProduct {
  Ref<GraphCallable> op;
  NDArray matrix = random_array({700, 700}, 1);
  RowOfProduct() {
    Runtime::get();
    const NodeEntry x = var("x"), rows = var("rows");
    const Symbol symbol{{use("take", {use("dot", {x, x}), rows}, {{"mode", "raise"}})}};
    op = make_ref<GraphCallable>(symbol, CallOptions{});
    for (int i = 0; i < 5; ++i) call(3).wait_to_read();
  }
  // The row number is in an array whose last user is this call.
  NDArray call(float row) const { return op->call(std::vector<NDArray>{matrix, make_array({1}, {row})})[0]; }
};

// Failures surface at the wait, on every thread that may run the plan.
TEST(WaitingCalls, FailuresSurfaceAtTheWait) {
  const RowOfProduct net;
  const NDArray failed = net.call(700);
  EXPECT_THROW(failed.wait_to_read(), IndexError);
  EXPECT_EQ(values_of(net.call(3)).size(), 700U);
}

// Otherwise new arrays would reuse the memory, and the variables, of the failed call's arrays.
TEST(WaitingCalls, AFailureKeepsTheArraysOfItsCallUntilItHasBeenNoted) {
  const RowOfProduct net;
  for (int i = 0; i < 100; ++i) {
    const NDArray failed = net.call(700);
    std::vector<NDArray> fresh;
    for (int k = 0; k < 8; ++k) fresh.push_back(NDArray::empty({Shape{1}, DType::kFloat32}));
    EXPECT_THROW(failed.wait_to_read(), IndexError);
    engine().wait_all();
    for (const NDArray& array : fresh) ASSERT_TRUE(array.var().idle()) << "call " << i;
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
