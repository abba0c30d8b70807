// Tells the double the library's kernels. A program that is linked with this object file knows them
// from its start.
#include <algorithm>
#include <cstdint>

#include "kernels/scatter_gather_hip.hpp"
#include "tests/hip_double/hip_double.hpp"

namespace cairn::tests::hip {
namespace {

using namespace cairn::kernels;

template <class T>
bool on_device(int device, const T* first, std::size_t count) {
  return reachable(device, first, count * sizeof(T));
}

// How many regions and segments there are is not said: the first must be there.
bool sound_tables(int device, const copy_tables& tables) {
  return on_device(device, tables.tiles, tables.tiles_per_image) &&
         on_device(device, tables.regions, 1) && on_device(device, tables.segments, 1);
}

/// `count` words there, as an atomic access needs them.
template <class T>
bool whole(int where, const T* first, std::size_t count) {
  return reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0 &&
         on_device(where, first, count);
}

// Checksums are read by the host. Whoever used the board before left it clear.
template <class Batch>
bool sound_sums(int device, const Batch& batch) {
  if (batch.checksums == nullptr) return true;
  const sum_board& board = batch.board;
  return batch.images <= board_images && whole(on_host, batch.checksums, batch.images) &&
         whole(device, board.sums, batch.images) && whole(device, board.waves_done, 1) &&
         *board.waves_done == 0 &&
         std::all_of(board.sums, board.sums + batch.images,
                     [](unsigned long long sum) { return sum == 0; });
}

[[maybe_unused]] const bool registered = [] {
  register_kernel(&copy_inline_batch, [](int device, const inline_batch& batch) {
    return sound_tables(device, batch.tables) && sound_sums(device, batch);
  });
  register_kernel(&copy_staged_batch, [](int device, const staged_batch& batch) {
    return sound_tables(device, batch.tables) && sound_sums(device, batch) &&
           on_device(device, batch.words,
                     std::size_t{batch.images} * words_per_image(batch.tables.units_per_image));
  });
  return true;
}();

}  // namespace
}  // namespace cairn::tests::hip
