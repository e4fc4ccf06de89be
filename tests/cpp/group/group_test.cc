#include "group/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>

#include "group/hub.h"

namespace hybridnet::group {
namespace {

using Values = std::vector<float>;

Values leaf(int shard, int64_t count) {
  std::mt19937 random(static_cast<unsigned>(shard) * 7919u + static_cast<unsigned>(count));
  std::normal_distribution<float> normal(0.0f, 100.0f);
  Values values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

Call sum_call(int64_t count, const std::string& label = "x") {
  return {.kind = Call::Kind::kSum, .dtype = DType::kFloat32, .count = count, .label = label};
}

// The arrays of a process: the sum over the leaves of each of its nodes.
std::vector<Values> own_nodes(const Group& group, int64_t count) {
  std::vector<Values> nodes;
  for (const Shards& node : covering_nodes(group.own_shards(), group.shards())) {
    std::vector<Values> leaves;
    std::vector<Row> rows;
    for (int shard = node.begin; shard < node.end; ++shard) leaves.push_back(leaf(shard, count));
    for (int i = 0; i < node.end - node.begin; ++i) rows.push_back({{i, i + 1}, leaves[static_cast<size_t>(i)].data()});
    nodes.emplace_back(static_cast<size_t>(count));
    add_tree(DType::kFloat32, rows, count, nodes.back().data());
  }
  return nodes;
}

Values sum_in_group(Group& group, int64_t count) {
  const std::vector<Values> nodes = own_nodes(group, count);
  std::vector<const void*> pointers;
  for (const Values& node : nodes) pointers.push_back(node.data());
  Values out(static_cast<size_t>(count));
  Call call = sum_call(count);
  call.shards = group.shards();
  group.sum(call, group.next_number(), pointers, out.data());
  return out;
}

TEST(Group, SumsHaveTheSameBitsForEveryNumberOfProcessesAndEveryTiming) {
  constexpr int kShards = 5;
  for (int64_t count : {0, 1, 17, 5000, 40'000}) {
    Values expected;
    for (int size = 1; size <= kShards; ++size) {
      for (unsigned seed = 0; seed < 3; ++seed) {
        Hub hub;
        std::mt19937 random(seed);
        if (seed > 0) hub.delay = [&] { return std::chrono::microseconds(random() % 3000); };
        std::mutex mutex;
        std::vector<Values> sums;
        const auto errors = run_processes(hub, size,
                                          [&](Group& group) {
                                            Values sum = sum_in_group(group, count);
                                            const std::lock_guard lock(mutex);
                                            sums.push_back(std::move(sum));
                                          },
                                          {.shards = kShards});
        for (const std::string& error : errors) EXPECT_EQ(error, "");
        for (const Values& sum : sums) {
          if (expected.empty()) expected = sum;
          EXPECT_EQ(sum, expected) << size << " processes";
        }
      }
    }
  }
}

TEST(Group, WritesSumsInPlace) {
  for (int size : {1, 2, 3, 4}) {
    for (int64_t count : {3, 50'000}) {
      Hub hub;
      const auto errors = run_processes(hub, size, [&](Group& group) {
        Values values(static_cast<size_t>(count), static_cast<float>(group.rank() + 1));
        const void* node = values.data();
        group.sum(sum_call(count), group.next_number(), {&node, 1}, values.data());
        const float total = static_cast<float>(size * (size + 1) / 2);
        EXPECT_EQ(values, Values(static_cast<size_t>(count), total));
      });
      for (const std::string& error : errors) EXPECT_EQ(error, "");
    }
  }
}

TEST(Group, GathersAndBroadcasts) {
  for (int size : {1, 2, 3, 5}) {
    for (int64_t count : {1, 100, 30'000}) {
      Hub hub;
      const auto errors = run_processes(hub, size, [&](Group& group) {
        Values values(static_cast<size_t>(count));
        std::iota(values.begin(), values.end(), static_cast<float>(100 * group.rank()));
        Call call = sum_call(count);
        Values all(static_cast<size_t>(count * size));
        call.kind = Call::Kind::kGather;
        group.gather(call, group.next_number(), values.data(), all.data());
        for (int rank = 0; rank < size; ++rank)
          EXPECT_EQ(all[static_cast<size_t>(rank * count)], static_cast<float>(100 * rank));

        call.kind = Call::Kind::kBroadcast;
        for (call.root = 0; call.root < size; ++call.root) {
          std::iota(values.begin(), values.end(), static_cast<float>(1000 * group.rank()));
          group.broadcast(call, group.next_number(), values.data());
          Values expected(static_cast<size_t>(count));
          std::iota(expected.begin(), expected.end(), static_cast<float>(1000 * call.root));
          EXPECT_EQ(values, expected);
        }
      });
      for (const std::string& error : errors) EXPECT_EQ(error, "");
    }
  }
}

TEST(Group, SplitsArraysOfEverySizeIntoPartsThatCoverThem) {
  for (int64_t count :
       {int64_t{0}, int64_t{1}, int64_t{15}, int64_t{16}, int64_t{17}, int64_t{1000}, int64_t{1} << 55}) {
    for (int parts : {1, 2, 3, 7, 64}) {
      EXPECT_EQ(Group::part_begin(count, 0, parts), 0);
      EXPECT_EQ(Group::part_begin(count, parts, parts), count);
      for (int part = 0; part < parts; ++part)
        EXPECT_LE(Group::part_begin(count, part, parts), Group::part_begin(count, part + 1, parts));
    }
  }
}

TEST(Group, SendsTwoTimesTheValuesLessTheOwnPart) {
  constexpr int64_t kCount = 96'000;
  for (int size : {2, 3, 4}) {
    Hub hub;
    run_processes(hub, size, [&](Group& group) {
      const uint64_t before = group.bytes_sent();
      sum_in_group(group, kCount);
      const double expected = 2.0 * (size - 1) / size * kCount * sizeof(float);
      EXPECT_NEAR(static_cast<double>(group.bytes_sent() - before), expected, 0.01 * expected);
    });
  }
}

// Rank 2 of three makes another call than the others.
std::vector<std::string> errors_if_one_differs(const std::function<void(Group&)>& usual,
                                               const std::function<void(Group&)>& other) {
  Hub hub;
  return run_processes(hub, 3, [&](Group& group) { (group.rank() == 2 ? other : usual)(group); }, {.timeout_ms = 2000});
}

void sum_zeros(Group& group, const Call& call) {
  std::vector<double> zeros(static_cast<size_t>(call.count));
  const void* node = zeros.data();
  group.sum(call, group.next_number(), {&node, 1}, zeros.data());
}

TEST(Group, DisagreementsAreNamedInTheSameWordsEverywhere) {
  const auto usual = [](Group& group) { sum_zeros(group, sum_call(8, "a")); };
  Call other_shape = sum_call(8, "a");
  other_shape.shapes = 5;
  Call other_dtype = sum_call(8, "a");
  other_dtype.dtype = DType::kFloat64;
  const std::function<void(Group&)> others[] = {
      [](Group& group) { sum_zeros(group, sum_call(9, "a")); },
      [](Group& group) { sum_zeros(group, sum_call(8, "b")); },
      [&](Group& group) { sum_zeros(group, other_shape); },
      [&](Group& group) { sum_zeros(group, other_dtype); },
      [](Group& group) { group.barrier(group.next_number()); },
      [](Group& group) {
        float value[8] = {};
        Call call = sum_call(8, "a");
        call.kind = Call::Kind::kBroadcast;
        group.broadcast(call, group.next_number(), value);
      },
  };
  for (const auto& other : others) {
    const auto errors = errors_if_one_differs(usual, other);
    EXPECT_NE(errors[0].find("disagree in call 1"), std::string::npos) << errors[0];
    EXPECT_NE(errors[0].find("rank 2 of 3"), std::string::npos) << errors[0];
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_EQ(errors[0], errors[2]);
  }
}

TEST(Group, TwoSumsInOppositeOrderAreAnErrorAndNoWrongValue) {
  const auto errors = errors_if_one_differs(
      [](Group& group) {
        sum_zeros(group, sum_call(8, "a"));
        sum_zeros(group, sum_call(8, "b"));
      },
      [](Group& group) {
        sum_zeros(group, sum_call(8, "b"));
        sum_zeros(group, sum_call(8, "a"));
      });
  for (const std::string& error : errors) EXPECT_NE(error.find("disagree"), std::string::npos) << error;
}

TEST(Group, AProcessThatLeavesIsNamedWithItsReason) {
  const auto errors = errors_if_one_differs([](Group& group) { sum_zeros(group, sum_call(8)); },
                                            [](Group& group) {
                                              group.leave("ValueError: boom");
                                              throw std::runtime_error("own");
                                            });
  for (int rank : {0, 1}) {
    EXPECT_NE(errors[static_cast<size_t>(rank)].find("rank 2 said: ValueError: boom"), std::string::npos)
        << errors[static_cast<size_t>(rank)];
  }
  EXPECT_EQ(errors[2], "own");
}

TEST(Group, AProcessThatDoesNotComeInTimeIsNamedWithItsLastCall) {
  Hub hub;
  std::atomic<int> failed{0};
  const auto errors = run_processes(hub, 3,
                                    [&](Group& group) {
                                      sum_zeros(group, sum_call(8, "first"));
                                      if (group.rank() == 1) {
                                        while (failed < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                        return;
                                      }
                                      try {
                                        sum_zeros(group, sum_call(8, "second"));
                                      } catch (const GroupError&) {
                                        ++failed;
                                        throw;
                                      }
                                    },
                                    {.timeout_ms = 300});
  for (int rank : {0, 2}) {
    const std::string& error = errors[static_cast<size_t>(rank)];
    EXPECT_NE(error.find("rank 1 of 3"), std::string::npos) << error;
    EXPECT_NE(error.find("stopped answering; the sum of second (call 2) waited 0."), std::string::npos) << error;
    EXPECT_NE(error.find("last took part in the sum of first (call 1)"), std::string::npos) << error;
  }
  EXPECT_NE(errors[1], "");
}

TEST(Group, ALostMessageIsAnErrorAndNoWrongValue) {
  for (int lost = 0; lost < 12; ++lost) {
    Hub hub;
    std::atomic<bool> joined{false};
    int count = 0;  // under the mutex of the hub
    hub.deliver = [&](int, int, std::vector<char>&) { return !joined || count++ != lost; };
    std::atomic<int> ready{0};
    const auto errors = run_processes(hub, 3,
                                      [&](Group& group) {
                                        ++ready;
                                        while (ready < 3) std::this_thread::yield();
                                        joined = true;
                                        const Values sum = sum_in_group(group, 50'000);
                                        EXPECT_EQ(sum.size(), 50'000u);
                                      },
                                      {.timeout_ms = 200});
    for (const std::string& error : errors) EXPECT_NE(error.find("rank "), std::string::npos) << lost << ": " << error;
  }
}

TEST(Group, AfterAnErrorEveryCallHasTheSameError) {
  Hub hub;
  run_processes(hub, 2,
                [&](Group& group) {
                  if (group.rank() == 1) throw std::runtime_error("gone");
                  std::string first, second;
                  for (std::string* text : {&first, &second}) {
                    try {
                      sum_zeros(group, sum_call(8));
                    } catch (const GroupError& error) {
                      *text = error.what();
                    }
                  }
                  EXPECT_NE(first, "");
                  EXPECT_EQ(first, second);
                },
                {.timeout_ms = 1000});
}

TEST(Group, AProcessWithoutTheTokenIsRefused) {
  Hub hub;
  hub.closed.assign(2, false);
  std::string errors[2];
  std::vector<std::thread> threads;
  for (int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      try {
        Group group({.rank = rank, .size = 2, .token = std::string(32, rank == 0 ? 'a' : 'b'), .timeout_ms = 1000},
                    std::make_unique<HubMeeting>(hub));
        group.connect(&make_hub_transport);
      } catch (const GroupError& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(errors[0].find("does not know the token"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("does not know the token"), std::string::npos) << errors[1];
}

TEST(Group, ProcessesThatDifferAreRefusedBeforeTheyConnect) {
  Hub hub;
  hub.closed.assign(2, false);
  ProcessCard card = ProcessCard::of_this_process(1, 2, 0, "gloo");
  std::memcpy(card.version, "0.0.1", 6);
  HubMeeting(hub).put("0.card.1", &card, sizeof card);
  Group group({.rank = 0, .size = 2, .token = std::string(32, 'a'), .timeout_ms = 1000},
              std::make_unique<HubMeeting>(hub));
  try {
    group.connect(&make_hub_transport);
    FAIL();
  } catch (const GroupError& error) {
    EXPECT_NE(std::string(error.what()).find("and version 0.0.1"), std::string::npos) << error.what();
  }
}

TEST(Group, MissingProcessesAreNamed) {
  Hub hub;
  hub.closed.assign(4, false);
  const ProcessCard card = ProcessCard::of_this_process(1, 4, 0, "gloo");
  HubMeeting(hub).put("0.card.1", &card, sizeof card);
  Group group({.rank = 0, .size = 4, .token = std::string(32, 'a'), .timeout_ms = 50},
              std::make_unique<HubMeeting>(hub));
  try {
    group.connect(&make_hub_transport);
    FAIL();
  } catch (const GroupError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 2, 3 of 4 did not come"), std::string::npos) << error.what();
  }
}

TEST(Group, WrongPlacesAreErrors) {
  EXPECT_THROW(Group({.rank = 2, .size = 2}, nullptr), ValueError);
  EXPECT_THROW(Group({.rank = -1, .size = 2}, nullptr), ValueError);
  EXPECT_THROW(Group({.rank = 0, .size = 0}, nullptr), ValueError);
  EXPECT_THROW(Group({.rank = 0, .size = 4, .shards = 3}, nullptr), ValueError);
}

}  // namespace
}  // namespace hybridnet::group
