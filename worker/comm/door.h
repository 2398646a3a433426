// The door of UCX's TCP ports. UCX takes whatever comes there for messages of ranks, and ends the
// process at packets that it cannot make sense of; so strangers had better not get in at all.
//
// The kernel drops what is not wanted, by a filter on the listening sockets (SO_ATTACH_FILTER,
// which needs no privilege): while the ranks connect, only their hosts are let in; once all are
// connected, nobody. Connections that exist are not touched.
// Where the kernel offers no such filter all are let in, with a warning; seals protect the messages
// all the same.

#ifndef WORKER_COMM_DOOR_H_
#define WORKER_COMM_DOOR_H_

#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace assay::comm {

class Door {
 public:
  // Calls `open`; the TCP sockets that listen after it and did not before are behind the door,
  // which is shut. Sockets that other threads open meanwhile are too, so those must not.
  void Watch(absl::FunctionRef<void()> open);

  // Lets these hosts in, numeric IPv4 addresses; everybody, if one is something else.
  void AdmitOnly(const std::vector<std::string>& hosts) const;
  void AdmitAll() const;
  void Shut() const;

 private:
  std::set<int> sockets_;
};

// The network interface that has this address, "" if none has: "10.0.0.1" -> "eth0".
std::string InterfaceOf(absl::string_view address);

}  // namespace assay::comm

#endif  // WORKER_COMM_DOOR_H_
