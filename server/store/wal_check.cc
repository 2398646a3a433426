#include "server/store/wal_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"
#include "server/store/checked_vfs.h"

namespace assay::store {
namespace {

constexpr int64_t kFramesOfPiece = 256;
// The first word of a log whose checksums are over little-endian words.
constexpr uint32_t kMagic = 0x377f0682;

using Bytes = std::span<const unsigned char>;

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

absl::StatusOr<size_t> ReadAt(int fd, std::span<unsigned char> bytes, int64_t offset) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t size = pread(fd, bytes.data() + filled, bytes.size() - filled,
                               offset + static_cast<off_t>(filled));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return absl::ErrnoToStatus(errno, "cannot read the write-ahead log");
    if (size == 0) break;
    filled += static_cast<size_t>(size);
  }
  return filled;
}

bool IsHeaderWhole(Bytes header) {
  return ReadBig32(header.data()) == kMagic && ReadBig32(header.data() + 8) == kPageBytes &&
         AddToWalChecksum({}, header.first(24)) ==
             WalChecksum{ReadBig32(header.data() + 24), ReadBig32(header.data() + 28)};
}

// Follows the chain of checksums from frame to frame.
class FrameChecker {
 public:
  FrameChecker(std::string name, Bytes header)
      : name_(std::move(name)),
        salts_{ReadBig32(header.data() + 16), ReadBig32(header.data() + 20)},
        sum_{ReadBig32(header.data() + 24), ReadBig32(header.data() + 28)} {}

  std::optional<WalFault> Check(int64_t number, Bytes frame) {
    const uint32_t page_number = ReadBig32(frame.data());
    const auto fault = [&](absl::string_view what) {
      return WalFault{number, page_number,
                      absl::StrCat("frame ", number, " of ", name_, ", with page ", page_number,
                                   ", is damaged: ", what)};
    };
    if (ReadBig32(frame.data() + 8) != salts_[0] || ReadBig32(frame.data() + 12) != salts_[1])
      return fault("it is of another filling of the log");
    sum_ = ChecksumOfFrame(sum_, frame);
    if (sum_ != WalChecksum{ReadBig32(frame.data() + 16), ReadBig32(frame.data() + 20)})
      return fault("its checksum is wrong");
    return std::nullopt;
  }

 private:
  const std::string name_;
  const std::array<uint32_t, 2> salts_;
  WalChecksum sum_;
};

}  // namespace

absl::StatusOr<std::optional<WalFault>> CheckWal(const std::string& path, const WalExtent& extent) {
  if (extent.frame_count == 0) return std::nullopt;
  const std::string name = FileName(path);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open() && errno != ENOENT) return absl::ErrnoToStatus(errno, path);
  std::array<unsigned char, kWalHeaderBytes> header{};
  size_t size = 0;
  if (fd.is_open()) {
    ASSIGN_OR_RETURN(size, ReadAt(fd.get(), header, 0));
  }
  if (size == 0)
    return WalFault{.problem = absl::StrCat(name, " is missing; it held ", extent.frame_count,
                                            " frames of acknowledged events")};
  if (size < header.size() || !IsHeaderWhole(header))
    return WalFault{.problem = absl::StrCat("the header of ", name, " is damaged")};
  if (ReadBig32(header.data() + 16) != extent.salt_first ||
      ReadBig32(header.data() + 20) != extent.salt_second)
    return std::nullopt;

  FrameChecker checker(name, header);
  std::vector<unsigned char> piece(kFramesOfPiece * kFrameBytes);
  for (int64_t done = 0; done < extent.frame_count;) {
    ASSIGN_OR_RETURN(size, ReadAt(fd.get(), piece, kWalHeaderBytes + done * kFrameBytes));
    const int64_t whole = static_cast<int64_t>(size) / kFrameBytes;
    for (int64_t i = 0; i < whole && done < extent.frame_count; ++i) {
      const Bytes frame = Bytes(piece).subspan(static_cast<size_t>(i * kFrameBytes), kFrameBytes);
      if (std::optional<WalFault> fault = checker.Check(++done, frame)) return fault;
    }
    if (whole == 0) {
      return WalFault{
          .frame = done + 1,
          .problem = absl::StrCat(name, " ends after ", done, " of the ", extent.frame_count,
                                  " frames that hold acknowledged events")};
    }
  }
  return std::nullopt;
}

}  // namespace assay::store
