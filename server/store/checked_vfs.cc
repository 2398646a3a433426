#include "server/store/checked_vfs.h"

#include <libdeflate.h>
#include <sqlite3.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"

namespace assay::store {
namespace {

static_assert(std::endian::native == std::endian::little,
              "SQLite writes logs with checksums in the machine's own order");

constexpr std::array<unsigned char, 4> kTag = {'A', 'S', 'P', '1'};
constexpr int kContentBytes = kPageBytes - kPageReserveBytes;
constexpr int kReserveOffset = 20;  // in the header of a database

using Page = std::array<unsigned char, kPageBytes>;
using Frame = std::array<unsigned char, kFrameBytes>;

thread_local std::string last_fault;

// -------------------------------------------------------------------------------------- checksums

void WriteBig32(uint32_t value, unsigned char* bytes) {
  for (int i = 0; i < 4; ++i)
    bytes[i] = static_cast<unsigned char>(value >> (24 - 8 * i));
}

uint32_t PageChecksum(const unsigned char* page, uint32_t page_number) {
  std::array<unsigned char, 4> number{};
  WriteBig32(page_number, number.data());
  return libdeflate_crc32(libdeflate_crc32(0, number.data(), number.size()), page, kContentBytes);
}

void Seal(unsigned char* page, uint32_t page_number) {
  std::memcpy(page + kContentBytes, kTag.data(), kTag.size());
  WriteBig32(PageChecksum(page, page_number), page + kContentBytes + kTag.size());
}

// ------------------------------------------------------------------------------------------ files

enum class Kind { kDatabase, kWal };

// Frames of the log that SQLite has written and the file does not have yet: those of a transaction,
// one after the other, so that they take one write and not two each. The last may be a header
// whose page comes next.
struct GatheredFrames {
  std::vector<unsigned char> bytes;
  sqlite3_int64 start = 0;  // where in the file
  WalChecksum sum;          // of the last whole frame

  sqlite3_int64 end() const { return start + static_cast<sqlite3_int64>(bytes.size()); }
  bool has_open_header() const { return bytes.size() % kFrameBytes != 0; }
};

// SQLite allocates szOsFile bytes for a file; the system's own file follows ours in them.
struct CheckedFile {
  sqlite3_file base;
  const char* name;  // SQLite's, which outlives the file
  Kind kind;
  std::unique_ptr<GatheredFrames> gathered;  // of a log
  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

CheckedFile* Of(sqlite3_file* file) {
  return reinterpret_cast<CheckedFile*>(file);
}

sqlite3_file* Inner(sqlite3_file* file) {
  return Of(file)->inner();
}

int Fault(const CheckedFile& file, absl::string_view what) {
  const absl::string_view path = file.name == nullptr ? "?" : file.name;
  last_fault = absl::StrCat(path.substr(path.rfind('/') + 1), ": ", what);
  LOG(ERROR) << "damaged " << last_fault;
  return SQLITE_IOERR_DATA;
}

// The system's read and write; a read that ends early gives SQLITE_IOERR_SHORT_READ.
int RawRead(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  return Inner(file)->pMethods->xRead(Inner(file), bytes, size, offset);
}
int RawWrite(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  return Inner(file)->pMethods->xWrite(Inner(file), bytes, size, offset);
}

// ---------------------------------------------------------------------------------- the database

int CheckDatabasePage(const CheckedFile& file, const unsigned char* page, uint32_t number) {
  if (IsPageWhole({page, kPageBytes}, number)) return SQLITE_OK;
  return Fault(file, absl::StrCat("page ", number,
                                  " is damaged, or another program has written it: its checksum is "
                                  "wrong"));
}

int ReadDatabase(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  const bool is_page = size == kPageBytes && offset % kPageBytes == 0;
  if (!is_page && offset + size > kPageBytes) {
    return Fault(*Of(file), absl::StrCat("a read of ", size, " bytes at ", offset,
                                         ": its pages are not of ", kPageBytes, " bytes"));
  }
  // Parts are read of the header only, by which SQLite knows the database.
  Page whole{};
  auto* const page = is_page ? static_cast<unsigned char*>(bytes) : whole.data();
  const sqlite3_int64 start = is_page ? offset : 0;
  const int code = RawRead(file, page, kPageBytes, start);
  const auto number = static_cast<uint32_t>(start / kPageBytes) + 1;
  if (code == SQLITE_IOERR_SHORT_READ) {
    // An empty database is none yet.
    sqlite3_int64 file_size = 0;
    const int size_code = Inner(file)->pMethods->xFileSize(Inner(file), &file_size);
    if (size_code != SQLITE_OK) return size_code;
    if (file_size > 0) {
      return Fault(*Of(file), absl::StrCat("page ", number, " is missing: the file has only ",
                                           file_size, " bytes"));
    }
    std::memset(bytes, 0, static_cast<size_t>(size));
    return code;
  }
  if (code != SQLITE_OK) return code;
  const int checked = CheckDatabasePage(*Of(file), page, number);
  if (checked == SQLITE_OK && !is_page)
    std::memcpy(bytes, whole.data() + offset, static_cast<size_t>(size));
  return checked;
}

int WriteDatabase(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  if (size != kPageBytes || offset % kPageBytes != 0)
    return Fault(*Of(file), absl::StrCat("a write of ", size, " bytes at ", offset, " is no page"));
  Page page;
  std::memcpy(page.data(), bytes, kPageBytes);
  if (offset == 0 && page[kReserveOffset] != kPageReserveBytes)
    return Fault(*Of(file), "its pages have no room for checksums");
  Seal(page.data(), static_cast<uint32_t>(offset / kPageBytes) + 1);
  return RawWrite(file, page.data(), kPageBytes, offset);
}

// ------------------------------------------------------------------------------ the write-ahead
// log

// A transaction of more frames than these takes more than one write: the system's VFS of SQLite
// writes less than 128 KiB at once, and takes more for an error.
constexpr size_t kGatheredFramesMax = 31;
static_assert(kGatheredFramesMax * kFrameBytes < 128 * 1024);

// Whether [offset, offset + size) is just the header of a frame, or just its page.
bool IsHeaderOfFrame(int size, sqlite3_int64 offset) {
  return size == kFrameHeaderBytes && offset >= kWalHeaderBytes &&
         (offset - kWalHeaderBytes) % kFrameBytes == 0;
}
bool IsPageOfFrame(int size, sqlite3_int64 offset) {
  return size == kPageBytes && offset >= kWalHeaderBytes + kFrameHeaderBytes &&
         (offset - kWalHeaderBytes - kFrameHeaderBytes) % kFrameBytes == 0;
}

// Writes what is gathered. What could not be written is forgotten: the transaction has failed.
int Flush(sqlite3_file* file) {
  GatheredFrames& gathered = *Of(file)->gathered;
  if (gathered.bytes.empty()) return SQLITE_OK;
  const int code = RawWrite(file, gathered.bytes.data(), static_cast<int>(gathered.bytes.size()),
                            gathered.start);
  gathered.bytes.clear();
  return code;
}

int ReadWal(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  // All else is recovery, which looks at SQLite's own checksums.
  if (!IsPageOfFrame(size, offset)) return RawRead(file, bytes, size, offset);
  Frame frame;
  const int code = RawRead(file, frame.data(), kFrameBytes, offset - kFrameHeaderBytes);
  const sqlite3_int64 number = (offset - kWalHeaderBytes) / kFrameBytes + 1;
  if (code == SQLITE_IOERR_SHORT_READ)
    return Fault(*Of(file), absl::StrCat("frame ", number, " is missing: the file ends before it"));
  if (code != SQLITE_OK) return code;
  const uint32_t page_number = ReadBig32(frame.data());
  if (!IsPageWhole({frame.data() + kFrameHeaderBytes, kPageBytes}, page_number)) {
    return Fault(*Of(file), absl::StrCat("frame ", number, " with page ", page_number,
                                         " is damaged: its checksum is wrong"));
  }
  std::memcpy(bytes, frame.data() + kFrameHeaderBytes, kPageBytes);
  return SQLITE_OK;
}

// The checksum that the frame at `start` continues: of the frame before, or of the log's header.
int ReadChecksumBefore(sqlite3_file* file, sqlite3_int64 start, WalChecksum* sum) {
  std::array<unsigned char, 8> previous{};
  const bool is_first = start == kWalHeaderBytes;
  const int code = RawRead(file, previous.data(), 8, is_first ? 24 : start - kFrameBytes + 16);
  *sum = {ReadBig32(previous.data()), ReadBig32(previous.data() + 4)};
  return code;
}

// Puts `page` into a frame whose header is there, with both checksums. The sum of the frame.
WalChecksum CompleteFrame(WalChecksum before, const void* page, unsigned char* frame) {
  std::memcpy(frame + kFrameHeaderBytes, page, kPageBytes);
  Seal(frame + kFrameHeaderBytes, ReadBig32(frame));
  const WalChecksum sum = ChecksumOfFrame(before, {frame, kFrameBytes});
  WriteBig32(sum.first, frame + 16);
  WriteBig32(sum.second, frame + 20);
  return sum;
}

// A header that follows what is gathered, or begins anew.
int GatherHeader(sqlite3_file* file, const void* bytes, sqlite3_int64 offset) {
  GatheredFrames& gathered = *Of(file)->gathered;
  if (gathered.end() != offset || gathered.has_open_header()) {
    if (const int code = Flush(file); code != SQLITE_OK) return code;
  }
  if (gathered.bytes.empty()) {
    gathered.start = offset;
    if (const int code = ReadChecksumBefore(file, offset, &gathered.sum); code != SQLITE_OK)
      return code;
  }
  const auto* const header = static_cast<const unsigned char*>(bytes);
  gathered.bytes.insert(gathered.bytes.end(), header, header + kFrameHeaderBytes);
  return SQLITE_OK;
}

// The page of the header that was gathered last. A transaction ends with a frame that says how
// large the database is: others may read the log as soon as that is written.
int GatherPage(sqlite3_file* file, const void* bytes) {
  GatheredFrames& gathered = *Of(file)->gathered;
  const size_t start = gathered.bytes.size() - kFrameHeaderBytes;
  gathered.bytes.resize(start + kFrameBytes);
  unsigned char* const frame = gathered.bytes.data() + start;
  gathered.sum = CompleteFrame(gathered.sum, bytes, frame);
  const bool is_commit = ReadBig32(frame + 4) != 0;
  if (is_commit || gathered.bytes.size() >= kGatheredFramesMax * kFrameBytes) return Flush(file);
  return SQLITE_OK;
}

// A page that is written again in its old place: its header is in the file.
int RewritePage(sqlite3_file* file, const void* bytes, sqlite3_int64 offset) {
  const sqlite3_int64 start = offset - kFrameHeaderBytes;
  WalChecksum before;
  if (const int code = ReadChecksumBefore(file, start, &before); code != SQLITE_OK) return code;
  Frame frame;
  if (const int code = RawRead(file, frame.data(), kFrameHeaderBytes, start); code != SQLITE_OK)
    return code;
  CompleteFrame(before, bytes, frame.data());
  return RawWrite(file, frame.data(), kFrameBytes, start);
}

int WriteWal(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  if (IsHeaderOfFrame(size, offset)) return GatherHeader(file, bytes, offset);
  const GatheredFrames& gathered = *Of(file)->gathered;
  const bool is_page = IsPageOfFrame(size, offset);
  if (is_page && gathered.has_open_header() && gathered.end() == offset)
    return GatherPage(file, bytes);
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return is_page ? RewritePage(file, bytes, offset) : RawWrite(file, bytes, size, offset);
}

// -------------------------------------------------------------------------------- SQLite's tables

int Read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 offset) {
  return Of(file)->kind == Kind::kWal ? ReadWal(file, bytes, size, offset)
                                      : ReadDatabase(file, bytes, size, offset);
}
int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  return Of(file)->kind == Kind::kWal ? WriteWal(file, bytes, size, offset)
                                      : WriteDatabase(file, bytes, size, offset);
}

// The rest is the system's own.
template <auto kMethod, typename... Args>
auto Forward(sqlite3_file* file, Args... args) {
  return (Inner(file)->pMethods->*kMethod)(Inner(file), args...);
}
int Close(sqlite3_file* file) {
  const int code = Forward<&sqlite3_io_methods::xClose>(file);
  Of(file)->~CheckedFile();
  return code;
}
// The same, of a file that has all that was written to it.
template <auto kMethod, typename... Args>
int ForwardFlushed(sqlite3_file* file, Args... args) {
  if (Of(file)->kind == Kind::kWal)
    if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Forward<kMethod>(file, args...);
}

// Version 2 of the interface has no xFetch: every page goes through Read.
constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = ForwardFlushed<&sqlite3_io_methods::xTruncate, sqlite3_int64>,
    .xSync = ForwardFlushed<&sqlite3_io_methods::xSync, int>,
    .xFileSize = ForwardFlushed<&sqlite3_io_methods::xFileSize, sqlite3_int64*>,
    .xLock = Forward<&sqlite3_io_methods::xLock, int>,
    .xUnlock = Forward<&sqlite3_io_methods::xUnlock, int>,
    .xCheckReservedLock = Forward<&sqlite3_io_methods::xCheckReservedLock, int*>,
    .xFileControl = Forward<&sqlite3_io_methods::xFileControl, int, void*>,
    .xSectorSize = Forward<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = Forward<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = Forward<&sqlite3_io_methods::xShmMap, int, int, int, void volatile**>,
    .xShmLock = Forward<&sqlite3_io_methods::xShmLock, int, int, int>,
    .xShmBarrier = Forward<&sqlite3_io_methods::xShmBarrier>,
    .xShmUnmap = Forward<&sqlite3_io_methods::xShmUnmap, int>,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* SystemVfs() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  return vfs;
}

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  // Journals and temporary files are not kept.
  if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) == 0)
    return SystemVfs()->xOpen(SystemVfs(), name, file, flags, out_flags);
  auto* const checked = new (file) CheckedFile{};
  checked->name = name;
  checked->kind = (flags & SQLITE_OPEN_WAL) != 0 ? Kind::kWal : Kind::kDatabase;
  if (checked->kind == Kind::kWal) checked->gathered = std::make_unique<GatheredFrames>();
  const int code = SystemVfs()->xOpen(SystemVfs(), name, checked->inner(), flags, out_flags);
  // SQLite closes whatever has methods.
  if (checked->inner()->pMethods != nullptr) {
    checked->base.pMethods = &kMethods;
  } else {
    checked->~CheckedFile();
  }
  return code;
}

const char* Register() {
  static sqlite3_vfs vfs = *SystemVfs();
  vfs.zName = "assay-checked";
  vfs.szOsFile += static_cast<int>(sizeof(CheckedFile));
  vfs.pNext = nullptr;
  vfs.xOpen = Open;
  // The other functions are the system's; they find what is theirs in pAppData.
  CHECK(sqlite3_vfs_register(&vfs, /*makeDflt=*/0) == SQLITE_OK);
  return vfs.zName;
}

}  // namespace

const char* CheckedVfs() {
  static const char* const name = Register();
  return name;
}

std::string TakePageFault() {
  return std::exchange(last_fault, {});
}

bool IsPageWhole(std::span<const unsigned char> page, uint32_t page_number) {
  return HasPageTag(page) && ReadBig32(page.data() + kContentBytes + kTag.size()) ==
                                 PageChecksum(page.data(), page_number);
}

bool HasPageTag(std::span<const unsigned char> page) {
  return std::memcmp(page.data() + kContentBytes, kTag.data(), kTag.size()) == 0;
}

uint32_t ReadBig32(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

WalChecksum AddToWalChecksum(WalChecksum sum, std::span<const unsigned char> bytes) {
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    uint32_t words[2];
    std::memcpy(words, bytes.data() + i, sizeof(words));
    sum.first += words[0] + sum.second;
    sum.second += words[1] + sum.first;
  }
  return sum;
}

WalChecksum ChecksumOfFrame(WalChecksum previous, std::span<const unsigned char> frame) {
  return AddToWalChecksum(AddToWalChecksum(previous, frame.first(8)),
                          frame.subspan(kFrameHeaderBytes, kPageBytes));
}

}  // namespace assay::store
