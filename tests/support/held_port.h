// A TCP port of this machine that a program under test is told to listen on.

#ifndef TESTS_SUPPORT_HELD_PORT_H_
#define TESTS_SUPPORT_HELD_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"

namespace assay::testing {

// The kernel's choice, bound here without listening for as long as this lives: it is given to
// nobody who asks for any port, and a listener that sets SO_REUSEADDR, as ours do, can have it.
class HeldPort {
 public:
  HeldPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    CHECK(setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    CHECK(bind(fd_.get(), generic, size) == 0);
    CHECK(getsockname(fd_.get(), generic, &size) == 0);
    number_ = ntohs(address.sin_port);
  }

  uint16_t number() const { return number_; }
  // "127.0.0.1:40123"
  std::string address() const { return absl::StrCat("127.0.0.1:", number_); }

 private:
  const UniqueFd fd_;
  uint16_t number_ = 0;
};

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_HELD_PORT_H_
