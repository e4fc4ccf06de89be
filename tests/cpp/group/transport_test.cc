#include "group/transport.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "group/folder_meeting.h"
#include "group/transport_library.h"
#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

class Gloo : public testing::Test {
 protected:
  void SetUp() override {
    try {
      library_ = load_transport("gloo");
    } catch (const Error&) {
      GTEST_SKIP() << "this build has no Gloo";
    }
    std::string folder = testing::TempDir() + "meetingXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    before_threads_ = entries("/proc/self/task");
    before_sockets_ = entries("/proc/self/fd");
    std::thread other([this] { ends_[1] = connect(1); });
    ends_[0] = connect(0);
    other.join();
    ASSERT_TRUE(ends_[0] && ends_[1]);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  static std::set<std::string> entries(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }
  // The connected sockets that were opened by this test.
  std::vector<int> new_sockets() const {
    std::vector<int> sockets;
    for (const std::string& name : entries("/proc/self/fd")) {
      sockaddr_storage address{};
      socklen_t bytes = sizeof(address);
      const int descriptor = std::stoi(name);
      if (before_sockets_.count(name) == 0 &&
          getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) == 0)
        sockets.push_back(descriptor);
    }
    return sockets;
  }

  std::unique_ptr<Transport> ends_[2];
  std::set<std::string> before_threads_, before_sockets_;

 private:
  std::unique_ptr<Transport> connect(int rank) const {
    const std::unique_ptr<Meeting> meeting = open_folder_meeting(folder_);
    const TransportRequest request{.rank = rank, .size = 2, .meeting = meeting.get(), .timeout_ms = 20'000};
    char reason[256] = "";
    return std::unique_ptr<Transport>(library_.make(&request, reason, sizeof(reason)));
  }

  TransportLibrary library_;
  std::string folder_;
};

// Gloo writes to sockets by writev, which raises SIGPIPE when the connection has ended. Python and Java ignore that
// signal; the default of C++ ends the process without a word.
TEST_F(Gloo, AConnectionThatHasEndedIsNotASignal) {
  auto* const before = std::signal(SIGPIPE, SIG_DFL);
  const char value = 1;
  // Gloo learns of it by the error of a write.
  for (int socket : new_sockets()) shutdown(socket, SHUT_WR);
  const std::unique_ptr<Transfer> transfer(ends_[0]->start_send(1, 0, &value, 1));
  if (transfer) {
    for (int tries = 0; tries < 200 && transfer->wait() == Progress::kPending; ++tries) continue;
  }
  std::signal(SIGPIPE, before);
}

TEST_F(Gloo, ItsThreadsAreNotEndedBySignalsOfConnections) {
  int threads = 0;
  for (const std::string& thread : entries("/proc/self/task")) {
    if (before_threads_.count(thread) > 0) continue;
    std::ifstream status("/proc/self/task/" + thread + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) != 0) continue;
      EXPECT_NE(std::stoull(line.substr(7), nullptr, 16) & (1ull << (SIGPIPE - 1)), 0u);
      ++threads;
    }
  }
  EXPECT_GE(threads, 2);
}

}  // namespace
}  // namespace hybridnet::group
