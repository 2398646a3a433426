// One rank's UCX before it says anything: who the other ranks are, which transports carry their
// messages with which settings, what protects them, and where everybody is reached.

#ifndef WORKER_COMM_UCX_SETUP_H_
#define WORKER_COMM_UCX_SETUP_H_

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "worker/comm/door.h"
#include "worker/comm/keys.h"
#include "worker/comm/protection.h"
#include "worker/comm/rendezvous.h"
#include "worker/comm/shared_area.h"
#include "worker/comm/ucx.h"

namespace assay::comm {

struct UcxContextDeleter {
  void operator()(ucp_context_h context) const { ucp_cleanup(context); }
};
struct UcxWorkerDeleter {
  void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
};
using UcxContext = std::unique_ptr<std::remove_pointer_t<ucp_context_h>, UcxContextDeleter>;
using UcxWorker = std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, UcxWorkerDeleter>;

struct UcxPeer {
  std::string machine;  // equal if the two can share memory
  std::string text;     // for messages: "node7, pid 4711"
  std::string host;     // numeric address, as rank 0's rendezvous is reached from there
  std::string address;  // UCX's
};

struct UcxSetup {
  std::vector<UcxPeer> peers;  // by rank, this one too
  bool has_shared_memory = false;
  Protection protection = Protection::kOneHost;
  std::string session;               // the same on all ranks, and never the same again
  std::unique_ptr<SharedArea> area;  // null where ranks share no memory, or may not
  UcxContext context;
  UcxWorker worker;
  Door door;  // shut but for the ranks' hosts
};

// What a rank's value in the rendezvous has before UCX's address.
inline constexpr size_t kWishBytes = 2 + kNonceBytes;

absl::Status UcxError(ucs_status_t status, absl::string_view what);

// Exchanges all this with the other ranks. Errors: those of OpenUcx.
absl::StatusOr<UcxSetup> SetUpUcx(Rendezvous* rendezvous, const UcxOptions& options,
                                  MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_UCX_SETUP_H_
