#include "worker/engine/spatial_layers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/log.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

Shape Extended(const Shape& block, const SpatialGrid& grid, const Halo& halo) {
  const int64_t more = halo.before + halo.after;
  return {block[0], block[1] + (grid.IsSplit(0) ? more : 0),
          block[2] + (grid.IsSplit(1) ? more : 0), block[3], block[4]};
}

// The first element along D and H, and the extents, of a block within its extended tensor.
Box Interior(const Shape& block, const SpatialGrid& grid, const Halo& halo) {
  return {.begin = {grid.IsSplit(0) ? halo.before : 0, grid.IsSplit(1) ? halo.before : 0},
          .extent = {block[1], block[2]}};
}

template <typename T>
void AddTo(std::span<const std::byte> terms, std::span<std::byte> sums) {
  CHECK(terms.size() == sums.size());
  const T* const in = reinterpret_cast<const T*>(terms.data());
  T* const out = reinterpret_cast<T*>(sums.data());
  for (size_t i = 0; i < sums.size() / sizeof(T); ++i)
    out[i] += in[i];
}

template <typename T>
void MultiplyBy(T factor, std::span<std::byte> bytes) {
  T* const values = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
    values[i] *= factor;
}

}  // namespace

class HaloLayer::Scratch {
 public:
  static constexpr size_t kAlignment = 256;
  static size_t Rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  explicit Scratch(void* memory) : next_(static_cast<std::byte*>(memory)) {}
  void* Take(size_t bytes) { return std::exchange(next_, next_ + Rounded(bytes)); }

 private:
  std::byte* next_;
};

HaloLayer::HaloLayer(Backend* backend, SpatialGroup* group, const Shape& input, int64_t kernel)
    : backend_(backend),
      group_(group),
      block_(input),
      interior_(Interior(input, group->place().grid, HaloOf(kernel))),
      extended_(Extended(input, group->place().grid, HaloOf(kernel))),
      halo_(HaloOf(kernel)) {
  CHECK(std::min(input[1], input[2]) >= std::max(halo_.before, halo_.after))
      << "a block smaller than its halo: " << input.ToString();
}

absl::Status HaloLayer::Plan(LayerMemory memory, bool wants_dx) {
  memory.activations->Reserve(extended_, backend_->real(), &y_);
  if (wants_dx) memory.activations->Reserve(block_, backend_->real(), &dx_);
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    // The host takes one piece at a time, devices exchange all at once and add to one more.
    size_t all = 0, largest = 0;
    for (const Border& border : Borders(axis))
      for (const Box& box : {border.inner, border.outer}) {
        all += Scratch::Rounded(BytesOf(box));
        largest = std::max(largest, BytesOf(box));
      }
    memory.WantScratch(all + largest);
  }
  return absl::OkStatus();
}

// Planes along `axis`: whole rows of the extended tensor for H, of the block alone for D.
Box HaloLayer::Strip(size_t axis, int64_t begin, int64_t extent) const {
  Box box = interior_;
  if (axis == 1) {
    box.begin[0] = 0;
    box.extent[0] = extended_[1];
  }
  box.begin[axis] = begin;
  box.extent[axis] = extent;
  return box;
}

std::vector<HaloLayer::Border> HaloLayer::Borders(size_t axis) const {
  const SpatialPlace& place = group_->place();
  const int64_t begin = interior_.begin[axis], end = begin + interior_.extent[axis];
  std::vector<Border> borders;
  if (const std::optional<int> lower = place.Neighbour(axis, -1))
    borders.push_back({.member = *lower,
                       .inner = Strip(axis, begin, halo_.after),
                       .outer = Strip(axis, begin - halo_.before, halo_.before)});
  if (const std::optional<int> upper = place.Neighbour(axis, 1))
    borders.push_back({.member = *upper,
                       .inner = Strip(axis, end - halo_.before, halo_.before),
                       .outer = Strip(axis, end, halo_.after)});
  return borders;
}

size_t HaloLayer::BytesOf(const Box& box) const {
  return static_cast<size_t>(box.elements(extended_)) * SizeOf(backend_->real());
}

// Where a box lies in scratch memory; empty if the box is.
Tensor HaloLayer::Packed(const Box& box, void* scratch) const {
  const int64_t elements = box.elements(extended_);
  if (elements == 0) return {};
  return {scratch, Shape{elements}, backend_->real()};
}

// Copies a box to the host; nothing if it is empty.
void HaloLayer::TakeOut(const Tensor& whole, const Box& box, void* scratch,
                        std::vector<std::byte>* host) {
  host->resize(BytesOf(box));
  if (host->empty()) return;
  const Tensor packed = Packed(box, scratch);
  backend_->TakeBox(whole, box, packed);
  backend_->CopyOut(packed, host->data());
}

void HaloLayer::PutIn(const std::vector<std::byte>& host, const Box& box, void* scratch,
                      const Tensor& whole) {
  if (host.empty()) return;
  const Tensor packed = Packed(box, scratch);
  backend_->CopyIn(host.data(), packed);
  backend_->PutBox(packed, box, whole);
}

void HaloLayer::ExchangeHalo(size_t axis, const Tensor& y, void* scratch) {
  if (group_->is_on_device()) return ExchangeHaloOnDevice(axis, y, scratch);
  const std::vector<Border> borders = Borders(axis);
  std::vector<Transfer> transfers;
  for (size_t i = 0; i < borders.size(); ++i) {
    TakeOut(y, borders[i].inner, scratch, &mail_[i].sent);
    mail_[i].received.resize(BytesOf(borders[i].outer));
    transfers.push_back({borders[i].member, mail_[i].sent, mail_[i].received});
  }
  group_->Exchange(transfers);
  for (size_t i = 0; i < borders.size(); ++i)
    PutIn(mail_[i].received, borders[i].outer, scratch, y);
}

void HaloLayer::ReturnHalo(size_t axis, const Tensor& dy, void* scratch) {
  if (group_->is_on_device()) return ReturnHaloOnDevice(axis, dy, scratch);
  const std::vector<Border> borders = Borders(axis);
  std::vector<Transfer> transfers;
  for (size_t i = 0; i < borders.size(); ++i) {
    TakeOut(dy, borders[i].outer, scratch, &mail_[i].sent);
    mail_[i].received.resize(BytesOf(borders[i].inner));
    transfers.push_back({borders[i].member, mail_[i].sent, mail_[i].received});
  }
  group_->Exchange(transfers);
  for (size_t i = 0; i < borders.size(); ++i) {
    TakeOut(dy, borders[i].inner, scratch, &own_);
    if (backend_->real() == DType::kFloat64)
      AddTo<double>(mail_[i].received, own_);
    else
      AddTo<float>(mail_[i].received, own_);
    PutIn(own_, borders[i].inner, scratch, dy);
  }
}

void HaloLayer::ExchangeHaloOnDevice(size_t axis, const Tensor& y, void* scratch) {
  Scratch memory(scratch);
  const std::vector<Border> borders = Borders(axis);
  std::vector<TensorTransfer> transfers;
  for (const Border& border : borders) {
    transfers.push_back({.member = border.member,
                         .sent = Packed(border.inner, memory.Take(BytesOf(border.inner))),
                         .received = Packed(border.outer, memory.Take(BytesOf(border.outer)))});
    const Tensor& sent = transfers.back().sent;
    if (sent.data != nullptr) backend_->TakeBox(y, border.inner, sent);
  }
  group_->ExchangeOnDevice(transfers);
  for (size_t i = 0; i < borders.size(); ++i) {
    const Tensor& received = transfers[i].received;
    if (received.data != nullptr) backend_->PutBox(received, borders[i].outer, y);
  }
}

void HaloLayer::ReturnHaloOnDevice(size_t axis, const Tensor& dy, void* scratch) {
  Scratch memory(scratch);
  const std::vector<Border> borders = Borders(axis);
  std::vector<TensorTransfer> transfers;
  for (const Border& border : borders) {
    transfers.push_back({.member = border.member,
                         .sent = Packed(border.outer, memory.Take(BytesOf(border.outer))),
                         .received = Packed(border.inner, memory.Take(BytesOf(border.inner)))});
    const Tensor& sent = transfers.back().sent;
    if (sent.data != nullptr) backend_->TakeBox(dy, border.outer, sent);
  }
  group_->ExchangeOnDevice(transfers);
  void* const free = memory.Take(0);
  // One after the other: the two inner planes of a thin block are the same.
  for (size_t i = 0; i < borders.size(); ++i) {
    const Tensor own = Packed(borders[i].inner, free);
    if (own.data == nullptr) continue;
    backend_->TakeBox(dy, borders[i].inner, own);
    backend_->maps()->Combine(1, transfers[i].received, 1, own);
    backend_->PutBox(own, borders[i].inner, dy);
  }
}

Tensor HaloLayer::Forward(const Tensor& x, const Pass& pass) {
  CHECK(x.shape == block_) << "x=" << x.shape.ToString() << " block=" << block_.ToString();
  backend_->PutBox(x, interior_, y_);
  for (const size_t axis : {size_t{0}, size_t{1}})
    if (group_->place().grid.IsSplit(axis)) ExchangeHalo(axis, y_, pass.scratch);
  return y_;
}

Tensor HaloLayer::Backward(const Tensor&, const Tensor& dy, const Pass& pass) {
  if (dx_.data == nullptr) return {};
  CHECK(dy.shape == extended_) << "dy=" << dy.shape.ToString();
  for (const size_t axis : {size_t{1}, size_t{0}})
    if (group_->place().grid.IsSplit(axis)) ReturnHalo(axis, dy, pass.scratch);
  backend_->TakeBox(dy, interior_, dx_);
  return dx_;
}

GatherLayer::GatherLayer(Backend* backend, SpatialGroup* group, const Shape& input)
    : backend_(backend),
      group_(group),
      block_(input),
      whole_({input[0], input[1] * group->place().grid.parts[0],
              input[2] * group->place().grid.parts[1], input[3], input[4]}) {
  host_.resize(static_cast<size_t>(whole_.elements()) * SizeOf(backend->real()));
  blocks_.resize(host_.size());
}

absl::Status GatherLayer::Plan(LayerMemory memory, bool wants_dx) {
  memory.activations->Reserve(whole_, backend_->real(), &y_);
  if (wants_dx) memory.activations->Reserve(block_, backend_->real(), &dx_);
  memory.WantScratch(y_.bytes());  // of devices: the others' blocks
  return absl::OkStatus();
}

std::span<std::byte> GatherLayer::BlockOf(int member) {
  const size_t size = blocks_.size() / static_cast<size_t>(group_->place().grid.size());
  return std::span(blocks_).subspan(static_cast<size_t>(member) * size, size);
}

Box GatherLayer::BoxOf(int member) const {
  const SpatialPlace place = PlaceOf(group_->place().grid, member);
  return {.begin = {place.at[0] * block_[1], place.at[1] * block_[2]},
          .extent = {block_[1], block_[2]}};
}

// Calls move(place in host_, place in the block, bytes) for each contiguous run of a block.
template <typename Move>
void GatherLayer::ForEachRun(int member, const Move& move) {
  const Tensor whole = {host_.data(), whole_, backend_->real()};
  const Tensor block = {BlockOf(member).data(), block_, backend_->real()};
  assay::ForEachRun(whole, BoxOf(member), block, [&move](const Tensor& part, const Tensor& run) {
    move(part.data, run.data, part.bytes());
  });
}

void GatherLayer::ForwardOnDevice(const Tensor& x, void* scratch) {
  const int self = group_->place().member();
  std::vector<TensorTransfer> transfers;
  for (int member = 0; member < group_->place().grid.size(); ++member) {
    if (member == self) continue;
    void* const place = static_cast<std::byte*>(scratch) + static_cast<size_t>(member) * x.bytes();
    transfers.push_back(
        {.member = member, .sent = x, .received = {place, block_, backend_->real()}});
  }
  group_->ExchangeOnDevice(transfers);
  backend_->PutBox(x, BoxOf(self), y_);
  for (const TensorTransfer& transfer : transfers)
    backend_->PutBox(transfer.received, BoxOf(transfer.member), y_);
}

Tensor GatherLayer::Forward(const Tensor& x, const Pass& pass) {
  CHECK(x.shape == block_) << "x=" << x.shape.ToString() << " block=" << block_.ToString();
  if (group_->is_on_device()) {
    ForwardOnDevice(x, pass.scratch);
    return y_;
  }
  const int self = group_->place().member(), size = group_->place().grid.size();
  backend_->CopyOut(x, BlockOf(self).data());
  std::vector<Transfer> transfers;
  for (int member = 0; member < size; ++member)
    if (member != self) transfers.push_back({member, BlockOf(self), BlockOf(member)});
  group_->Exchange(transfers);
  for (int member = 0; member < size; ++member)
    ForEachRun(member, [](void* whole, const void* block, size_t bytes) {
      std::memcpy(whole, block, bytes);
    });
  backend_->CopyIn(host_.data(), y_);
  return y_;
}

Tensor GatherLayer::Backward(const Tensor&, const Tensor& dy, const Pass&) {
  if (dx_.data == nullptr) return {};
  const int self = group_->place().member(), size = group_->place().grid.size();
  if (group_->is_on_device()) {
    backend_->TakeBox(dy.Reshaped(whole_), BoxOf(self), dx_);
    backend_->maps()->Combine(size, dx_, 0, dx_);
    return dx_;
  }
  backend_->CopyOut(dy.Reshaped(whole_), host_.data());
  ForEachRun(
      self, [](const void* whole, void* block, size_t bytes) { std::memcpy(block, whole, bytes); });
  if (backend_->real() == DType::kFloat64)
    MultiplyBy(static_cast<double>(size), BlockOf(self));
  else
    MultiplyBy(static_cast<float>(size), BlockOf(self));
  backend_->CopyIn(BlockOf(self).data(), dx_);
  return dx_;
}

}  // namespace assay
