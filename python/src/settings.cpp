// What holds for the whole process or thread: threads, random numbers, defaults, printing, memory.
#include "binding.h"
#include "default_device.h"
#include "kiln/core/winograd_setting.h"
#include "kiln/optim/grad_scaler.h"
#include "kiln/tensor/amp/autocast.h"
#include "memory_stats.h"

namespace kiln::python {

namespace {

thread_local Device device_of_thread;

}  // namespace

Device default_device() noexcept { return device_of_thread; }
void set_default_device(Device device) noexcept { device_of_thread = device; }

void bind_settings(nb::module_& m) {
  m.def("get_num_threads", &num_threads, "How many threads an op may use.");
  m.def("set_num_threads", &set_num_threads, "num"_a);
  m.def("winograd_enabled", &winograd_enabled,
        "Whether convolutions on the CPU may use Winograd's algorithm.");
  m.def("set_winograd_enabled", &set_winograd_enabled, "enabled"_a,
        "Off, every output of a convolution is the direct sum of its window.");
  m.def("get_default_dtype", &default_dtype, "The dtype of new floating point tensors.");
  m.def("set_default_dtype", &set_default_dtype, "d"_a);
  m.def("_default_device", &default_device);
  m.def("_set_default_device", &set_default_device, "device"_a);

  m.def("_autocast_state", [] {
    const amp::AutocastState state = amp::autocast_state();
    return nb::make_tuple(state.enabled, state.dtype, state.cache);
  });
  m.def(
      "_set_autocast_state",
      [](bool enabled, DType dtype, bool cache) {
        amp::set_autocast_state({enabled, dtype, cache});
      },
      "enabled"_a, "dtype"_a, "cache"_a);
  m.def(
      "_unscale_gradients",
      [](std::vector<Tensor> gradients, double factor) {
        return amp::detail::unscale_gradients(gradients, factor);
      },
      "gradients"_a, "factor"_a);
  m.def(
      "_next_loss_scale",
      [](double scale, int64_t tracker, bool found_inf, double growth, double backoff,
         int64_t interval) {
        amp::GradScalerState state{scale, growth, backoff, interval, tracker};
        amp::detail::update_scale(state, found_inf);
        return nb::make_tuple(state.scale, state.growth_tracker);
      },
      "scale"_a, "growth_tracker"_a, "found_inf"_a, "growth_factor"_a, "backoff_factor"_a,
      "growth_interval"_a);
  m.def("clear_autocast_cache", &amp::clear_autocast_cache,
        "Drops the cast parameters that this thread's autocast region keeps.");
  m.def("autocast_increment_nesting", &amp::enter_autocast_region,
        "One region of autocast more; how many there are.");
  m.def("autocast_decrement_nesting", &amp::leave_autocast_region,
        "One region of autocast less; how many there are.");

  m.def(
      "set_printoptions",
      [](std::optional<int> precision, std::optional<double> threshold,
         std::optional<int64_t> edgeitems, std::optional<int> linewidth,
         const std::optional<std::string>& profile, std::optional<bool> sci_mode) {
        PrintOptions how = print_options();
        if (profile) {
          if (*profile == "default") {
            how = {};
          } else if (*profile == "short") {
            how = {.precision = 2, .threshold = 1000, .edge_items = 2};
          } else if (*profile == "full") {
            how = {.threshold = std::numeric_limits<int64_t>::max()};
          } else {
            throw_error<ValueError>("set_printoptions: there is no profile '", *profile,
                                    "'; expected 'default', 'short' or 'full'");
          }
        }
        how.scientific = sci_mode;
        if (precision) how.precision = *precision;
        if (threshold) how.threshold = Scalar(*threshold).to_int();
        if (edgeitems) how.edge_items = *edgeitems;
        if (linewidth) how.line_width = *linewidth;
        set_print_options(how);
      },
      "precision"_a = nb::none(), "threshold"_a = nb::none(), "edgeitems"_a = nb::none(),
      "linewidth"_a = nb::none(), "profile"_a = nb::none(), "sci_mode"_a = nb::none(),
      "How tensors print; profile is 'default', 'short' or 'full'. sci_mode=True writes floats as "
      "1.2300e+00, False never does; None, the default, lets their range decide.");

  m.def(
      "memory_stats", [] { return dict_of(memory_stats()); }, "Counters of the memory allocator.");
  m.def("reset_memory_stats", &reset_memory_stats);
  m.def("memory_limit", &memory_limit,
        "The most bytes that tensors and the cache may take together.");
  m.def("set_memory_limit", &set_memory_limit, "bytes"_a,
        "Sets it. An allocation beyond it raises ValueError.");
  m.def("empty_cache", &empty_cache, "Returns cached memory to the system.");
}

}  // namespace kiln::python
