#include "plan/request_queue.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace hybridnet {
namespace {

using Queue = RequestQueue<int>;

std::vector<int> taken(Queue& queue) {
  std::vector<int> batch;
  queue.take([&](int request) { batch.push_back(request); });
  return batch;
}

TEST(RequestQueue, RequestsShareACallUpToItsRowsInTheirOrder) {
  Queue queue({.max_rows = 5});
  for (int i = 0; i < 4; ++i) queue.push(i, 2, 0);
  EXPECT_EQ(taken(queue), (std::vector<int>{0, 1}));
  queue.end_call();
  queue.push(4, 1, 0);
  EXPECT_EQ(taken(queue), (std::vector<int>{2, 3, 4}));
}

TEST(RequestQueue, ARequestOfMoreRowsHasACallOfItsOwn) {
  Queue queue({.max_rows = 4});
  queue.push(0, 9, 0);
  queue.push(1, 1, 0);
  queue.push(2, 9, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(taken(queue), (std::vector<int>{i}));
    queue.end_call();
  }
  EXPECT_TRUE(queue.is_idle());
}

TEST(RequestQueue, TheOldestWaitsForOthersUntilTheCallIsFull) {
  Queue queue({.max_rows = 3, .max_wait_ns = 100});
  EXPECT_EQ(queue.next_start(), std::nullopt);
  queue.push(0, 1, 50);
  queue.push(1, 1, 90);
  EXPECT_EQ(queue.next_start(), 150);
  EXPECT_FALSE(queue.has_full_call());
  queue.push(2, 1, 95);
  EXPECT_EQ(queue.next_start(), 50);
  EXPECT_EQ(taken(queue), (std::vector<int>{0, 1, 2}));
  queue.end_call();
  queue.push(3, 1, 200);
  EXPECT_EQ(queue.next_start(), 300);
  queue.close();
  EXPECT_EQ(queue.next_start(), 200);
}

TEST(RequestQueue, NoMoreCallsRunThanMay) {
  Queue queue({.max_rows = 1, .calls = 2});
  for (int i = 0; i < 3; ++i) queue.push(i, 1, i);
  taken(queue);
  EXPECT_EQ(queue.next_start(), 1);
  taken(queue);
  EXPECT_EQ(queue.next_start(), std::nullopt);
  EXPECT_EQ(*queue.front(), 2);
  queue.end_call();
  EXPECT_EQ(queue.next_start(), 2);
  taken(queue);
  EXPECT_EQ(queue.front(), nullptr);
  EXPECT_FALSE(queue.is_idle());
}

TEST(RequestQueue, ItIsFullWhenAsManyWaitAsMay) {
  Queue queue({.max_waiting = 2});
  queue.push(0, 1, 0);
  EXPECT_FALSE(queue.is_full());
  queue.push(1, 1, 0);
  EXPECT_TRUE(queue.is_full());
  EXPECT_EQ(queue.num_waiting(), 2u);
  taken(queue);
  EXPECT_FALSE(queue.is_full());
}

}  // namespace
}  // namespace hybridnet
