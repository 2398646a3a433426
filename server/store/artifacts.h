// Artifacts: files named by the SHA-256 of their bytes, <root>/ab/<sha256>. Written once, never
// changed; the same bytes are kept once. Those of what has ended may be kept compressed, as
// <sha256>.zst: names, digests and sizes are of the bytes that were uploaded, and so is what is
// read. Where both files are, the one that is not compressed counts: it is the newer.

#ifndef SERVER_STORE_ARTIFACTS_H_
#define SERVER_STORE_ARTIFACTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/sha256.h"
#include "server/core/types.h"
#include "server/store/zstd_file.h"

namespace assay::store {

// Where uploads are until they are finished, in the folder of artifacts.
inline constexpr char kPartialFolder[] = "partial";

// The largest artifact that is taken.
inline constexpr int64_t kArtifactBytesMax = 4LL << 30;

// Behind the digest, in the name of a file that is compressed.
inline constexpr char kCompressedSuffix[] = ".zst";

// "artifacts/ab/<sha256>": its file, below a data directory, while it is not compressed.
std::string FileOfArtifact(const std::string& sha256);
// "artifact <sha256>, result_0.txt of run r-3", for who reads of faults.
std::string NameOfArtifact(const core::ArtifactRef& artifact, core::RunId run);

// One artifact on its way in. Dropped, with what it wrote, unless finished. Not thread-safe.
class ArtifactWriter {
 public:
  ~ArtifactWriter();
  ArtifactWriter(const ArtifactWriter&) = delete;
  ArtifactWriter& operator=(const ArtifactWriter&) = delete;

  // INVALID_ARGUMENT beyond the announced size; RESOURCE_EXHAUSTED if the disk is full.
  absl::Status Append(absl::string_view bytes);

  // Verifies size and digest, fsyncs, and moves the file to its name; one that is there already is
  // replaced, which repairs it if its bytes have changed. DATA_LOSS if the bytes are not those
  // announced.
  absl::StatusOr<core::ArtifactRef> Finish();

  const core::ArtifactRef& announced() const { return announced_; }

 private:
  friend class ArtifactStore;
  ArtifactWriter(core::ArtifactRef announced, std::string partial_path, std::string final_path,
                 UniqueFd fd);

  const core::ArtifactRef announced_;
  const std::string partial_path_;
  const std::string final_path_;
  UniqueFd fd_;
  Sha256 digest_;
  int64_t written_bytes_ = 0;
};

// One artifact on its way out, piece by piece, in bounded memory. Not thread-safe, but may move
// between threads.
class ArtifactReader {
 public:
  // `root` is the folder of all artifacts. NOT_FOUND; INVALID_ARGUMENT if `sha256` is no digest.
  // One that is compressed meanwhile is read to its end.
  static absl::StatusOr<std::unique_ptr<ArtifactReader>> Open(const std::string& root,
                                                              const std::string& sha256);

  // The next piece, of at most kPieceBytes; empty at the end. The last piece is held back until the
  // digest of all is known to be right: DATA_LOSS instead of it if the bytes on disk have changed,
  // so that nobody takes them for whole.
  absl::StatusOr<std::string> Next();

  static constexpr size_t kPieceBytes = 64 << 10;

  bool is_compressed() const { return compressed_ != nullptr; }
  // Below a data directory: "artifacts/ab/<sha256>.zst".
  std::string file() const;

 private:
  ArtifactReader(std::string sha256, std::string path, UniqueFd fd)
      : sha256_(std::move(sha256)), path_(std::move(path)), fd_(std::move(fd)) {}
  absl::StatusOr<std::string> ReadPiece();
  absl::StatusOr<std::string> ReadStored();
  absl::Status Changed() const;

  const std::string sha256_;
  const std::string path_;
  const UniqueFd fd_;                       // not open where compressed_ has it
  std::unique_ptr<ZstdReader> compressed_;  // null: it is not
  Sha256 digest_;
  std::string held_back_;
  bool is_at_end_ = false;
  absl::Status damage_;  // found at the end
};

// Thread-safe: holds nothing but the path; the file system does the rest.
class ArtifactStore {
 public:
  // Makes the folder if needed and removes what unfinished uploads have left.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(const std::string& root);

  // What is there, for reading: nothing is made or removed, so others may write meanwhile.
  static std::unique_ptr<const ArtifactStore> View(const std::string& root);
  // One that another of this process has opened: uploads to it go on.
  static std::unique_ptr<ArtifactStore> Reopen(const std::string& root);

  // INVALID_ARGUMENT unless `announced` has a digest, a size of 0 to kArtifactBytesMax and a name.
  absl::StatusOr<std::unique_ptr<ArtifactWriter>> Begin(const core::ArtifactRef& announced);

  // The whole artifact at once.
  absl::StatusOr<core::ArtifactRef> Put(const std::string& file_name, absl::string_view bytes);

  // True if there is an artifact with that digest.
  bool Has(const std::string& sha256) const;

  // Its size in bytes as it lies there; of one that is compressed, as its file says. NOT_FOUND.
  absl::StatusOr<int64_t> SizeOf(const std::string& sha256) const;
  // What its file takes of the disk, and 0 if there is none.
  int64_t StoredBytes(const std::string& sha256) const;
  bool IsCompressed(const std::string& sha256) const;
  // "artifacts/ab/<sha256>.zst": its file, below a data directory.
  std::string FileOf(const std::string& sha256) const;

  // Keeps it compressed from now on, if that makes it smaller by an eighth at least, and returns by
  // how many bytes; 0 if it stays as it is, or is compressed already. At any moment there is a
  // whole file of it on stable storage: the new one is read back before the old one goes.
  // NOT_FOUND; DATA_LOSS if its bytes have changed; RESOURCE_EXHAUSTED if the disk is full: then it
  // stays.
  absl::StatusOr<int64_t> Compress(const std::string& sha256);

  // Makes an artifact of the folder `root` one of this folder, too, by a second name of its file,
  // compressed or not; one that is there already gives way. False where the two file systems cannot
  // do that. Its bytes are not looked at. On stable storage after Sync.
  absl::StatusOr<bool> Link(const std::string& sha256, const std::string& root);
  absl::Status Sync() const;

  // Removes an artifact that nothing refers to. OK if there is none.
  absl::Status Remove(const std::string& sha256);

  // From the beginning. NOT_FOUND.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenReader(const std::string& sha256) const;

  // Hands all of it to `take`, in pieces. NOT_FOUND; DATA_LOSS, before the last piece, if the bytes
  // on disk have changed: then what was taken is worth nothing.
  absl::Status ReadVerified(const std::string& sha256,
                            absl::FunctionRef<void(absl::string_view)> take) const;

 private:
  explicit ArtifactStore(std::string root) : root_(std::move(root)) {}
  const std::string root_;
};

// Copies an artifact of the folder `root` to `to`. The answer is what is wrong with it where it is
// now, so that there is no copy; empty if there is one. Errors are those of writing.
absl::StatusOr<std::string> CopyArtifact(const std::string& root, const core::ArtifactRef& artifact,
                                         ArtifactStore* to);

}  // namespace assay::store

#endif  // SERVER_STORE_ARTIFACTS_H_
