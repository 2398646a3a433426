// Images of other people's programs on this node: root file systems in one file each, a squashfs or
// a tar, that nodes read by path and submissions name by digest. Each is verified and unpacked once
// and kept for the runs that come; a file that has changed since is read again.

#ifndef WORKER_AGENT_IMAGE_STORE_H_
#define WORKER_AGENT_IMAGE_STORE_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/workload.pb.h"

#include "common/file.h"
#include "worker/agent/account.h"

namespace assay::agent {

// Its place in an agent's data directory.
inline constexpr char kImagesFolder[] = "images";

// Stays on this node as long as this lives.
struct UnpackedImage {
  std::string root;  // the folder that is / for programs: nobody's but the agent's to write
  UniqueFd lease;
};

class ImageStore {
 public:
  // `directory` is ours and is made; programs of `user` (nullopt: of this process's account) may
  // pass through it.
  ImageStore(std::string directory, std::optional<Account> user)
      : directory_(std::move(directory)), user_(std::move(user)) {}

  // Blocks, for minutes with images of many GiB, until `is_stopped`. Those used longest ago make
  // room, all but a few. CANCELLED if it was stopped; NOT_FOUND or PERMISSION_DENIED if `user`
  // cannot read the file; DATA_LOSS if it has another digest; INVALID_ARGUMENT if it is no image;
  // FAILED_PRECONDITION if this node lacks what it takes; RESOURCE_EXHAUSTED, with the unpacking
  // program's own words, if it cannot be unpacked.
  absl::StatusOr<UnpackedImage> Open(const v1::ImageFile& image,
                                     const std::function<bool()>& is_stopped);

 private:
  absl::Status Unpack(const UniqueFd& file, const v1::ImageFile& image,
                      const std::function<bool()>& is_stopped);
  absl::Status MakeRoom(const std::string& sha256) const;
  std::string Folder(const std::string& sha256) const;

  const std::string directory_;
  const std::optional<Account> user_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_IMAGE_STORE_H_
