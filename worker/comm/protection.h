// What keeps the messages of strangers from being taken for a rank's.

#ifndef WORKER_COMM_PROTECTION_H_
#define WORKER_COMM_PROTECTION_H_

#include "absl/strings/string_view.h"

namespace assay::comm {

// What a communicator has.
enum class Protection {
  kOneProcess,      // no message leaves it
  kOneHost,         // shared memory that only this user of this host can open
  kSealed,          // every message has a seal that only a rank can make (message_seals.h)
  kTrustedNetwork,  // nothing: the configuration says that none but ranks reach their network
};

// As logs name it.
inline absl::string_view ProtectionName(Protection protection) {
  switch (protection) {
    case Protection::kOneProcess:
      return "one process";
    case Protection::kOneHost:
      return "one host";
    case Protection::kSealed:
      return "sealed";
    case Protection::kTrustedNetwork:
      return "trusted network";
  }
  return "?";
}

// What a rank asks for. Messages are sealed if one rank of the world asks for it.
enum class Sealing {
  kOverNetworks,    // where a message may cross one
  kAlways,          // through shared memory too
  kNetworkTrusted,  // never, on the word of the configuration
};

}  // namespace assay::comm

#endif  // WORKER_COMM_PROTECTION_H_
