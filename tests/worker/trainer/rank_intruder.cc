// Somebody on the network who is no rank: attacks TCP ports of ranks until it is killed.
//
//   rank_intruder HOST PORT...
//
// Connects to each port again and again, says things that only ranks should say (frames of the
// rendezvous, UCX's own packets with messages of several lengths, and nonsense), and keeps some
// connections open. The first time that a port takes a connection, and the first time that it does
// not answer, a line says so.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <set>
#include <span>
#include <string>

#include "common/file.h"

namespace assay {
namespace {

constexpr int kAnswerMs = 50;            // on this host an answer takes less than one
constexpr size_t kConnectionsMax = 200;  // held open

template <typename T>
std::string Bytes(T number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

// UCX 1.13 over TCP: a magic number, then packets of an id, a length and a body.
std::string UcxPacket(uint8_t id, const std::string& body) {
  return Bytes(id) + Bytes(static_cast<uint32_t>(body.size())) + body;
}

std::string UcxGreeting(const sockaddr_in& own) {
  constexpr uint64_t kMagic = 0xCAFEBABE12345678;
  std::string address(reinterpret_cast<const char*>(&own), 16);
  const std::string body = Bytes(uint32_t{1}) + Bytes(uint8_t{0}) + Bytes(uint64_t{77}) + address;
  return Bytes(kMagic) + UcxPacket(32, body);
}

// Messages with the tags of rank 0's first collective operations.
std::string UcxMessages(size_t bytes) {
  std::string all;
  for (uint64_t i = 0; i < 200; ++i)
    all += UcxPacket(2, Bytes((uint64_t{1} << 31) + i) + std::string(bytes, '\x41'));
  return all;
}

// What is said on the `turn`-th connection.
std::string Speech(int turn, const sockaddr_in& own) {
  switch (turn % 6) {
    case 0:
      return UcxGreeting(own) + UcxMessages(8) + UcxMessages(3000);
    case 1:
      return UcxGreeting(own) + UcxPacket(2, std::string(60'000, 'x'));
    case 2:
      return UcxGreeting(own) + UcxPacket(27, "?") + std::string(1000, '\xff');
    case 3:
      return std::string("\0\0\0\x15\x01\0\0\0\x02\0\0\0\x01\0\0", 15) + "assay-rendezvous 2";
    case 4:
      return std::string(64, '\xff');
    default:
      return "";
  }
}

class Intruder {
 public:
  Intruder(const char* host, std::span<char*> ports) {
    for (const char* port : ports) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
      if (inet_pton(AF_INET, host, &address.sin_addr) == 1) targets_.push_back(address);
    }
  }

  [[noreturn]] void Attack() {
    for (int turn = 0;; ++turn) {
      for (const sockaddr_in& target : targets_)
        AttackOnce(target, turn);
    }
  }

 private:
  void AttackOnce(const sockaddr_in& target, int turn) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target);
    pollfd waiting{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    const bool is_answered = poll(&waiting, 1, kAnswerMs) == 1;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (is_answered && error != 0) return;  // nobody listens any more
    const int port = ntohs(target.sin_port);
    if (said_.emplace(port, is_answered).second)
      std::cout << port << (is_answered ? " connected" : " gives no answer") << std::endl;
    if (!is_answered) return;
    sockaddr_in own{};
    size = sizeof own;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size);
    const std::string speech = Speech(turn, own);
    send(fd.get(), speech.data(), speech.size(), MSG_NOSIGNAL);
    held_.push_back(std::move(fd));
    if (held_.size() > kConnectionsMax) held_.pop_front();
  }

  std::deque<sockaddr_in> targets_;
  std::deque<UniqueFd> held_;
  std::set<std::pair<int, bool>> said_;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  assay::Intruder(argv[1], std::span<char*>(argv + 2, static_cast<size_t>(argc - 2))).Attack();
}
