#include "worker/agent/device_reads.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay::agent {
namespace {

constexpr uint64_t kSectorBytes = 512;
constexpr size_t kExtentsAtOnce = 128;
constexpr size_t kRingPages = 32;  // a power of two
constexpr uint32_t kMinorBits = 20;
// Of the end of a request nothing comes where its processor idles (Linux 6.18).
constexpr char kEvent[] = "events/block/block_rq_issue";
constexpr char kTraceRoot[] = "/sys/kernel/tracing";
// Extents whose place is not where their bytes are.
constexpr uint32_t kElsewhere = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
                                FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED;

// The disk below a file system, and where on it that begins.
struct Disk {
  uint32_t number = 0;
  uint64_t begin = 0;
};

std::string TrimmedText(const std::string& path) {
  return std::string(absl::StripAsciiWhitespace(ReadFile(path).value_or("")));
}

absl::Status NotTelling(absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("which blocks are the data's cannot be told: ", why));
}

absl::StatusOr<Disk> DiskOf(dev_t device) {
  const std::string name = absl::StrCat(major(device), ":", minor(device));
  std::error_code error;
  std::filesystem::path folder =
      std::filesystem::canonical(absl::StrCat("/sys/dev/block/", name), error);
  if (error) return NotTelling(absl::StrCat("its file system is on no block device (", name, ")"));
  Disk disk;
  if (FileExists((folder / "partition").string())) {
    uint64_t sector = 0;
    if (!absl::SimpleAtoi(TrimmedText((folder / "start").string()), &sector))
      return NotTelling(absl::StrCat(folder.string(), "/start is no number"));
    disk.begin = sector * kSectorBytes;
    folder = folder.parent_path();
  }
  // Devices made of others, and those whose driver keeps no queue of requests, note no request.
  if (!FileExists((folder / "mq").string()))
    return NotTelling(absl::StrCat(folder.filename().string(), " has no request queue of its own"));
  const std::vector<std::string> numbers =
      absl::StrSplit(TrimmedText((folder / "dev").string()), ':');
  uint32_t major_number = 0;
  uint32_t minor_number = 0;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &major_number) ||
      !absl::SimpleAtoi(numbers[1], &minor_number))
    return NotTelling(absl::StrCat(folder.string(), "/dev is no number of a device"));
  disk.number = major_number << kMinorBits | minor_number;
  return disk;
}

// Adds the ranges of one file.
absl::Status AddRanges(int fd, const std::string& path, const Disk& disk,
                       std::vector<DeviceRange>* ranges) {
  alignas(fiemap) std::array<char, sizeof(fiemap) + kExtentsAtOnce * sizeof(fiemap_extent)> bytes{};
  auto* const map = reinterpret_cast<fiemap*>(bytes.data());
  uint64_t offset = 0;
  for (bool is_last = false; !is_last;) {
    bytes.fill(0);
    map->fm_start = offset;
    map->fm_length = FIEMAP_MAX_OFFSET - offset;
    map->fm_extent_count = kExtentsAtOnce;
    if (ioctl(fd, FS_IOC_FIEMAP, map) != 0)
      return NotTelling(absl::StrCat(path, ": ", strerror(errno)));
    if (map->fm_mapped_extents == 0) return absl::OkStatus();
    for (size_t i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& extent = map->fm_extents[i];
      if ((extent.fe_flags & kElsewhere) != 0)
        return NotTelling(absl::StrCat(path, " is not stored as it is read"));
      is_last = (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
      offset = extent.fe_logical + extent.fe_length;
      if ((extent.fe_flags & FIEMAP_EXTENT_NOT_ALIGNED) != 0) continue;  // in the file's inode
      const uint64_t begin = disk.begin + extent.fe_physical;
      ranges->push_back({disk.number, begin, begin + extent.fe_length});
    }
  }
  return absl::OkStatus();
}

std::vector<DeviceRange> Merged(std::vector<DeviceRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<DeviceRange> merged;
  for (const DeviceRange& range : ranges) {
    if (!merged.empty() && merged.back().device == range.device && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  }
  return merged;
}

// The folder of the tracepoints, which few processes are shown.
absl::StatusOr<std::string> FindTracepoints() {
  for (const std::string root : {kTraceRoot, "/sys/kernel/debug/tracing"})
    if (FileExists(JoinPath(root, kEvent))) return root;
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tracefs", kTraceRoot, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return absl::UnavailableError(absl::StrCat("no tracepoints: ", strerror(errno)));
  return kTraceRoot;
}

std::string FilterOf(const std::vector<DeviceRange>& ranges) {
  std::vector<std::string> terms;
  for (const DeviceRange& range : ranges)
    if (terms.empty() || terms.back() != absl::StrCat("dev == ", range.device))
      terms.push_back(absl::StrCat("dev == ", range.device));
  return absl::StrJoin(terms, " || ");
}

template <class Number>
Number NumberAt(absl::string_view record, size_t offset) {
  Number number = 0;
  if (offset + sizeof(number) <= record.size())
    std::memcpy(&number, record.data() + offset, sizeof(number));
  return number;
}

}  // namespace

absl::StatusOr<std::vector<DeviceRange>> RangesOf(const std::vector<std::string>& files,
                                                  absl::Duration budget, const Clock& clock) {
  const MonoTime deadline = clock.Mono() + budget;
  std::map<dev_t, Disk> disks;
  std::vector<DeviceRange> ranges;
  for (size_t i = 0; i < files.size(); ++i) {
    if (clock.Mono() >= deadline)
      return absl::DeadlineExceededError(absl::StrCat("the blocks of ", i, " of ", files.size(),
                                                      " files were found within ",
                                                      absl::FormatDuration(budget)));
    const absl::StatusOr<UniqueFd> file = OpenRegularFile(files[i]);
    if (absl::IsNotFound(file.status())) continue;
    RETURN_IF_ERROR(file.status());
    struct stat info {};
    if (fstat(file->get(), &info) != 0) return absl::ErrnoToStatus(errno, files[i]);
    auto disk = disks.find(info.st_dev);
    if (disk == disks.end()) {
      ASSIGN_OR_RETURN(const Disk found, DiskOf(info.st_dev));
      disk = disks.emplace(info.st_dev, found).first;
    }
    RETURN_IF_ERROR(AddRanges(file->get(), files[i], disk->second, &ranges));
  }
  return Merged(std::move(ranges));
}

uint64_t Common(const DeviceRange& a, const std::vector<DeviceRange>& ranges) {
  auto range = std::lower_bound(
      ranges.begin(), ranges.end(), a, [](const DeviceRange& each, const DeviceRange& wanted) {
        return std::pair(each.device, each.end) < std::pair(wanted.device, wanted.begin);
      });
  uint64_t bytes = 0;
  for (; range != ranges.end() && range->device == a.device && range->begin < a.end; ++range)
    if (a.begin < range->end)
      bytes += std::min(a.end, range->end) - std::max(a.begin, range->begin);
  return bytes;
}

// "	field:sector_t sector;	offset:16;	size:8;	signed:0;"
absl::StatusOr<RequestFields> ParseRequestFormat(absl::string_view format) {
  struct Place {
    size_t offset = 0;
    size_t size = 0;
  };
  std::map<std::string, Place> places;
  for (absl::string_view line : absl::StrSplit(format, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "field:")) continue;
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ';');
    Place place;
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(parts[0], ' ');
    const std::pair<absl::string_view, absl::string_view> offset =
        absl::StrSplit(parts[1], absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> size =
        absl::StrSplit(parts[2], absl::MaxSplits(':', 1));
    if (absl::SimpleAtoi(offset.second, &place.offset) &&
        absl::SimpleAtoi(size.second, &place.size))
      places[std::string(words.back().substr(0, words.back().find('[')))] = place;
  }
  if (places["dev"].size != sizeof(uint32_t) || places["sector"].size != sizeof(uint64_t) ||
      places["nr_sector"].size != sizeof(uint32_t) || places["rwbs"].size == 0)
    return absl::UnimplementedError("the kernel's tracepoint of requests has other fields");
  return RequestFields{.device = places["dev"].offset,
                       .sector = places["sector"].offset,
                       .sector_count = places["nr_sector"].offset,
                       .kind = places["rwbs"].offset,
                       .kind_bytes = places["rwbs"].size};
}

// What the kernel writes for one processor: a page about it, and the records.
struct DeviceReads::Ring {
  explicit Ring(UniqueFd counter) : fd(std::move(counter)) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes = (kRingPages + 1) * page;
    data_bytes = kRingPages * page;
    map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  }
  ~Ring() {
    if (map != MAP_FAILED) munmap(map, bytes);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  perf_event_mmap_page* head() const { return static_cast<perf_event_mmap_page*>(map); }
  // The record may go on at the beginning.
  std::string Copy(uint64_t position, size_t count) const {
    const char* const data = static_cast<const char*>(map) + (bytes - data_bytes);
    std::string copy(count, '\0');
    for (size_t i = 0; i < count; ++i)
      copy[i] = data[(position + i) % data_bytes];
    return copy;
  }

  UniqueFd fd;
  size_t bytes = 0;
  size_t data_bytes = 0;
  void* map = MAP_FAILED;
};

DeviceReads::DeviceReads(std::vector<DeviceRange> ranges, const RequestFields& fields)
    : ranges_(std::move(ranges)), fields_(fields) {}
DeviceReads::DeviceReads(DeviceReads&&) noexcept = default;
DeviceReads& DeviceReads::operator=(DeviceReads&&) noexcept = default;
DeviceReads::~DeviceReads() = default;

absl::StatusOr<DeviceReads> DeviceReads::Watch(std::vector<DeviceRange> ranges) {
  ASSIGN_OR_RETURN(const std::string root, FindTracepoints());
  const std::string folder = JoinPath(root, kEvent);
  ASSIGN_OR_RETURN(const std::string format, ReadFile(JoinPath(folder, "format")));
  ASSIGN_OR_RETURN(const RequestFields fields, ParseRequestFormat(format));
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_TRACEPOINT;
  if (!absl::SimpleAtoi(TrimmedText(JoinPath(folder, "id")), &attributes.config))
    return absl::UnavailableError(absl::StrCat(folder, "/id is no number"));
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_RAW;
  attributes.watermark = 1;
  attributes.wakeup_watermark =
      static_cast<uint32_t>(kRingPages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4);
  DeviceReads reads(std::move(ranges), fields);
  const std::string filter = FilterOf(reads.ranges_);
  if (filter.empty()) return reads;  // of no data nothing is read
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < processors; ++processor) {
    UniqueFd fd(static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, -1, processor, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!fd.is_open() && errno == ENODEV) continue;  // it is off
    if (!fd.is_open() || ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0)
      return absl::UnavailableError(absl::StrCat("no tracepoint of requests: ", strerror(errno)));
    reads.rings_.push_back(std::make_unique<Ring>(std::move(fd)));
    if (reads.rings_.back()->map == MAP_FAILED)
      return absl::UnavailableError(absl::StrCat("no memory for tracepoints: ", strerror(errno)));
  }
  return reads;
}

void DeviceReads::Take() {
  for (const std::unique_ptr<Ring>& ring : rings_)
    TakeFrom(ring.get());
}

void DeviceReads::TakeFrom(Ring* ring) {
  const uint64_t end = __atomic_load_n(&ring->head()->data_head, __ATOMIC_ACQUIRE);
  uint64_t position = ring->head()->data_tail;
  while (position < end) {
    perf_event_header header{};
    const std::string bytes = ring->Copy(position, sizeof(header));
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.size < sizeof(header)) break;
    if (header.type == PERF_RECORD_LOST) has_lost_ = true;
    if (header.type == PERF_RECORD_SAMPLE) {
      const std::string record =
          ring->Copy(position + sizeof(header), header.size - sizeof(header));
      const auto size = NumberAt<uint32_t>(record, 0);
      if (size + sizeof(size) <= record.size())
        TakeRequest(absl::string_view(record).substr(sizeof(size), size));
    }
    position += header.size;
  }
  __atomic_store_n(&ring->head()->data_tail, position, __ATOMIC_RELEASE);
}

void DeviceReads::TakeRequest(absl::string_view record) {
  if (record.size() < fields_.kind + fields_.kind_bytes) return;
  const absl::string_view kind = record.substr(fields_.kind, fields_.kind_bytes);
  if (!absl::StrContains(kind.substr(0, kind.find('\0')), 'R')) return;
  const uint64_t begin = NumberAt<uint64_t>(record, fields_.sector) * kSectorBytes;
  const uint64_t length = NumberAt<uint32_t>(record, fields_.sector_count) * kSectorBytes;
  bytes_ += static_cast<int64_t>(
      Common({NumberAt<uint32_t>(record, fields_.device), begin, begin + length}, ranges_));
}

std::vector<int> DeviceReads::fds() const {
  std::vector<int> fds;
  for (const std::unique_ptr<Ring>& ring : rings_)
    fds.push_back(ring->fd.get());
  return fds;
}

}  // namespace assay::agent
