#include "engine/early_writes.h"

#include <stdexcept>

#include "engine_fixture.h"

namespace hybridnet {
namespace {

class EarlyWritesTest : public ThreadedEngineTest {};

TEST_F(EarlyWritesTest, ReadersRunBeforeTheTaskEnds) {
  Var early, late;
  Gate read;
  int value = 0, seen = 0;
  push({}, {&early, &late}, [&] {
    value = 7;
    EarlyWrites::of_running_task()->end(early);
    read.pass();  // blocks for good if the reader below waits for the end of this task
    value = 8;
  });
  push({&early}, {}, [&] {
    seen = value;
    read.open();
  });
  engine->wait_for_var(late);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(value, 8);
}

TEST_F(EarlyWritesTest, AnEndedWriteCountsOnce) {
  Var early, late;
  const uint64_t before = early.version();
  push({}, {&early, &late}, [&] {
    EarlyWrites::of_running_task()->end(early);
    EarlyWrites::of_running_task()->end(early);
  });
  engine->wait_for_var(late);
  EXPECT_EQ(early.version(), before + 1);
  EXPECT_TRUE(early.idle());
}

TEST_F(EarlyWritesTest, AWriterMayFollowAtOnce) {
  Var early, late;
  Gate written;
  int value = 0;
  push({}, {&early, &late}, [&] {
    EarlyWrites::of_running_task()->end(early);
    written.pass();
  });
  push({}, {&early}, [&] {
    value = 1;
    written.open();
  });
  engine->wait_for_var(early);
  engine->wait_for_var(late);
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(early.idle());
}

TEST_F(EarlyWritesTest, ALaterErrorStaysOnTheOtherVariables) {
  Var early, late;
  push({}, {&early, &late}, [&] {
    EarlyWrites::of_running_task()->end(early);
    throw std::runtime_error("later");
  });
  bool ran = false;
  push({&early}, {}, [&] { ran = true; });
  EXPECT_NO_THROW(engine->wait_for_var(early));
  EXPECT_TRUE(ran);
  EXPECT_THROW(engine->wait_to_read(late), Error);
}

TEST_F(EarlyWritesTest, OthersThanOwnWritesAreLeftAlone) {
  Var read, other, written;
  Gate pushed;
  push({&read}, {&written}, [&] {
    EarlyWrites::of_running_task()->end(read);
    EarlyWrites::of_running_task()->end(other);
    pushed.pass();
  });
  EXPECT_FALSE(begin({}, {&read}, {.cost_ns = 1}));
  pushed.open();
  engine->wait_for_var(written);
  EXPECT_TRUE(read.idle());
  EXPECT_EQ(other.version(), 0U);
}

TEST(EarlyWritesOfOtherThreads, AreNone) {
  EXPECT_EQ(EarlyWrites::of_running_task(), nullptr);
  const std::unique_ptr<Engine> serial = make_serial_engine();
  Var var;
  Var* const writes[] = {&var};
  EarlyWrites* found = nullptr;
  bool ran = false;
  serial->push(
      [&](TaskContext&) {
        found = EarlyWrites::of_running_task();
        ran = true;
      },
      {{}, writes}, {});
  EXPECT_TRUE(ran);
  EXPECT_EQ(found, nullptr);
}

}  // namespace
}  // namespace hybridnet
