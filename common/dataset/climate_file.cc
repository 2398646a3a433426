#include "common/dataset/climate_file.h"

#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/dataset/tfrecord.h"
#include "common/mutex.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

using Dimensions = std::vector<hsize_t>;

// The library keeps global state.
Mutex& LibraryMutex() {
  static Mutex mutex;
  return mutex;
}

// One identifier of the library, closed when it goes.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;

  hid_t id() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("HDF5: ", what));
}

absl::Status OurError(absl::string_view what) {
  return absl::InternalError(absl::StrCat("HDF5: cannot ", what));
}

// A file in memory: of `bytes`, or empty to be written to.
Handle OpenImage(absl::string_view bytes) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors come as status, not on stderr
  constexpr size_t kGrowth = size_t{1} << 16;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.id(), kGrowth, /*backing_store=*/false);
  if (bytes.empty())
    return Handle(H5Fcreate("image", H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose);
  // The library copies the image; it does not write to ours.
  H5Pset_file_image(access.id(), const_cast<char*>(bytes.data()), bytes.size());
  return Handle(H5Fopen("image", H5F_ACC_RDONLY, access.id()), H5Fclose);
}

struct OpenDataset {
  Handle set;
  Dimensions dimensions;
  H5T_class_t kind;
};

// A link out of the file is not followed: what lies elsewhere is in no digest of this file.
herr_t RefuseLink(const char* /*parent_file*/, const char* /*parent_group*/,
                  const char* /*child_file*/, const char* /*child_object*/, unsigned* /*flags*/,
                  hid_t /*access*/, void* /*user*/) {
  return -1;
}

// True if the numbers of `set` lie in other files: raw (external storage) or of HDF5 (a virtual
// dataset).
bool IsElsewhere(const Handle& set) {
  const Handle options(H5Dget_create_plist(set.id()), H5Pclose);
  return H5Pget_external_count(options.id()) != 0 || H5Pget_layout(options.id()) == H5D_VIRTUAL;
}

absl::StatusOr<OpenDataset> Open(const Handle& file, const char* path) {
  if (!file.is_open()) return Damaged("not an HDF5 file, or a damaged one");
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_elink_cb(access.id(), RefuseLink, nullptr);
  Handle set(H5Dopen2(file.id(), path, access.id()), H5Dclose);
  if (!set.is_open()) return Damaged(absl::StrCat("no dataset ", path));
  if (IsElsewhere(set)) return Damaged(absl::StrCat(path, " keeps its numbers in another file"));
  const Handle space(H5Dget_space(set.id()), H5Sclose);
  const Handle type(H5Dget_type(set.id()), H5Tclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 0 || rank > 3) return Damaged(absl::StrCat(path, " has an unexpected rank ", rank));
  Dimensions dimensions(static_cast<size_t>(rank));
  if (rank > 0) H5Sget_simple_extent_dims(space.id(), dimensions.data(), nullptr);
  return OpenDataset{std::move(set), std::move(dimensions), H5Tget_class(type.id())};
}

std::string Describe(const Dimensions& dimensions) {
  std::string text = "[";
  for (size_t i = 0; i < dimensions.size(); ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", dimensions[i]);
  return text + "]";
}

struct Wanted {
  const char* path;
  H5T_class_t kind;
  hid_t memory_type;
  Dimensions dimensions;
};

absl::Status Read(const Handle& file, const Wanted& wanted, void* values) {
  ASSIGN_OR_RETURN(const OpenDataset opened, Open(file, wanted.path));
  if (opened.kind != wanted.kind)
    return Damaged(absl::StrCat(wanted.path, " holds another kind of number"));
  if (opened.dimensions != wanted.dimensions)
    return Damaged(absl::StrCat(wanted.path, " is ", Describe(opened.dimensions), ", not ",
                                Describe(wanted.dimensions)));
  if (H5Dread(opened.set.id(), wanted.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
    return Damaged(absl::StrCat("cannot read ", wanted.path));
  return absl::OkStatus();
}

// Creates and fills a dataset; without time stamps, so that equal content gives equal bytes.
absl::Status Write(hid_t group, const Wanted& wanted, hid_t file_type, const void* values) {
  const Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(options.id(), false);
  const Handle space(wanted.dimensions.empty()
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(wanted.dimensions.size()),
                                            wanted.dimensions.data(), nullptr),
                     H5Sclose);
  const Handle set(
      H5Dcreate2(group, wanted.path, file_type, space.id(), H5P_DEFAULT, options.id(), H5P_DEFAULT),
      H5Dclose);
  if (!set.is_open() ||
      H5Dwrite(set.id(), wanted.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
    return OurError(absl::StrCat("write ", wanted.path));
  return absl::OkStatus();
}

Handle CreateGroup(const Handle& file) {
  const Handle options(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(options.id(), false);
  return Handle(H5Gcreate2(file.id(), "climate", H5P_DEFAULT, options.id(), H5P_DEFAULT), H5Gclose);
}

absl::StatusOr<std::string> ImageOf(const Handle& file) {
  H5Fflush(file.id(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file.id(), nullptr, 0);
  if (size < 0) return OurError("measure the file");
  std::string bytes(static_cast<size_t>(size), '\0');
  if (H5Fget_file_image(file.id(), bytes.data(), bytes.size()) < 0)
    return OurError("copy the file");
  return bytes;
}

Dimensions MapOf(const ClimateExtents& extents) {
  return {static_cast<hsize_t>(extents.height), static_cast<hsize_t>(extents.width)};
}

Dimensions DataOf(const ClimateExtents& extents) {
  Dimensions dimensions = MapOf(extents);
  dimensions.push_back(kClimateChannels);
  return dimensions;
}

absl::Status CheckFinite(std::span<const float> data) {
  const auto bad =
      std::find_if(data.begin(), data.end(), [](float x) { return !std::isfinite(x); });
  if (bad == data.end()) return absl::OkStatus();
  const auto channel = static_cast<size_t>((bad - data.begin()) % kClimateChannels);
  return Damaged(absl::StrCat("climate/data has a value that is not finite in ",
                              kClimateChannelNames[channel]));
}

absl::Status StoreLabels(std::span<const int32_t> labels, std::span<uint8_t> destination) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= kClimateClasses)
      return Damaged(absl::StrCat("climate/labels_0 has a label ", labels[i], ", not in 0..2"));
    destination[i] = static_cast<uint8_t>(labels[i]);
  }
  return absl::OkStatus();
}

// The four lists of stats.h5 in a fixed order.
template <typename Statistics>
auto Lists(Statistics& s) {
  return std::array{std::pair{"mean", &s.mean}, std::pair{"sqmean", &s.mean_square},
                    std::pair{"minval", &s.min}, std::pair{"maxval", &s.max}};
}

}  // namespace

const std::array<absl::string_view, kClimateChannels> kClimateChannelNames = {
    "TMQ",  "U850", "V850",  "UBOT", "VBOT",   "QREFHT", "PS",   "PSL",
    "T200", "T500", "PRECT", "TS",   "TREFHT", "Z1000",  "Z200", "ZBOT"};

absl::StatusOr<ClimateExtents> ClimateExtentsOf(absl::string_view file) {
  MutexLock lock(&LibraryMutex());
  const Handle image = OpenImage(file);
  ASSIGN_OR_RETURN(const OpenDataset data, Open(image, "climate/data"));
  constexpr hsize_t kMaxExtent = 1 << 16;
  const Dimensions& d = data.dimensions;
  if (d.size() != 3 || d[2] != kClimateChannels || d[0] > kMaxExtent || d[1] > kMaxExtent)
    return Damaged(absl::StrCat("climate/data is ", Describe(d), ", not [height, width, 16]"));
  const ClimateExtents extents = {static_cast<int>(d[0]), static_cast<int>(d[1])};
  // A small file may claim any size: what nobody has written needs no space.
  if (extents.values() * int64_t{sizeof(float)} > kMaxFileBytes)
    return Damaged(absl::StrCat("climate/data is ", Describe(d), ": too large for a sample"));
  return extents;
}

absl::Status ParseClimateSample(absl::string_view file, const ClimateExtents& extents,
                                const ClimateDestination& destination) {
  std::vector<int32_t> labels(static_cast<size_t>(extents.pixels()));
  {
    MutexLock lock(&LibraryMutex());
    const Handle image = OpenImage(file);
    RETURN_IF_ERROR(Read(image, {"climate/data", H5T_FLOAT, H5T_NATIVE_FLOAT, DataOf(extents)},
                         destination.data.data()));
    RETURN_IF_ERROR(Read(image, {"climate/labels_0", H5T_INTEGER, H5T_NATIVE_INT32, MapOf(extents)},
                         labels.data()));
  }
  RETURN_IF_ERROR(CheckFinite(destination.data));
  return StoreLabels(labels, destination.labels);
}

absl::StatusOr<std::string> EncodeClimateSample(const ClimateSample& sample) {
  MutexLock lock(&LibraryMutex());
  const Handle file = OpenImage("");
  if (!file.is_open()) return OurError("create a file in memory");
  {
    const Handle group = CreateGroup(file);
    RETURN_IF_ERROR(Write(group.id(), {"data", H5T_FLOAT, H5T_NATIVE_FLOAT, DataOf(sample.extents)},
                          H5T_IEEE_F32LE, sample.data.data()));
    for (const auto& [name, labels] :
         {std::pair{"labels_0", &sample.labels}, std::pair{"labels_1", &sample.relaxed_labels}}) {
      const std::vector<int32_t> wide(labels->begin(), labels->end());
      RETURN_IF_ERROR(Write(group.id(),
                            {name, H5T_INTEGER, H5T_NATIVE_INT32, MapOf(sample.extents)},
                            H5T_STD_I32LE, wide.data()));
    }
  }
  return ImageOf(file);
}

absl::StatusOr<ClimateStatistics> ParseClimateStatistics(absl::string_view file) {
  ClimateStatistics statistics;
  {
    MutexLock lock(&LibraryMutex());
    const Handle image = OpenImage(file);
    RETURN_IF_ERROR(
        Read(image, {"climate/count", H5T_INTEGER, H5T_NATIVE_INT64, {}}, &statistics.count));
    for (const auto& [name, list] : Lists(statistics)) {
      const std::string path = absl::StrCat("climate/", name);
      RETURN_IF_ERROR(Read(image, {path.c_str(), H5T_FLOAT, H5T_NATIVE_FLOAT, {kClimateChannels}},
                           list->data()));
    }
  }
  for (size_t c = 0; c < kClimateChannels; ++c)
    if (!(statistics.max[c] > statistics.min[c]) || !std::isfinite(statistics.max[c]) ||
        !std::isfinite(statistics.min[c]))
      return Damaged(absl::StrCat("the range of ", kClimateChannelNames[c], " is ",
                                  statistics.min[c], " to ", statistics.max[c]));
  return statistics;
}

absl::StatusOr<std::string> EncodeClimateStatistics(const ClimateStatistics& statistics) {
  MutexLock lock(&LibraryMutex());
  const Handle file = OpenImage("");
  if (!file.is_open()) return OurError("create a file in memory");
  {
    const Handle group = CreateGroup(file);
    RETURN_IF_ERROR(Write(group.id(), {"count", H5T_INTEGER, H5T_NATIVE_INT64, {}}, H5T_STD_I64LE,
                          &statistics.count));
    for (const auto& [name, list] : Lists(statistics))
      RETURN_IF_ERROR(Write(group.id(), {name, H5T_FLOAT, H5T_NATIVE_FLOAT, {kClimateChannels}},
                            H5T_IEEE_F32LE, list->data()));
  }
  return ImageOf(file);
}

void NormaliseClimate(const ClimateStatistics& statistics, std::span<float> data) {
  std::array<float, kClimateChannels> scale;
  for (size_t c = 0; c < kClimateChannels; ++c)
    scale[c] = 1.0F / (statistics.max[c] - statistics.min[c]);
  for (size_t pixel = 0; pixel + kClimateChannels <= data.size(); pixel += kClimateChannels)
    for (size_t c = 0; c < kClimateChannels; ++c)
      data[pixel + c] = (data[pixel + c] - statistics.min[c]) * scale[c];
}

}  // namespace assay::dataset
