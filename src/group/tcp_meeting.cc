#include "group/tcp_meeting.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/sha256.h"
#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The messages, in the byte order of the machines (x86 and ARM agree; cards are compared afterwards).
//   server: Hello. client: code, Request, key, value. server: code, Reply, value.
// A code is the HMAC of the other side's random number and of all that follows the code.
constexpr uint32_t kMagic = 0x314d'4748;  // "HGM1"
constexpr uint32_t kMaxValue = 1 << 16;
constexpr auto kAnswerTimeout = milliseconds(2'000);
constexpr auto kConnectTimeout = milliseconds(2'000), kLostFor = milliseconds(10'000);
constexpr auto kPause = milliseconds(50);

struct Hello {
  uint32_t magic;
  uint8_t number[32];
};
struct Request {
  uint32_t magic = kMagic;
  uint8_t operation = 0;  // 1: put, 2: get
  uint8_t key_bytes = 0;
  uint16_t padding = 0;
  uint32_t value_bytes = 0;
  uint32_t timeout_ms = 0;
  uint8_t number[32] = {};
};
struct Reply {
  int32_t status = 0;  // 0: done, 1: no value in time, 2: another value is there
  uint32_t value_bytes = 0;
};
static_assert(sizeof(Hello) == 36 && sizeof(Request) == 48 && sizeof(Reply) == 8);

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class Connection {
 public:
  ~Connection() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool open(const addrinfo& address, Clock::time_point end) {
    socket_ = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return false;
    if (::connect(socket_, address.ai_addr, address.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS || !ready(POLLOUT, end)) return false;
    int failure = 0;
    socklen_t size = sizeof failure;
    return ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
  }
  bool write(std::string_view bytes, Clock::time_point end) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (!may_repeat() || !ready(POLLOUT, end)) {
        return false;
      }
    }
    return true;
  }
  bool read(void* data, size_t bytes, Clock::time_point end) {
    char* to = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t got = ::recv(socket_, to, bytes, 0);
      if (got > 0) {
        to += got;
        bytes -= static_cast<size_t>(got);
      } else if (got == 0 || !may_repeat() || !ready(POLLIN, end)) {
        return false;
      }
    }
    return true;
  }

 private:
  static bool may_repeat() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
  bool ready(short events, Clock::time_point end) const {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{socket_, events, 0};
    const int found = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1'000'000)));
    return found > 0 || (found < 0 && errno == EINTR);
  }
  int socket_ = -1;
};

class TcpMeeting final : public Meeting {
 public:
  TcpMeeting(std::string host, std::string port, std::string token, milliseconds put_timeout)
      : host_(std::move(host)), port_(std::move(port)), token_(std::move(token)), put_timeout_(put_timeout) {}

  bool put(const char* key, const void* data, size_t bytes) noexcept override {
    Reply reply;
    std::string unused;
    return bytes <= kMaxValue && call(1, key, {static_cast<const char*>(data), bytes}, put_timeout_, &reply, &unused) &&
           reply.status == 0;
  }
  int64_t get(const char* key, void* data, size_t capacity, int64_t timeout_ms) noexcept override {
    Reply reply;
    std::string value;
    if (!call(2, key, {}, milliseconds(timeout_ms), &reply, &value) || reply.status != 0) return -1;
    std::memcpy(data, value.data(), std::min(capacity, value.size()));
    return static_cast<int64_t>(value.size());
  }

 private:
  // Until the server has answered once, it may not have been started yet, and requests are repeated.
  bool call(uint8_t operation, std::string_view key, std::string_view value, milliseconds timeout, Reply* reply,
            std::string* answer) noexcept {
    if (key.empty() || key.size() > 200 || is_lost()) return false;
    const auto end = Clock::now() + timeout;
    try {
      for (;;) {
        if (try_call(operation, key, value, end, reply, answer)) return answered_ = true;
        if (answered_) lost_ms_ = now_ms();
        if (answered_ || Clock::now() + kPause >= end) return false;
        std::this_thread::sleep_for(kPause);
      }
    } catch (const std::exception&) {
      return false;
    }
  }

  bool try_call(uint8_t operation, std::string_view key, std::string_view value, Clock::time_point end, Reply* reply,
                std::string* answer) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found) != 0) return false;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    const auto answered_by = std::max(end, Clock::now() + milliseconds(1)) + kAnswerTimeout;
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
      Connection connection;
      if (connection.open(*address, std::min(answered_by, Clock::now() + kConnectTimeout)) &&
          ask(connection, operation, key, value, end, answered_by, reply, answer))
        return true;
    }
    return false;
  }

  bool ask(Connection& connection, uint8_t operation, std::string_view key, std::string_view value,
           Clock::time_point end, Clock::time_point answered_by, Reply* reply, std::string* answer) {
    Hello hello{};
    if (!connection.read(&hello, sizeof hello, answered_by) || hello.magic != kMagic) return false;
    Request request;
    request.operation = operation;
    request.key_bytes = static_cast<uint8_t>(key.size());
    request.value_bytes = static_cast<uint32_t>(value.size());
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
    request.timeout_ms = static_cast<uint32_t>(std::clamp<int64_t>(left, 1, UINT32_MAX));
    if (::getrandom(request.number, sizeof request.number, 0) != sizeof request.number) return false;
    std::string body(bytes_of(request));
    body.append(key).append(value);
    if (!connection.write(bytes_of(code("client", bytes_of(hello.number), body)), answered_by) ||
        !connection.write(body, answered_by))
      return false;
    Digest theirs{};
    if (!connection.read(&theirs, sizeof theirs, answered_by) || !connection.read(reply, sizeof *reply, answered_by) ||
        reply->value_bytes > kMaxValue)
      return false;
    answer->resize(reply->value_bytes);
    if (!connection.read(answer->data(), answer->size(), answered_by)) return false;
    std::string text(bytes_of(*reply));
    text.append(*answer);
    return equal(theirs, code("server", bytes_of(request.number), text));
  }

  Digest code(const char* side, std::string_view number, std::string_view body) const {
    std::string text(side);
    text.append(number).append(body);
    return hmac_sha256(token_, text);
  }

  static int64_t now_ms() { return std::chrono::duration_cast<milliseconds>(Clock::now().time_since_epoch()).count(); }
  // A server that answers no longer is not asked for a while, since each attempt may take seconds.
  bool is_lost() const { return lost_ms_ != 0 && now_ms() - lost_ms_ < kLostFor.count(); }

  const std::string host_, port_, token_;
  const milliseconds put_timeout_;
  std::atomic<bool> answered_{false};
  std::atomic<int64_t> lost_ms_{0};  // 0: never
};

}  // namespace

std::unique_ptr<Meeting> open_tcp_meeting(const std::string& place, const std::string& token, int64_t timeout_ms) {
  const size_t colon = place.rfind(':');
  const bool valid = colon != place.npos && colon > 0 && colon + 1 < place.size() && place.size() - colon <= 6 &&
                     std::all_of(place.begin() + static_cast<ptrdiff_t>(colon) + 1, place.end(),
                                 [](char c) { return c >= '0' && c <= '9'; });
  if (!valid)
    throw ValueError({.expected = "tcp://HOST:PORT",
                      .given = "'tcp://" + place + "'",
                      .message = "the address at which the processes of a group meet"});
  if (token.empty())
    throw ValueError(
        {.message = "a meeting by TCP needs a token", .fix = "give all processes the same HYBRIDNET_GROUP_TOKEN_FILE"});
  const bool in_brackets = place.front() == '[' && place[colon - 1] == ']';  // an IPv6 address
  const std::string host = in_brackets ? place.substr(1, colon - 2) : place.substr(0, colon);
  return std::make_unique<TcpMeeting>(host, place.substr(colon + 1), token, milliseconds(timeout_ms));
}

}  // namespace hybridnet::group
