#include "worker/comm/ucx_setup.h"

#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/secret.h"
#include "common/status.h"
#include "worker/comm/keys.h"

namespace assay::comm {
namespace {

struct ConfigDeleter {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ConfigDeleter>;

// ---- Who the ranks are -------------------------------------------------------------------------

// The running kernel and the namespaces that shared memory must have in common.
std::string MachineIdentity() {
  const absl::StatusOr<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id");
  std::string identity(absl::StripSuffix(boot.ok() ? *boot : std::string("?"), "\n"));
  for (const char* link : {"/proc/self/ns/ipc", "/proc/self/ns/pid", "/proc/self/ns/user"}) {
    std::array<char, 64> target = {};
    const ssize_t size = readlink(link, target.data(), target.size());
    if (size > 0) identity.append("/").append(target.data(), static_cast<size_t>(size));
  }
  return identity;
}

std::string OwnIntroduction(const Rendezvous& rendezvous) {
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return absl::StrFormat("%s\n%s\n%s, pid %d", MachineIdentity(), rendezvous.local_host(),
                         host.data(), getpid());
}

// Publishes this rank's value under `topic` and collects everybody's, in the order of the ranks.
absl::StatusOr<std::vector<std::string>> ExchangeAll(Rendezvous* rendezvous,
                                                     absl::string_view topic,
                                                     absl::string_view mine, MonoTime deadline) {
  RETURN_IF_ERROR(
      rendezvous->Set(absl::StrCat("ucx/", topic, "/", rendezvous->rank()), mine, deadline));
  std::vector<std::string> all;
  for (int rank = 0; rank < rendezvous->world_size(); ++rank) {
    absl::StatusOr<std::string> value =
        rendezvous->Get(absl::StrCat("ucx/", topic, "/", rank), deadline);
    if (!value.ok()) {
      return Annotate(value.status(), absl::StrFormat("waiting for rank %d to join", rank));
    }
    all.push_back(*std::move(value));
  }
  return all;
}

absl::StatusOr<std::vector<UcxPeer>> Introduce(Rendezvous* rendezvous, MonoTime deadline) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ExchangeAll(rendezvous, "host", OwnIntroduction(*rendezvous), deadline));
  std::vector<UcxPeer> peers;
  for (const std::string& introduction : all) {
    const std::vector<std::string> parts = absl::StrSplit(introduction, absl::MaxSplits('\n', 2));
    if (parts.size() != 3) return absl::InternalError("a rank's introduction is not understood");
    peers.push_back(UcxPeer{.machine = parts[0], .text = parts[2], .host = parts[1]});
  }
  return peers;
}

bool ShareOneHost(const std::vector<UcxPeer>& peers) {
  return std::all_of(peers.begin(), peers.end(),
                     [&](const UcxPeer& peer) { return peer.machine == peers.front().machine; });
}

// ---- Settings ----------------------------------------------------------------------------------

bool IsSetByUser(absl::string_view name) {
  return std::getenv(absl::StrCat("UCX_", name).c_str()) != nullptr;
}

absl::Status SetDefault(ucp_config_t* config, const char* name, const std::string& value) {
  if (IsSetByUser(name)) return absl::OkStatus();
  const ucs_status_t status = ucp_config_modify(config, name, value.c_str());
  if (status == UCS_OK) return absl::OkStatus();
  return UcxError(status, absl::StrCat("setting UCX_", name, "=", value));
}

// What UCX_TLS will be. An explicit choice wins, the environment before the options.
std::string TransportsFor(const UcxOptions& options, const std::vector<UcxPeer>& peers) {
  const char* const environment = std::getenv("UCX_TLS");
  if (environment != nullptr) return environment;
  if (!options.transports.empty()) return options.transports;
  return ShareOneHost(peers) ? "posix,self" : "tcp,posix,self";
}

bool IsSharedMemory(absl::string_view transport) {
  return transport == "posix" || transport == "sysv" || transport == "shm" || transport == "sm" ||
         transport == "mm";
}

bool HasSharedMemory(absl::string_view transports) {
  const std::vector<absl::string_view> names = absl::StrSplit(transports, ',');
  return std::any_of(names.begin(), names.end(),
                     [](absl::string_view name) { return IsSharedMemory(name) || name == "all"; });
}

// Whatever is not known to stay on the host may leave it.
bool HasNetwork(absl::string_view transports) {
  const std::vector<absl::string_view> names = absl::StrSplit(transports, ',');
  return !std::all_of(names.begin(), names.end(), [](absl::string_view name) {
    return IsSharedMemory(name) || name == "self" || name == "cma" || name == "knem" ||
           name == "xpmem";
  });
}

absl::StatusOr<Config> Configure(const UcxOptions& options, const std::string& transports,
                                 const std::string& own_host) {
  ucp_config_t* raw = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw);
  if (status != UCS_OK) return UcxError(status, "reading the UCX_* environment variables");
  Config config(raw);
  RETURN_IF_ERROR(SetDefault(config.get(), "TLS", transports));
  if (!absl::StrContains(transports, "tcp")) return config;
  RETURN_IF_ERROR(SetDefault(config.get(), "RNDV_THRESH", options.tcp_rendezvous_threshold));
  // UCX would listen on every interface. Its peers are expected where the rendezvous is.
  const std::string interface = InterfaceOf(own_host);
  // In a container that shows another /sys UCX does not find it.
  if (!interface.empty() && FileExists(absl::StrCat("/sys/class/net/", interface)))
    RETURN_IF_ERROR(SetDefault(config.get(), "NET_DEVICES", interface));
  return config;
}

// ---- UCX's objects -----------------------------------------------------------------------------

absl::StatusOr<UcxContext> OpenContext(const Config& config, size_t world_size) {
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG;
  params.estimated_num_eps = world_size;
  ucp_context_h context = nullptr;
  const ucs_status_t status = ucp_init(&params, config.get(), &context);
  if (status == UCS_OK) return UcxContext(context);
  return absl::FailedPreconditionError(
      absl::StrCat("UCX cannot use any of the transports asked for (", ucs_status_string(status),
                   "); see UCX_TLS and UCX_NET_DEVICES in the environment and ucx_info -d"));
}

absl::StatusOr<UcxWorker> OpenWorker(ucp_context_h context, Door* door) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  ucs_status_t status = UCS_OK;
  door->Watch([&] { status = ucp_worker_create(context, &params, &worker); });
  if (status != UCS_OK) return UcxError(status, "making a UCX worker");
  return UcxWorker(worker);
}

absl::StatusOr<std::string> WorkerAddress(ucp_worker_h worker) {
  ucp_address_t* address = nullptr;
  size_t size = 0;
  const ucs_status_t status = ucp_worker_get_address(worker, &address, &size);
  if (status != UCS_OK) return UcxError(status, "asking for this rank's UCX address");
  std::string bytes(reinterpret_cast<const char*>(address), size);
  ucp_worker_release_address(worker, address);
  return bytes;
}

// Before anybody knows the address: the hosts that the ranks are on come in. Where somebody chose
// UCX's interfaces, ranks may come from addresses that are not known here.
void OpenDoor(const UcxSetup& setup) {
  if (IsSetByUser("NET_DEVICES")) return setup.door.AdmitAll();
  std::vector<std::string> hosts;
  for (const UcxPeer& peer : setup.peers)
    hosts.push_back(peer.host);
  setup.door.AdmitOnly(hosts);
}

// ---- Protection --------------------------------------------------------------------------------

// What one rank wants and brings for the protection of all. In bytes: these, then the address.
struct Wish {
  bool wants_seals = false;
  bool uses_network = false;
  std::string nonce;  // kNonceBytes

  std::string ToBytes() const {
    return absl::StrCat(wants_seals ? "s" : "-", uses_network ? "n" : "-", nonce);
  }
};
static_assert(kWishBytes == 2 + kNonceBytes);

// Publishes the wish and the address; from everybody's come protection, session and addresses.
absl::Status AgreeOnProtection(Rendezvous* rendezvous, const Wish& mine, MonoTime deadline,
                               UcxSetup* setup) {
  ASSIGN_OR_RETURN(const std::string address, WorkerAddress(setup->worker.get()));
  ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      ExchangeAll(rendezvous, "address", absl::StrCat(mine.ToBytes(), address), deadline));
  bool wants_seals = false, uses_network = false;
  std::string nonces;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() <= kWishBytes) return absl::InternalError("a rank has no UCX address");
    wants_seals |= all[rank][0] == 's';
    uses_network |= all[rank][1] == 'n';
    nonces += all[rank].substr(2, kNonceBytes);
    setup->peers[rank].address = all[rank].substr(kWishBytes);
  }
  // Every rank had a part in it, so each knows that it is new.
  setup->session = Proof("session", nonces);
  setup->protection = uses_network ? Protection::kTrustedNetwork : Protection::kOneHost;
  if (wants_seals) setup->protection = Protection::kSealed;
  return absl::OkStatus();
}

// ---- Shared memory -----------------------------------------------------------------------------

// Rank 0's part of `setup->area`, and then the others'. OK or why this rank has none.
absl::Status MakeArea(int world_size, UcxSetup* setup) {
  ASSIGN_OR_RETURN(setup->area, SharedArea::Create(world_size));
  return absl::OkStatus();
}
absl::Status OpenArea(const std::string& name, int world_size, UcxSetup* setup) {
  if (name.empty()) return absl::UnavailableError("rank 0 has made none");
  ASSIGN_OR_RETURN(setup->area, SharedArea::Open(name, world_size));
  return absl::OkStatus();
}

// All ranks have the area in the end, or none: where one could not map it they go on by messages.
absl::Status ShareMemory(Rendezvous* rendezvous, MonoTime deadline, UcxSetup* setup) {
  const int world_size = rendezvous->world_size();
  const bool is_allowed = setup->has_shared_memory && ShareOneHost(setup->peers) &&
                          world_size <= SharedArea::kRanksMax &&
                          setup->protection == Protection::kOneHost;
  absl::Status made = absl::FailedPreconditionError("its transports have no shared memory");
  const bool is_first = rendezvous->rank() == 0;
  if (is_first && is_allowed) made = MakeArea(world_size, setup);
  ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      ExchangeAll(rendezvous, "area", is_first && made.ok() ? setup->area->name() : "", deadline));
  if (!is_first && is_allowed) made = OpenArea(names[0], world_size, setup);
  ASSIGN_OR_RETURN(const std::vector<std::string> faults,
                   ExchangeAll(rendezvous, "area_fault", made.message(), deadline));
  for (size_t rank = 0; rank < faults.size(); ++rank) {
    if (faults[rank].empty()) continue;
    if (is_first && is_allowed)
      LOG(WARNING) << "the ranks share no memory and reduce by messages: rank " << rank << ": "
                   << faults[rank];
    setup->area.reset();
    return absl::OkStatus();
  }
  setup->area->TakeNameAway();
  return absl::OkStatus();
}

}  // namespace

absl::Status UcxError(ucs_status_t status, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": UCX: ", ucs_status_string(status)));
}

absl::StatusOr<UcxSetup> SetUpUcx(Rendezvous* rendezvous, const UcxOptions& options,
                                  MonoTime deadline) {
  UcxSetup setup;
  ASSIGN_OR_RETURN(setup.peers, Introduce(rendezvous, deadline));
  const std::string transports = TransportsFor(options, setup.peers);
  setup.has_shared_memory = HasSharedMemory(transports);
  ASSIGN_OR_RETURN(const Config config, Configure(options, transports, rendezvous->local_host()));
  ASSIGN_OR_RETURN(setup.context, OpenContext(config, setup.peers.size()));
  ASSIGN_OR_RETURN(setup.worker, OpenWorker(setup.context.get(), &setup.door));
  OpenDoor(setup);
  Wish wish{.uses_network = HasNetwork(transports), .nonce = RandomBytes(kNonceBytes)};
  wish.wants_seals = options.sealing == Sealing::kAlways ||
                     (options.sealing == Sealing::kOverNetworks && wish.uses_network);
  RETURN_IF_ERROR(AgreeOnProtection(rendezvous, wish, deadline, &setup));
  if (setup.protection == Protection::kSealed && options.secret.empty())
    return absl::InvalidArgumentError("messages are to be sealed, and there is no secret for it");
  if (setup.peers.size() > 1) RETURN_IF_ERROR(ShareMemory(rendezvous, deadline, &setup));
  return setup;
}

}  // namespace assay::comm
