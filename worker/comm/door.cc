#include "worker/comm/door.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"

namespace assay::comm {
namespace {

constexpr uint32_t kWholePacket = 0xFFFFFFFF;
constexpr char kNoFilter[] = "cannot filter who reaches the ranks' TCP ports: errno=";
// From the packet's network header, wherever the filter sees it begin (linux/filter.h).
constexpr uint32_t kSourceAddress = static_cast<uint32_t>(SKF_NET_OFF) + 12;

bool IsListening(int fd) {
  int domain = 0;
  int is_listening = 0;
  socklen_t size = sizeof domain;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  if (domain != AF_INET && domain != AF_INET6) return false;
  size = sizeof is_listening;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening != 0;
}

std::set<int> ListeningSockets() {
  std::set<int> sockets;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory("/proc/self/fd");
  if (!names.ok()) return sockets;
  for (const std::string& name : *names) {
    int fd = 0;
    if (absl::SimpleAtoi(name, &fd) && IsListening(fd)) sockets.insert(fd);
  }
  return sockets;
}

bool Attach(const std::set<int>& sockets, std::vector<sock_filter> code) {
  const sock_fprog program = {.len = static_cast<uint16_t>(code.size()), .filter = code.data()};
  return std::all_of(sockets.begin(), sockets.end(), [&](int fd) {
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
  });
}

sock_filter Return(uint32_t bytes) {
  return BPF_STMT(BPF_RET | BPF_K, bytes);
}

}  // namespace

void Door::Watch(absl::FunctionRef<void()> open) {
  // Ranks that are threads of one process (tests) must not take each other's sockets.
  static Mutex one_at_a_time;
  MutexLock lock(&one_at_a_time);
  const std::set<int> before = ListeningSockets();
  open();
  const std::set<int> after = ListeningSockets();
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::inserter(sockets_, sockets_.end()));
  Shut();
}

void Door::AdmitOnly(const std::vector<std::string>& hosts) const {
  std::set<uint32_t> addresses;
  for (const std::string& host : hosts) {
    in_addr address = {};
    if (inet_pton(AF_INET, host.c_str(), &address) != 1) return AdmitAll();
    addresses.insert(ntohl(address.s_addr));
  }
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceAddress)};
  for (const uint32_t address : addresses) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, address, 0, 1));
    code.push_back(Return(kWholePacket));
  }
  code.push_back(Return(0));
  // So many hosts may be more than the kernel keeps for one socket (net.core.optmem_max).
  if (!Attach(sockets_, std::move(code))) AdmitAll();
}

void Door::AdmitAll() const {
  if (!Attach(sockets_, {Return(kWholePacket)})) LOG(WARNING) << kNoFilter << errno;
}

void Door::Shut() const {
  if (!Attach(sockets_, {Return(0)})) LOG(WARNING) << kNoFilter << errno;
}

std::string InterfaceOf(absl::string_view address) {
  in_addr wanted = {};
  if (inet_pton(AF_INET, std::string(address).c_str(), &wanted) != 1) return "";
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(found, &freeifaddrs);
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const auto* const own = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (own->sin_addr.s_addr == wanted.s_addr) return entry->ifa_name;
  }
  return "";
}

}  // namespace assay::comm
