// Page checksums: a SQLite VFS around the system's own that ends every page of a database with a
// checksum and looks at it whenever the page is read, from the database or from its write-ahead
// log.
//
// The last 8 bytes of a page are reserved (SQLITE_FCNTL_RESERVE_BYTES, byte 20 of the header): a
// tag, then CRC-32 over the page's number and the bytes before. SQLite leaves them alone, so the
// file stays readable with any SQLite; but what another program writes has no checksum and is
// refused. A frame of the log carries the page with its checksum, and SQLite's own checksum of the
// frame is computed anew over that, so that recovery and checkpoints, ours or another program's,
// see nothing unusual.

#ifndef SERVER_STORE_CHECKED_VFS_H_
#define SERVER_STORE_CHECKED_VFS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::store {

// Every database of ours has pages of this size: SQLite's default since 2016.
inline constexpr int kPageBytes = 4096;
// At the end of each page.
inline constexpr int kPageReserveBytes = 8;

// The name to open a database with (sqlite3_open_v2); registered at the first call. Thread-safe.
//
// A new database has to get its reserve before anything is written to it. A read of a page whose
// checksum is wrong, or of one beyond the end of the file, fails with SQLITE_IOERR_DATA, and
// TakePageFault says which; so does any read of a database without checksums.
const char* CheckedVfs();

// The last fault that this thread has met, "assay.db: page 7 (of ...)", and forgets it; empty if
// there was none.
std::string TakePageFault();

// Whether `page` (kPageBytes), number `page_number` of its database counted from 1, is as it was
// written.
bool IsPageWhole(std::span<const unsigned char> page, uint32_t page_number);

// Whether there is anything like a checksum, right or wrong.
bool HasPageTag(std::span<const unsigned char> page);

// ------------------------------------------------------------------------- the write-ahead log
// As SQLite's documentation of its file format has it (fileformat2.html, section 4): a header of 32
// bytes, then frames of a header of 24 bytes and a page. Checksums are chained from the header on.

inline constexpr int kWalHeaderBytes = 32;
inline constexpr int kFrameHeaderBytes = 24;
inline constexpr int kFrameBytes = kFrameHeaderBytes + kPageBytes;

struct WalChecksum {
  uint32_t first = 0;
  uint32_t second = 0;
  bool operator==(const WalChecksum&) const = default;
};

// Continues `sum` over `bytes`, whose size is a multiple of 8, as little-endian words.
WalChecksum AddToWalChecksum(WalChecksum sum, std::span<const unsigned char> bytes);

// The checksum of a frame that follows one with checksum `previous` (or the log's header).
WalChecksum ChecksumOfFrame(WalChecksum previous, std::span<const unsigned char> frame);

// Big-endian, as the headers hold numbers.
uint32_t ReadBig32(const unsigned char* bytes);

}  // namespace assay::store

#endif  // SERVER_STORE_CHECKED_VFS_H_
