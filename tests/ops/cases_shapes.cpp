// Views, rearrangements, padding, joining and splitting.
#include "tests/ops/call.h"

namespace kiln::ops {

KILN_OP_CASES(views) {
  op("as_strided", "torch.as_strided(a.contiguous(), (2, 3), (1, 2), 1)",
     KILN_CALL(as_strided(x[0].contiguous(), {2, 3}, {1, 2}, 1)), {real({3, 4})})
      .dtypes(kAll)
      .not_strided("it reads memory as it lies");
  op("as_strided", "torch.as_strided(a.contiguous(), (4, 3), (1, 1))",
     KILN_CALL(as_strided(x[0].contiguous(), {4, 3}, {1, 1})), {real({3, 4})})
      .not_strided("it reads memory as it lies");
  op("Tensor.unfold", "a.unfold(1, 3, 2)", KILN_CALL(unfold(x[0], 1, 3, 2)), {real({2, 8})})
      .dtypes(kAll);
  op("Tensor.unfold", "a.unfold(0, 2, 1)", KILN_CALL(unfold(x[0], 0, 2, 1)), {real({4, 3})});
  op("diagonal", "torch.diagonal(a)", KILN_CALL(diagonal(x[0])), {real({3, 4})}).dtypes(kAll);
  op("diagonal", "torch.diagonal(a, -1, 0, 2)", KILN_CALL(diagonal(x[0], -1, 0, 2)),
     {real({4, 2, 3})});
  op("diagonal", "torch.diagonal(a, 9)", KILN_CALL(diagonal(x[0], 9)), {real({3, 4})});
  op("diag", "torch.diag(a, 1)", KILN_CALL(diag(x[0], 1)), {real({3})}).dtypes(kAll);
  op("diag", "torch.diag(a, -1)", KILN_CALL(diag(x[0], -1)), {real({3, 4})});
  op("diag_embed", "torch.diag_embed(a, 1, 0, 2)", KILN_CALL(diag_embed(x[0], 1, 0, 2)),
     {real({2, 3})})
      .dtypes(kAll);
  op("diagflat", "torch.diagflat(a, -1)", KILN_CALL(diagflat(x[0], -1)), {real({2, 2})});
}

KILN_OP_CASES(rearrangements) {
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("reshape", "torch.reshape(a, (4, -1))", KILN_CALL(x[0].reshape({4, -1})), {real({2, 6})})
      .dtypes(kAll);
  op("Tensor.view", "a.view(3, -1)", KILN_CALL(x[0].view({3, -1})), {real({2, 6})})
      .dtypes(kAll)
      .not_strided("a view of gaps is refused");
  op("Tensor.view_as", "a.view_as(b)", KILN_CALL(x[0].view(x[1].shape())),
     {real({2, 6}), constant({3, 4})})
      .not_strided("a view of gaps is refused");
  op("t", "torch.t(a)", KILN_CALL(x[0].t()), {real({3, 4})}).dtypes(kAll);
  op("Tensor.reshape_as", "a.reshape_as(b)", KILN_CALL(reshape_as(x[0], x[1])),
     {real({2, 6}), constant({3, 4})});
  op("permute", "torch.permute(a, (2, 0, 1))", KILN_CALL(x[0].permute({2, 0, 1})),
     {real({2, 3, 4})})
      .dtypes(kAll);
  op("movedim", "torch.movedim(a, (0, 1), (2, 0))", KILN_CALL(movedim(x[0], {0, 1}, {2, 0})),
     {real({2, 3, 4})});
  op("moveaxis", "torch.moveaxis(a, 0, -1)", KILN_CALL(moveaxis(x[0], {0}, {-1})),
     {real({2, 3, 4})});
  op("swapaxes", "torch.swapaxes(a, 0, 2)", KILN_CALL(swapaxes(x[0], 0, 2)), {real({2, 3, 4})});
  op("transpose", "torch.transpose(a, 0, 1)", KILN_CALL(x[0].transpose(0, 1)), {real({2, 3})});
  op("unflatten", "torch.unflatten(a, 1, (2, -1))", KILN_CALL(unflatten(x[0], 1, {2, -1})),
     {real({2, 6})});
  op("flatten", "torch.flatten(a, 1)", KILN_CALL(x[0].flatten(1)), {real({2, 3, 2})});
  op("ravel", "torch.ravel(a)", KILN_CALL(ravel(x[0])), {real({2, 3})});
  op("squeeze", "torch.squeeze(a, (0, 2))", KILN_CALL(squeeze(x[0], {0, 2})), {real({1, 3, 1, 1})});
  op("squeeze", "torch.squeeze(a)", KILN_CALL(x[0].squeeze()), {real({1, 3, 1})});
  op("unsqueeze", "torch.unsqueeze(a, 1)", KILN_CALL(x[0].unsqueeze(1)), {real({2, 3})});
  op("Tensor.expand", "a.expand(2, -1, 4)", KILN_CALL(x[0].expand({2, -1, 4})), {real({3, 1})});
  op("Tensor.expand_as", "a.expand_as(b)", KILN_CALL(expand_as(x[0], x[1])),
     {real({3, 1}), constant({3, 4})});
  op("broadcast_to", "torch.broadcast_to(a, (2, 3))", KILN_CALL(x[0].broadcast_to({2, 3})),
     {real({3})});
  op("broadcast_tensors", "torch.broadcast_tensors(a, b)",
     KILN_CALL(broadcast_tensors({x[0], x[1]})), {real({3, 1}), real({4})});
  op("atleast_1d", "torch.atleast_1d(a)", KILN_CALL(atleast_1d(x[0])), {real({})});
  op("atleast_2d", "torch.atleast_2d(a)", KILN_CALL(atleast_2d(x[0])), {real({3})});
  op("atleast_3d", "torch.atleast_3d(a)", KILN_CALL(atleast_3d(x[0])), {real({3, 2})});
  op("atleast_3d", "torch.atleast_3d(a)", KILN_CALL(atleast_3d(x[0])), {real({3})});
  op("Tensor.repeat", "a.repeat(2, 1, 3)", KILN_CALL(repeat(x[0], {2, 1, 3})), {real({3, 2})})
      .dtypes(kAll);
  op("tile", "torch.tile(a, (2,))", KILN_CALL(tile(x[0], {2})), {real({3, 2})}).big(wide());
  op("repeat_interleave", "torch.repeat_interleave(a, 2, 1)",
     KILN_CALL(repeat_interleave(x[0], 2, 1)), {real({3, 2})})
      .dtypes(kAll)
      .big(wide());
  op("repeat_interleave", "torch.repeat_interleave(a, 3)", KILN_CALL(repeat_interleave(x[0], 3)),
     {real({3, 2})});
  op("repeat_interleave", "torch.repeat_interleave(a, b, 0)",
     KILN_CALL(repeat_interleave(x[0], x[1], 0)), {real({3, 2}), indices({2, 0, 3}, {3})});
  op("repeat_interleave", "torch.repeat_interleave(a)", KILN_CALL(repeat_interleave(x[0])),
     {indices({2, 0, 3}, {3})})
      .dtypes({f32});
  op("roll", "torch.roll(a, 2)", KILN_CALL(roll(x[0], {2})), {real({3, 4})})
      .dtypes(kAll)
      .big(wide());
  op("roll", "torch.roll(a, (1, -2), (0, 1))", KILN_CALL(roll(x[0], {1, -2}, {0, 1})),
     {real({3, 5})})
      .big(wide());
  op("flip", "torch.flip(a, (0, 1))", KILN_CALL(x[0].flip({0, 1})), {real({3, 5})})
      .dtypes(kAll)
      .big(wide());
  op("fliplr", "torch.fliplr(a)", KILN_CALL(fliplr(x[0])), {real({3, 5})});
  op("flipud", "torch.flipud(a)", KILN_CALL(flipud(x[0])), {real({3, 5})});
  for (const int64_t k : {1, 2, 3, -1, 4}) {
    op("rot90", "torch.rot90(a, " + std::to_string(k) + ", (1, 2))",
       [k](const Tensors& x) {
         return rot90(x[0], k, {1, 2});
       },
       {real({2, 3, 4})});
  }
}

KILN_OP_CASES(padding) {
  const auto wide = [] { return std::vector<Input>{real({1024, 1024})}; };
  op("nn.functional.pad", "F.pad(a, (1, 2))", KILN_CALL(functional::pad(x[0], {1, 2})),
     {real({3, 4})})
      .dtypes(kReals)
      .big(wide());
  op("nn.functional.pad", "F.pad(a, (1, 0, 2, 1), value=1.5)",
     KILN_CALL(functional::pad(x[0], {1, 0, 2, 1}, "constant", 1.5)), {real({2, 3, 4})});
  op("nn.functional.pad", "F.pad(a, (-1, 2, 1, -1))",
     KILN_CALL(functional::pad(x[0], {-1, 2, 1, -1})), {real({3, 4})});
  for (const std::string mode : {"reflect", "replicate", "circular"}) {
    op("nn.functional.pad", "F.pad(a, (2, 1), '" + mode + "')",
       [mode](const Tensors& x) {
         return functional::pad(x[0], {2, 1}, mode);
       },
       {real({2, 3, 4})})
        .big({real({4, 512, 512})});
    op("nn.functional.pad", "F.pad(a, (2, 1, 0, 2), '" + mode + "')",
       [mode](const Tensors& x) {
         return functional::pad(x[0], {2, 1, 0, 2}, mode);
       },
       {real({1, 2, 3, 4})})
        .dtypes(kDoubles);
    op("nn.functional.pad", "F.pad(a, (1, 1, 0, 1, 1, 0), '" + mode + "')",
       [mode](const Tensors& x) {
         return functional::pad(x[0], {1, 1, 0, 1, 1, 0}, mode);
       },
       {real({1, 1, 2, 3, 2})})
        .dtypes(kDoubles);
  }
}

KILN_OP_CASES(joining) {
  op("cat", "torch.cat((a, b), 1)", KILN_CALL(cat({x[0], x[1]}, 1)), {real({2, 3}), real({2, 1})})
      .dtypes(kAll)
      .big({real({1024, 512}), real({1024, 512})});
  op("stack", "torch.stack((a, b), 1)", KILN_CALL(stack({x[0], x[1]}, 1)),
     {real({2, 3}), real({2, 3})});
  op("hstack", "torch.hstack((a, b))", KILN_CALL(hstack({x[0], x[1]})),
     {real({2, 3}), real({2, 1})});
  op("hstack", "torch.hstack((a, b))", KILN_CALL(hstack({x[0], x[1]})), {real({}), real({3})});
  op("vstack", "torch.vstack((a, b))", KILN_CALL(vstack({x[0], x[1]})), {real({3}), real({2, 3})});
  op("row_stack", "torch.row_stack((a, b))", KILN_CALL(row_stack({x[0], x[1]})),
     {real({3}), real({3})});
  op("dstack", "torch.dstack((a, b))", KILN_CALL(dstack({x[0], x[1]})),
     {real({2, 3}), real({2, 3})});
  op("column_stack", "torch.column_stack((a, b))", KILN_CALL(column_stack({x[0], x[1]})),
     {real({3}), real({3, 2})});
  op("block_diag", "torch.block_diag(a, b, c)", KILN_CALL(block_diag({x[0], x[1], x[2]})),
     {real({2, 3}), real({2}), real({})})
      .big({real({512, 512}), real({512}), real({512, 512})});
  op("split", "torch.split(a, (1, 3, 1), 1)", KILN_CALL(split(x[0], {1, 3, 1}, 1)), {real({2, 5})});
  op("split", "torch.split(a, 2, 1)", KILN_CALL(x[0].split(2, 1)), {real({2, 5})}).dtypes(kAll);
  op("chunk", "torch.chunk(a, 3, 1)", KILN_CALL(x[0].chunk(3, 1)), {real({2, 5})});
  op("tensor_split", "torch.tensor_split(a, 3, 1)", KILN_CALL(tensor_split(x[0], 3, 1)),
     {real({2, 5})});
  op("tensor_split", "torch.tensor_split(a, (1, 4))", KILN_CALL(tensor_split(x[0], {1, 4})),
     {real({5, 2})});
  op("hsplit", "torch.hsplit(a, 2)", KILN_CALL(hsplit(x[0], 2)), {real({2, 4})});
  op("vsplit", "torch.vsplit(a, (1, 2))", KILN_CALL(vsplit(x[0], Shape{1, 2})), {real({3, 2})});
  op("dsplit", "torch.dsplit(a, 2)", KILN_CALL(dsplit(x[0], 2)), {real({2, 1, 4})});
  op("unbind", "torch.unbind(a, 1)", KILN_CALL(x[0].unbind(1)), {real({2, 3})}).dtypes(kAll);
  op("narrow", "torch.narrow(a, 1, 1, 2)", KILN_CALL(x[0].narrow(1, 1, 2)), {real({2, 4})});
  op("select", "torch.select(a, 1, -1)", KILN_CALL(x[0].select(1, -1)), {real({2, 4})});
}

namespace {

// A copy of x after f(copy), which makes it a view of itself.
template <class F>
Tensor changed(const Tensor& x, F f) {
  Tensor y = x.clone();
  f(y);
  return y;
}

}  // namespace

KILN_OP_CASES(views_in_place) {
  op("Tensor.transpose_", "a.clone().transpose_(0, 2)",
     KILN_CALL(changed(x[0], [](Tensor& y) { transpose_(y, 0, 2); })), {real({2, 3, 4})})
      .dtypes(kAll);
  op("Tensor.transpose_", "a.clone().transpose_(0, -1)",
     KILN_CALL(changed(x[0], [](Tensor& y) { transpose_(y, 0, -1); })), {complex_({2, 3, 4})})
      .dtypes(kComplex);
  op("Tensor.swapaxes_", "a.clone().swapaxes_(0, 1)",
     KILN_CALL(changed(x[0], [](Tensor& y) { swapaxes_(y, 0, 1); })), {real({2, 3})});
  op("Tensor.swapdims_", "a.clone().swapdims_(0, 1)",
     KILN_CALL(changed(x[0], [](Tensor& y) { swapdims_(y, 0, 1); })), {real({2, 3})});
  op("Tensor.t_", "a.clone().t_()", KILN_CALL(changed(x[0], [](Tensor& y) { t_(y); })),
     {real({2, 3})});
  op("Tensor.squeeze_", "a.clone().squeeze_()",
     KILN_CALL(changed(x[0], [](Tensor& y) { squeeze_(y); })), {real({1, 3, 1})});
  op("Tensor.squeeze_", "a.clone().squeeze_(0)",
     KILN_CALL(changed(x[0], [](Tensor& y) { squeeze_(y, {0}); })), {real({1, 3, 1})});
  op("Tensor.unsqueeze_", "a.clone().unsqueeze_(1)",
     KILN_CALL(changed(x[0], [](Tensor& y) { unsqueeze_(y, 1); })), {real({2, 3})});
  op("Tensor.unsqueeze_", "a.clone().unsqueeze_(-1)",
     KILN_CALL(changed(x[0], [](Tensor& y) { unsqueeze_(y, -1); })), {complex_({2, 3})})
      .dtypes(kComplex);
}

}  // namespace kiln::ops
