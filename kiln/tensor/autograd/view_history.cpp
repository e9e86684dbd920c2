// Views of tracked tensors, and what a recorded write does to their histories: see the note on
// views in tensor_impl.h.
#include "kiln/tensor/autograd/view_history.h"

#include <mutex>

#include "kiln/backend/dispatch/views.h"
#include "kiln/core/fork.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/region.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

namespace {

Tensor as_view(Handle<TensorImpl> impl, const Tensor& x, ViewKind kind) {
  const TensorImpl& of = state_of(x);
  // A leaf that is a view has a history of its own: a write through its views would end it.
  const bool inner = of.root && !(of.value.node && of.value.node->is_leaf());
  impl->root = inner ? of.root : x.impl();
  impl->root_writes = state_of(*impl->root).recorded_writes;
  impl->view_kind = inner ? of.view_kind : ViewKind::plain;
  if (impl->view_kind == ViewKind::plain) {
    impl->view_kind = autodiff::is_recording<Dispatch>() ? kind : ViewKind::unrecorded;
  }
  return Tensor(std::move(impl));
}

}  // namespace

Tensor wrap_view(const Tensor& x, Value value, ViewKind kind) {
  auto impl = make_handle<TensorImpl>(std::move(value));
  if (Dispatch::owns_memory(impl->value.inner)) return Tensor(std::move(impl));  // it was copied
  return as_view(std::move(impl), x, kind);
}

Tensor wrap_alias(const Tensor& x, Value value, ViewKind kind) {
  auto impl = make_handle<TensorImpl>(std::move(value));
  if (state_of(x).is_complex()) impl->complex_shape = std::make_unique<const Shape>(x.shape());
  return as_view(std::move(impl), x, kind);
}

Tensor own_memory(const Tensor& x, Tensor y) {
  return y.is_same(x) || y.impl()->root ? y.clone() : y;
}

Tensor one_of_many(const Tensor& x, Tensor part) {
  if (!part.is_same(x) && part.impl()->root && part.impl()->view_kind == ViewKind::plain) {
    part.impl()->view_kind = ViewKind::one_of_many;
  }
  return part;
}

namespace {

// How the memory of a view and that of its root belong together.
enum class Tie : uint8_t {
  nested,   // the view lies in the root's memory
  apart,    // the root was given other memory (interop::set_data), or an op that could not make a
            // view has copied
  unknown,  // their backend tells no layouts
};

Tie tie_of(const TensorImpl& view) {
  const Value& root = state_of(*view.root).value;
  const Layout a = layout_of(root.inner);
  const Layout b = layout_of(view.value.inner);
  if (!a || !b) return Tie::unknown;
  return a.storage == b.storage && dtype_of_value(root) == dtype_of_value(view.value) ? Tie::nested
                                                                                      : Tie::apart;
}

// What a view shares with its root must be known where a write through one changes the gradient of
// the other.
[[noreturn]] void throw_unknown_layout(const char* op, const TensorImpl& view) {
  throw_error<AutodiffError>(
      op, ": a write through a view, or into a tensor that has views, cannot be recorded on ",
      view.device(),
      ", whose backend does not tell where views lie in memory (layout and as_strided, "
      "kiln/backend/layout.h); try the op without the trailing _, or clone() the view");
}

[[noreturn]] void throw_not_writable(const char* op, ViewKind kind, bool behind) {
  const char* what =
      behind ? ": the operand is a view whose tensor was modified in place while recording, and "
             : ": a view cannot be modified in place while recording when it ";
  switch (kind) {
    case ViewKind::unrecorded:
      throw_error<AutodiffError>(op, what,
                                 "was taken without recording (under no_grad), so that it is not "
                                 "clear whether the write is meant to have a gradient; try to take "
                                 "and to write it both inside or both outside of no_grad");
    case ViewKind::one_of_many:
      throw_error<AutodiffError>(op, what,
                                 "is one of several that one op gave (split, chunk, unbind); try "
                                 "narrow, select or an index, or the op without the trailing _");
    default:
      throw_error<AutodiffError>(op, what,
                                 "was given by a custom function or passed through a module hook, "
                                 "whose gradient the write would bypass; try clone() first");
  }
}

// Keeps the gradients of a tensor that asked for them (retain_grad) when its history changes: from
// now on they are those of its new values.
void move_kept(const Value& from, const Value& to) {
  if (!from.node || from.node->is_leaf() || from.node->extras() == nullptr) [[likely]]
    return;
  from.node->lock().lock();
  std::optional<autodiff::Extras<Dispatch>::Kept> moved;
  auto& kept = from.node->extras()->kept;
  for (auto it = kept.begin(); it != kept.end() && !moved; ++it) {
    if (it->slot != from.slot) continue;
    moved = std::move(*it);
    kept.erase(it);
    break;
  }
  from.node->lock().unlock();
  if (!moved) return;
  moved->slot = to.slot;
  to.node->ensure_extras().kept.push_back(std::move(*moved));
}

bool keeps_grad(const Value& x) {
  return x.node && x.node->extras() != nullptr && !x.node->extras()->kept.empty();
}

void set_history(Value& x, Value with) {
  move_kept(x, with);
  x.node = std::move(with.node);
  x.slot = with.slot;
}

// The history of a root after `written` went to where the view lies.
Value copied_into(const Value& root, const Value& view, const Value& written) {
  const Handle<Region> region = Region::of("copy_slices", root, view);
  auto formula = [region](Pass& p) {
    Value grad = p.take();
    const bool own = !p.create_graph() && region->is_regular() && Dispatch::owns_memory(grad.inner);
    if (p.needs(1)) {
      const Tensor part = region->take(wrap(grad));
      p.give(1, value_in(own && p.needs(0) ? part.clone() : part));
    }
    if (!p.needs(0)) return;
    if (own && Dispatch::owns_memory(grad.inner)) {
      region->clear_in_place(grad);
      p.give(0, std::move(grad));
    } else {
      p.give(0, value_in(region->clear(wrap(std::move(grad)))));
    }
  };
  return recorded("copy_slices", root.inner, std::move(formula), root, written);
}

// Records that `written`, of the view's shape, is what the view's memory holds.
void record_through(TensorImpl& view, const Value& written) {
  TensorImpl& root = state_of(*view.root);
  const Tie tie = tie_of(view);
  if (tie == Tie::unknown) throw_unknown_layout("record_write", view);
  if (tie == Tie::nested) {
    set_history(root.value, copied_into(root.value, view.value, written));
    ++root.recorded_writes;
    // The others that keep gradients follow when they are next used, as the written one would; but
    // its own are those of its new values from now on, also if nobody uses it.
    if (keeps_grad(view.value)) catch_up("retain_grad", view);
  } else {
    set_history(view.value, written);
  }
}

}  // namespace

void show_as(TensorImpl& x, const TensorImpl& view) {
  if (view.value.node) set_history(x.value, view.value);
  x.value.inner = view.value.inner;
  x.complex_shape.reset(view.complex_shape ? new Shape(*view.complex_shape) : nullptr);
}

void catch_up(const char* op, TensorImpl& view) {
  const TensorImpl& root = state_of(*view.root);
  const Tie tie = tie_of(view);
  const bool recording = autodiff::is_recording<Dispatch>();
  if (tie == Tie::unknown) {
    if (recording) throw_unknown_layout(op, view);
    return;
  }
  const bool nested = tie == Tie::nested;
  if (nested && view.view_kind != ViewKind::plain) {
    if (recording) throw_not_writable(op, view.view_kind, true);
    return;
  }
  std::optional<Value> history;
  if (nested && root.value.node) {
    const Handle<Region> region = Region::of("as_strided", root.value, view.value);
    auto formula = [region](Pass& p) { p.give(0, value_in(region->spread(wrap(p.take())))); };
    history = recorded("as_strided", view.value.inner, std::move(formula), root.value);
  }
  // Of several threads that come here with one view, the first one's history is kept.
  static auto& publishing = *new ForkSafeMutex(ForkOrder::view_histories);
  const std::lock_guard lock(publishing);
  if (root.recorded_writes == view.root_writes) return;
  if (history) {
    // The old history goes after the lock: its end may run foreign code.
    move_kept(view.value, *history);
    std::swap(view.value.node, history->node);
    std::swap(view.value.slot, history->slot);
  }
  atomic_ref(view.root_writes).store(root.recorded_writes, std::memory_order_release);
}

bool is_same_view(const TensorImpl& x, const TensorImpl& y) {
  if (!x.root || x.root.get() != y.root.get() || x.view_kind != y.view_kind) return false;
  const Layout a = layout_of(x.value.inner);
  const Layout b = layout_of(y.value.inner);
  return a && b && a.storage == b.storage && a.offset == b.offset &&
         shape_of(x.value) == shape_of(y.value) && *a.strides == *b.strides &&
         x.dtype() == y.dtype();
}

namespace {

// Whether several elements are one place in memory, as expand() makes them.
bool repeats_elements(const ErasedTensor& x) {
  const Layout layout = layout_of(x);
  if (!layout) return false;
  const Shape& shape = x->shape();
  for (int i = 0; i < shape.rank(); ++i) {
    if ((*layout.strides)[i] == 0 && shape[i] > 1) return !shape.contains(0);
  }
  return false;
}

}  // namespace

void check_writable(const char* op, const Tensor& x, bool source_tracked, bool may_repeat) {
  const TensorImpl& impl = impl_of(op, x);
  if (!may_repeat && repeats_elements(impl.value.inner)) {
    throw_error<ValueError>(op,
                            ": several elements of an expanded tensor are one place in memory; "
                            "got shape ",
                            impl.shape(), "; try clone() first");
  }
  if (!autodiff::is_recording<Dispatch>()) return;
  if (impl.value.node && impl.value.node->is_leaf()) {
    throw_error<AutodiffError>(
        op,
        ": a leaf that requires a gradient cannot be modified in place while recording; "
        "try it under no_grad (NoGradGuard), or the op without the trailing _");
  }
  if (!impl.root) return;
  const Handle<autodiff::Node<Dispatch>>& history = state_of(*impl.root).value.node;
  if (!source_tracked && !impl.value.node && !history) return;
  if (tie_of(impl) == Tie::unknown) throw_unknown_layout(op, impl);
  if (impl.view_kind != ViewKind::plain) throw_not_writable(op, impl.view_kind, false);
  if (history && history->is_leaf()) {
    throw_error<AutodiffError>(
        op,
        ": a view of a leaf that requires a gradient cannot be modified in place while recording; "
        "try it under no_grad (NoGradGuard), or the op without the trailing _");
  }
}

void record_write(TensorImpl& impl, Value written) {
  if (!written.node) return;
  if (impl.root) {
    record_through(impl, written);
    return;
  }
  set_history(impl.value, std::move(written));
  ++impl.recorded_writes;
}

void assign_recorded(TensorImpl& impl, const Value& source) {
  if (!impl.root) {
    record_write(impl, AD::assigned(impl.value, source));
    return;
  }
  // The history of the view's old values ends here: nothing leads to it.
  const bool record = (source.node || impl.value.node) && autodiff::is_recording<Dispatch>();
  Dispatch::float_assign(impl.value.inner, source.inner);
  if (record) record_through(impl, AD::float_expand(source, shape_of(impl.value)));
}

}  // namespace kiln::detail
