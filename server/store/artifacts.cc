#include "server/store/artifacts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay::store {
namespace {

absl::Status CheckDigest(const std::string& sha256) {
  const bool is_hex = std::all_of(sha256.begin(), sha256.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
  });
  if (sha256.size() == 64 && is_hex) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::string_view(sha256).substr(0, 80),
                   "\" is no artifact: 64 lower-case hexadecimal digits name one"));
}

absl::StatusOr<std::string> PathOf(const std::string& root, const std::string& sha256) {
  RETURN_IF_ERROR(CheckDigest(sha256));
  return JoinPath(JoinPath(root, sha256.substr(0, 2)), sha256);
}

// The file in which it lies now, and whether that is compressed. NOT_FOUND.
struct Place {
  std::string path;
  bool is_compressed = false;
};
absl::StatusOr<Place> Find(const std::string& root, const std::string& sha256) {
  ASSIGN_OR_RETURN(std::string path, PathOf(root, sha256));
  if (FileExists(path)) return Place{std::move(path), false};
  absl::StrAppend(&path, kCompressedSuffix);
  if (FileExists(path)) return Place{std::move(path), true};
  return absl::NotFoundError(absl::StrCat("there is no artifact ", sha256));
}

absl::Status Unlink(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, path);
}

absl::Status FsyncFolder(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || fsync(fd.get()) != 0) return absl::ErrnoToStatus(errno, folder);
  return absl::OkStatus();
}

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

absl::Status MakeFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  if (FileExists(folder)) return absl::OkStatus();
  RETURN_IF_ERROR(MakeDirectories(folder, kPrivateDirectory));
  return FsyncFolder(folder);
}

// What link(2) says where there can be no second name: other file systems, or ones without.
bool IsLinkImpossible(int error) {
  return error == EXDEV || error == EPERM || error == EMLINK || error == EOPNOTSUPP ||
         error == ENOSYS;
}

}  // namespace

std::string FileOfArtifact(const std::string& sha256) {
  return absl::StrCat("artifacts/", sha256.substr(0, 2), "/", sha256);
}

std::string NameOfArtifact(const core::ArtifactRef& artifact, core::RunId run) {
  return absl::StrCat("artifact ", artifact.sha256, ", ", artifact.file_name, " of run ",
                      run.ToString());
}

ArtifactWriter::ArtifactWriter(core::ArtifactRef announced, std::string partial_path,
                               std::string final_path, UniqueFd fd)
    : announced_(std::move(announced)),
      partial_path_(std::move(partial_path)),
      final_path_(std::move(final_path)),
      fd_(std::move(fd)) {}

ArtifactWriter::~ArtifactWriter() {
  if (fd_.is_open()) unlink(partial_path_.c_str());
}

absl::Status ArtifactWriter::Append(absl::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > announced_.size_bytes - written_bytes_)
    return absl::InvalidArgumentError(absl::StrCat("artifact ", announced_.file_name,
                                                   " is longer than the ", announced_.size_bytes,
                                                   " bytes that were announced"));
  RETURN_IF_ERROR(WriteAll(fd_.get(), bytes));
  digest_.Add(bytes);
  written_bytes_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<core::ArtifactRef> ArtifactWriter::Finish() {
  const std::string digest = digest_.HexDigest();
  if (written_bytes_ != announced_.size_bytes || digest != announced_.sha256)
    return absl::DataLossError(absl::StrCat(
        "artifact ", announced_.file_name, " has ", written_bytes_, " bytes with digest ", digest,
        "; announced were ", announced_.size_bytes, " with ", announced_.sha256));
  if (fsync(fd_.get()) != 0) return absl::ErrnoToStatus(errno, partial_path_);
  if (rename(partial_path_.c_str(), final_path_.c_str()) != 0)
    return absl::ErrnoToStatus(errno, final_path_);
  fd_.Reset();
  RETURN_IF_ERROR(FsyncFolder(FolderOf(final_path_)));
  return announced_;
}

absl::StatusOr<std::unique_ptr<ArtifactStore>> ArtifactStore::Open(const std::string& root) {
  const std::string partial = JoinPath(root, kPartialFolder);
  RETURN_IF_ERROR(RemoveTree(partial));
  RETURN_IF_ERROR(MakeDirectories(partial, kPrivateDirectory));
  return std::unique_ptr<ArtifactStore>(new ArtifactStore(root));
}

std::unique_ptr<const ArtifactStore> ArtifactStore::View(const std::string& root) {
  return std::unique_ptr<const ArtifactStore>(new ArtifactStore(root));
}

std::unique_ptr<ArtifactStore> ArtifactStore::Reopen(const std::string& root) {
  return std::unique_ptr<ArtifactStore>(new ArtifactStore(root));
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> ArtifactStore::Begin(
    const core::ArtifactRef& announced) {
  ASSIGN_OR_RETURN(const std::string final_path, PathOf(root_, announced.sha256));
  if (announced.file_name.empty() || announced.size_bytes < 0 ||
      announced.size_bytes > kArtifactBytesMax)
    return absl::InvalidArgumentError(
        absl::StrCat("an artifact has a file_name and 0 to ", kArtifactBytesMax, " bytes; \"",
                     announced.file_name, "\" with ", announced.size_bytes, " was announced"));
  RETURN_IF_ERROR(MakeFolderOf(final_path));
  std::string partial_path = JoinPath(JoinPath(root_, kPartialFolder), "upload_XXXXXX");
  UniqueFd fd(mkostemp(partial_path.data(), O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, partial_path);
  return std::unique_ptr<ArtifactWriter>(
      new ArtifactWriter(announced, std::move(partial_path), final_path, std::move(fd)));
}

absl::StatusOr<core::ArtifactRef> ArtifactStore::Put(const std::string& file_name,
                                                     absl::string_view bytes) {
  core::ArtifactRef announced;
  announced.file_name = file_name;
  announced.sha256 = Sha256Hex(bytes);
  announced.size_bytes = static_cast<int64_t>(bytes.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactWriter> writer, Begin(announced));
  RETURN_IF_ERROR(writer->Append(bytes));
  return writer->Finish();
}

bool ArtifactStore::Has(const std::string& sha256) const {
  return Find(root_, sha256).ok();
}

absl::StatusOr<int64_t> ArtifactStore::SizeOf(const std::string& sha256) const {
  ASSIGN_OR_RETURN(const Place place, Find(root_, sha256));
  return place.is_compressed ? ZstdContentSize(place.path) : FileSize(place.path);
}

int64_t ArtifactStore::StoredBytes(const std::string& sha256) const {
  const absl::StatusOr<Place> place = Find(root_, sha256);
  return place.ok() ? FileSize(place->path).value_or(0) : 0;
}

bool ArtifactStore::IsCompressed(const std::string& sha256) const {
  const absl::StatusOr<Place> place = Find(root_, sha256);
  return place.ok() && place->is_compressed;
}

std::string ArtifactStore::FileOf(const std::string& sha256) const {
  return absl::StrCat(FileOfArtifact(sha256), IsCompressed(sha256) ? kCompressedSuffix : "");
}

absl::StatusOr<bool> ArtifactStore::Link(const std::string& sha256, const std::string& root) {
  ASSIGN_OR_RETURN(Place from, Find(root, sha256));
  ASSIGN_OR_RETURN(const std::string raw, PathOf(root_, sha256));
  const std::string compressed = absl::StrCat(raw, kCompressedSuffix);
  RETURN_IF_ERROR(MakeFolderOf(raw));
  RETURN_IF_ERROR(Unlink(raw));
  RETURN_IF_ERROR(Unlink(compressed));
  if (link(from.path.c_str(), (from.is_compressed ? compressed : raw).c_str()) == 0) return true;
  if (errno == ENOENT) {  // it was compressed just now
    ASSIGN_OR_RETURN(from, Find(root, sha256));
    if (link(from.path.c_str(), (from.is_compressed ? compressed : raw).c_str()) == 0) return true;
  }
  if (IsLinkImpossible(errno)) return false;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot link ", from.path, " into ", root_));
}

absl::Status ArtifactStore::Sync() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, ListDirectory(root_));
  for (const std::string& folder : folders)
    RETURN_IF_ERROR(FsyncFolder(JoinPath(root_, folder)));
  return FsyncFolder(root_);
}

absl::Status ArtifactStore::Remove(const std::string& sha256) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(root_, sha256));
  RETURN_IF_ERROR(Unlink(path));
  return Unlink(absl::StrCat(path, kCompressedSuffix));
}

// ----------------------------------------------------------------------------------- compression

namespace {

// Below this a file takes a block of the disk anyway.
constexpr int64_t kCompressedBytesMin = 4096;

// Writes what `reader` has to `fd`, and returns how many bytes that came to.
absl::StatusOr<int64_t> WriteCompressed(ArtifactReader* reader, int64_t size_bytes, int fd,
                                        const std::string& path) {
  ZstdWriter writer(fd, path, size_bytes);
  while (true) {
    ASSIGN_OR_RETURN(const std::string piece, reader->Next());
    if (piece.empty()) break;
    RETURN_IF_ERROR(writer.Append(piece));
  }
  RETURN_IF_ERROR(writer.Finish());
  if (fsync(fd) != 0) return absl::ErrnoToStatus(errno, path);
  return FileSize(path);
}

// Reads the file at `path` back.
absl::Status CheckCompressed(const std::string& path, const std::string& sha256) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, path);
  ZstdReader reader(std::move(fd), path);
  Sha256 digest;
  while (true) {
    ASSIGN_OR_RETURN(const std::string piece, reader.Read(ArtifactReader::kPieceBytes));
    if (piece.empty()) break;
    digest.Add(piece);
  }
  if (digest.HexDigest() == sha256) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("artifact ", sha256, " is not what was compressed"));
}

}  // namespace

absl::StatusOr<int64_t> ArtifactStore::Compress(const std::string& sha256) {
  ASSIGN_OR_RETURN(const Place place, Find(root_, sha256));
  if (place.is_compressed) return 0;
  ASSIGN_OR_RETURN(const int64_t size, FileSize(place.path));
  if (size < kCompressedBytesMin) return 0;
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenReader(sha256));
  std::string partial = JoinPath(JoinPath(root_, kPartialFolder), "compressed_XXXXXX");
  const UniqueFd fd(mkostemp(partial.data(), O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, partial);
  absl::Cleanup remove = [&partial] { unlink(partial.c_str()); };
  ASSIGN_OR_RETURN(const int64_t compressed_size,
                   WriteCompressed(reader.get(), size, fd.get(), partial));
  if (compressed_size > size - size / 8) return 0;
  RETURN_IF_ERROR(CheckCompressed(partial, sha256));
  RETURN_IF_ERROR(RenameSynced(partial, absl::StrCat(place.path, kCompressedSuffix)));
  std::move(remove).Cancel();
  RETURN_IF_ERROR(Unlink(place.path));
  return size - compressed_size;
}

// --------------------------------------------------------------------------------------- reading

absl::StatusOr<std::unique_ptr<ArtifactReader>> ArtifactStore::OpenReader(
    const std::string& sha256) const {
  return ArtifactReader::Open(root_, sha256);
}

absl::Status ArtifactStore::ReadVerified(const std::string& sha256,
                                         absl::FunctionRef<void(absl::string_view)> take) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenReader(sha256));
  while (true) {
    ASSIGN_OR_RETURN(const std::string piece, reader->Next());
    if (piece.empty()) return absl::OkStatus();
    take(piece);
  }
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> ArtifactReader::Open(const std::string& root,
                                                                     const std::string& sha256) {
  ASSIGN_OR_RETURN(std::string path, PathOf(root, sha256));
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool is_compressed = !fd.is_open() && errno == ENOENT;
  if (is_compressed) {
    absl::StrAppend(&path, kCompressedSuffix);
    fd = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.is_open() && errno == ENOENT)
      return absl::NotFoundError(absl::StrCat("there is no artifact ", sha256));
  }
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, path);
  if (!is_compressed)
    return std::unique_ptr<ArtifactReader>(
        new ArtifactReader(sha256, std::move(path), std::move(fd)));
  std::unique_ptr<ArtifactReader> reader(new ArtifactReader(sha256, path, UniqueFd()));
  reader->compressed_ = std::make_unique<ZstdReader>(std::move(fd), std::move(path));
  return reader;
}

std::string ArtifactReader::file() const {
  return absl::StrCat(FileOfArtifact(sha256_), is_compressed() ? kCompressedSuffix : "");
}

// Users read this: nothing of where the data directory is.
absl::Status ArtifactReader::Changed() const {
  return absl::DataLossError(absl::StrCat("the bytes of artifact ", sha256_, " have changed (",
                                          file(),
                                          "): put the file back, or upload the same bytes again"));
}

absl::StatusOr<std::string> ArtifactReader::ReadStored() {
  if (compressed_ != nullptr) {
    absl::StatusOr<std::string> bytes = compressed_->Read(kPieceBytes);
    if (absl::IsDataLoss(bytes.status())) return Changed();
    return bytes;
  }
  std::string bytes(kPieceBytes, '\0');
  while (true) {
    const ssize_t size = read(fd_.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return absl::ErrnoToStatus(errno, path_);
    bytes.resize(static_cast<size_t>(size));
    return bytes;
  }
}

absl::StatusOr<std::string> ArtifactReader::ReadPiece() {
  ASSIGN_OR_RETURN(std::string bytes, ReadStored());
  digest_.Add(bytes);
  return bytes;
}

absl::StatusOr<std::string> ArtifactReader::Next() {
  while (!is_at_end_) {
    ASSIGN_OR_RETURN(std::string piece, ReadPiece());
    is_at_end_ = piece.empty();
    if (is_at_end_ && digest_.HexDigest() != sha256_) damage_ = Changed();
    std::swap(piece, held_back_);
    if (!piece.empty() && damage_.ok()) return piece;
  }
  if (!damage_.ok()) return damage_;
  return std::exchange(held_back_, {});
}

absl::StatusOr<std::string> CopyArtifact(const std::string& root, const core::ArtifactRef& artifact,
                                         ArtifactStore* to) {
  const absl::StatusOr<std::unique_ptr<ArtifactReader>> reader =
      ArtifactReader::Open(root, artifact.sha256);
  if (!reader.ok()) return std::string(reader.status().message());
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactWriter> writer, to->Begin(artifact));
  int64_t bytes = 0;
  while (true) {
    const absl::StatusOr<std::string> piece = (*reader)->Next();
    if (!piece.ok()) return std::string(piece.status().message());
    bytes += static_cast<int64_t>(piece->size());
    if (bytes > artifact.size_bytes || (piece->empty() && bytes < artifact.size_bytes)) {
      return absl::StrCat("it has not the ", artifact.size_bytes,
                          " bytes that the database says it has");
    }
    if (piece->empty()) break;
    RETURN_IF_ERROR(writer->Append(*piece));
  }
  RETURN_IF_ERROR(writer->Finish().status());
  // Where that fails, it is there as it is.
  if ((*reader)->is_compressed()) to->Compress(artifact.sha256).status().IgnoreError();
  return std::string();
}

}  // namespace assay::store
