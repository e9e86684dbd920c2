// Bessel functions and Airy's Ai. Those of floats are computed in double precision; the K and Ai
// are precise enough for doubles too. Polynomials are Chebyshev interpolations.
#include <cmath>
#include <numbers>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/special_kernels.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/bessel_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/wide_loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

using wide::polynomial;

// Where every lane is on one side of a function's split, the other side is not computed; which
// lanes lie together never changes a value.

// ---- Modified, of the first kind

// I0(x) and I1(x) / x in x^2 below 6, sqrt(x) e^-x I(x) in 1 / x beyond: errors 1e-9.
constexpr double kISmall[2][10] = {
    {0.999999999255698455, 0.250000004119605072, 0.0156249962408497054, 0.000434029106795073675,
     6.78144580814042325e-6, 6.78413063232312601e-8, 4.69426465155165075e-10,
     2.46115214642569443e-12, 8.05414491353445203e-15, 4.52289144991127962e-17},
    {0.499999999967223703, 0.062500000181465078, 0.00260416650102053557, 0.000054253530810970009,
     6.78157895093895707e-7, 5.65248334628806103e-9, 3.35719703385526556e-11,
     1.52757687568140512e-13, 4.62344237516450324e-16, 2.17384724071980524e-18}};
constexpr double kILarge[2][10] = {
    {0.398942280314656719, 0.0498678658224095868, 0.0280384527171273868, 0.0298522229715049743,
     0.0322771498751721077, 0.096696065058633163, 3.57042170799425173, -49.5367170619212175,
     300.223650207904741, -610.96433597265479},
    {0.398942280481800191, -0.14960342802988422, -0.0467405655931105877, -0.0413997567676894409,
     -0.0508620758495882863, 0.0174791131821377156, -5.42878829089048056, 63.6274792153455155,
     -359.302764238281637, 706.55713049718296}};

template <int kOrder, bool kScaled>
struct BesselIOp {
  explicit BesselIOp(const void*) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto split = hn::Set(d, 6.0);
    // Without the factor e^-x all beyond the bound overflows in float.
    const auto size = kScaled ? hn::Abs(x) : hn::Min(hn::Abs(x), hn::Set(d, 300.0));
    const auto is_small = hn::Le(size, split);
    auto y = hn::Zero(d);
    if (!hn::AllFalse(d, is_small)) {
      const auto bounded = hn::Min(size, split);
      y = polynomial(d, hn::Mul(bounded, bounded), kISmall[kOrder]);
      if (kOrder == 1) y = hn::Mul(y, bounded);
      if (kScaled) y = hn::Mul(y, wide::exp_bounded(d, hn::Neg(bounded)));
    }
    if (!hn::AllTrue(d, is_small)) {
      const auto r = hn::Div(hn::Set(d, 1.0), hn::Max(size, split));
      auto large = hn::Mul(polynomial(d, r, kILarge[kOrder]), hn::Sqrt(r));
      if (!kScaled) large = hn::Mul(large, wide::exp_bounded(d, size));
      y = hn::IfThenElse(is_small, y, large);
    }
    // As PyTorch has it.
    if (!kScaled) y = hn::IfThenElse(hn::IsInf(x), wide::nan(d), y);
    return kOrder == 1 ? hn::CopySign(y, x) : y;
  }
};

// ---- Of the first and second kind

// J0(x), J1(x) / x, Y0(x) - 2 / pi log(x) J0(x) and (Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x in
// x^2, for x up to 6: errors 1e-14.
constexpr double kJ[2][13] = {
    {0.999999999999998569, -0.24999999999998654, 0.0156249999999790161, -0.00043402777776492074,
     6.78168402368334554e-6, -6.78168395014074754e-8, 4.70950185147430775e-10,
     -2.40279982389571424e-12, 9.38553422032124993e-15, -2.89523412355495316e-17,
     7.19855080541324344e-20, -1.42166685257154408e-22, 1.83370563171623315e-25},
    {0.499999999999999948, -0.0624999999999995091, 0.00260416666666590153,
     -0.0000542534722217535001, 6.78168402628542009e-7, -5.65140332819158366e-9,
     3.36393022488865042e-11, -1.5017519055085973e-13, 5.2142686233791204e-16,
     -1.4478447550951469e-18, 3.27606316752317383e-21, -5.96412169655333848e-24,
     7.2333597243812677e-27}};
constexpr double kY0[] = {
    -0.0738042951086842433,   0.177606016869039091,     -0.0160739680258946917,
    0.000538602666834857169,  -9.49500519668694922e-6,  1.03584758717840799e-7,
    -7.69307792947739054e-10, 4.14354962739516278e-12,  -1.69318126152246446e-14,
    5.42757837844401868e-17,  -1.39474923534361915e-19, 2.83122753730594485e-22,
    -3.7260779596513607e-25};
constexpr double kY1[] = {
    -0.196057090646230428,    0.0543486881604419285,    -0.0029553053359891359,
    0.0000716426874525593286, -9.92674049254945154e-7,  8.93187760634639925e-9,
    -5.64800424008568647e-11, 2.6493464414346704e-13,   -9.58547492901098133e-16,
    2.74385728921662376e-18,  -6.13907603877799632e-21, 8.8243579239589514e-24};
// Beyond, sqrt(pi x / 2) (J + i Y) = e^(i (x - (2 order + 1) pi / 4)) (P + i Q / x), in 1 / x^2:
// errors 1e-13.
constexpr double kP[2][10] = {
    {0.999999999999955875, -0.0703124996652624239, 0.11215167401766559, -0.572286723093572273,
     6.0170631025167773, -100.808897959459381, 2033.85779762054518, -36766.4749844152251,
     455338.631957713078, -2690189.23206671681},
    {1.00000000000004748, 0.117187499639882175, -0.144195098951038566, 0.676361817587483127,
     -6.82271563472051709, 111.71899421249246, -2226.86227286018754, 40012.3045214862588,
     -493996.899555469707, 2913549.26803857055}};
constexpr double kQ[2][11] = {
    {-0.12499999999993862, 0.0732421869344749639, -0.227107126835277601, 1.72718785247564626,
     -24.2040285371039741, 515.825306283761436, -13389.2802612234306, 331764.202586979535,
     -6373104.38460060867, 78220973.271614785, -444855071.893577515},
    {0.374999999999934423, -0.102539061895955253, 0.277575512363660908, -1.9929557557686578,
     27.0605594884837929, -566.000437517745357, 14537.316453584515, -358210.884747051029,
     6860897.32290614077, -84068665.8218278883, 477632117.8277303}};

template <int kOrder, bool kSecond>
struct BesselOp {
  explicit BesselOp(const void*) {}

  template <class D>
  static HWY_INLINE V<D> near_zero(D d, V<D> x) {
    const auto z = hn::Mul(x, x);
    auto j = polynomial(d, z, kJ[kOrder]);
    if (kOrder == 1) j = hn::Mul(j, x);
    if (!kSecond) return j;
    const auto factor = hn::Set(d, 2.0 * std::numbers::inv_pi);
    // Smaller than any float, and a normal number.
    auto part = hn::Mul(wide::log_normal(d, hn::Max(x, hn::Set(d, 1e-300))), j);
    if (kOrder == 0) return hn::MulAdd(factor, part, polynomial(d, z, kY0));
    part = hn::Sub(part, hn::Div(hn::Set(d, 1.0), x));
    return hn::MulAdd(factor, part, hn::Mul(x, polynomial(d, z, kY1)));
  }

  template <class D>
  static HWY_INLINE V<D> far_from_zero(D d, V<D> x) {
    const auto r = hn::Div(hn::Set(d, 1.0), x);
    const auto w = hn::Mul(r, r);
    const auto p = polynomial(d, w, kP[kOrder]);
    const auto q = hn::Mul(polynomial(d, w, kQ[kOrder]), r);
    // sqrt(2) times sine and cosine of x - pi / 4, by the addition theorem, which is exact for
    // large x too. A further half turn of order 1 makes them -cosine and sine.
    V<D> sine, cosine;
    wide::sincos(d, x, &sine, &cosine);
    const auto sum = hn::Add(sine, cosine);
    const auto difference = hn::Sub(sine, cosine);
    const auto c = kOrder == 0 ? sum : difference;
    const auto s = kOrder == 0 ? difference : hn::Neg(sum);
    const auto y = kSecond ? hn::MulAdd(p, s, hn::Mul(q, c)) : hn::NegMulAdd(q, s, hn::Mul(p, c));
    return hn::Mul(y, hn::Sqrt(hn::Mul(r, hn::Set(d, std::numbers::inv_pi))));
  }

  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto split = hn::Set(d, 6.0);
    const auto size = kSecond ? x : hn::Abs(x);
    const auto is_small = hn::Le(size, split);
    auto y = hn::Zero(d);
    if (!hn::AllFalse(d, is_small)) y = near_zero(d, hn::Min(size, split));
    if (!hn::AllTrue(d, is_small)) {
      const auto bounded = hn::IfThenElse(hn::IsInf(size), split, hn::Max(size, split));
      const auto far = far_from_zero(d, bounded);
      y = hn::IfThenElse(is_small, y, hn::IfThenElseZero(hn::Lt(size, hn::Inf(d)), far));
    }
    if (kOrder == 1 && !kSecond) y = hn::Xor(y, hn::And(x, hn::Set(d, -0.0)));
    if (kSecond) {
      const auto zero = hn::Zero(d);
      y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(hn::Inf(d)), y);
      y = hn::IfThenElse(hn::Lt(x, zero), wide::nan(d), y);
    }
    return y;
  }
};

// ---- Modified, of the second kind

// In x^2 for x up to 5/4: I0(x) and I1(x) / x, K0(x) + log(x / 2) I0(x), (K1(x) - 1 / x - log(x /
// 2) I1(x)) / x. Beyond, sqrt(x) e^x K(x) in 5/2 / x - 1. Errors 1e-17.
constexpr double kI0[] = {1.0,
                          0.249999999999999999,
                          0.0156250000000000221,
                          0.00043402777777763259,
                          6.78168402825541904e-6,
                          6.78168393952771167e-8,
                          4.70951237171368389e-10,
                          2.40220254338018316e-12,
                          9.5917689634081568e-15};
constexpr double kI1[] = {0.499999999999999999,     0.0625000000000000472,  0.00260416666666603305,
                          0.0000542534722254647617, 6.78168394630728886e-7, 5.6514144684160688e-9,
                          3.36309155114935286e-11,  1.53468528388730044e-13};
constexpr double kK0[] = {
    -0.577215664901532861,   0.105696083774616782,     0.0144185052359135989,
    0.000545189960256530661, 0.0000102140141370341979, 1.15703507426506662e-7,
    8.81990463898207855e-10, 4.84183540443124568e-12,  2.05556179811641082e-14};
constexpr double kK1[] = {0.0386078324507664316,    -0.0420490209436542999,
                          -0.00283711198376197654,  -0.0000749304290670121764,
                          -1.08921823596677344e-6,  -1.01129338198795715e-8,
                          -6.53835335466783537e-11, -3.19321692706864522e-13};
constexpr double kKLarge[2][29] = {
    {1.20095192761734984,      -0.0446039441285198465,    0.00599481349765012622,
     -0.00125796144479003591,  0.000337095276496442642,   -0.000105946332472938761,
     0.0000373265198038522878, -0.0000143435644202352266, 5.90442520230635307e-6,
     -2.57074942702317541e-6,  1.17299924500690472e-6,    -5.59071288014456801e-7,
     2.76410883806372045e-7,   -1.31628650986471926e-7,   6.32917042772244282e-8,
     -6.08389890504467689e-8,  4.62032717139713696e-8,    3.54699311224521639e-8,
     -4.28645796198412405e-8,  -7.37731615589095747e-8,   7.0976362745874487e-8,
     7.01878486803207169e-8,   -6.55219001870847016e-8,   -4.87291601625874292e-8,
     4.27613926223142472e-8,   1.93972618083326618e-8,    -1.62985098064463152e-8,
     -3.79656615355822546e-9,  3.01872271649029509e-9},
    {1.42330073548941177,       0.155778348064550797,     -0.0114864424173977171,
     0.00200550473878269043,    -0.000489819474058866983, 0.000145434215374392138,
     -0.0000492847095292986568, 0.0000184069267528067962, -7.41296651145137478e-6,
     3.17180007410322182e-6,    -1.42677762064242836e-6,  6.71744481412466238e-7,
     -3.28616536371271106e-7,   1.55914714600021593e-7,   -7.48496612824801542e-8,
     6.90488526252257101e-8,    -5.16147793320926436e-8,  -3.78446457503842808e-8,
     4.61314474778619094e-8,    8.04301032938629884e-8,   -7.71503100059092152e-8,
     -7.63031455549071739e-8,   7.11093140999671293e-8,   5.30493251132950618e-8,
     -4.64547665989241521e-8,   -2.11170360734382161e-8,  1.77085701172024152e-8,
     4.13959568369097416e-9,    -3.28429149099657356e-9}};

template <int kOrder, bool kScaled>
struct BesselKOp {
  explicit BesselKOp(const void*) {}

  template <class D>
  static HWY_INLINE V<D> near_zero(D d, V<D> x) {
    const auto z = hn::Mul(x, x);
    const auto log = hn::Log(d, hn::Mul(x, hn::Set(d, 0.5)));
    auto y = hn::Zero(d);
    if constexpr (kOrder == 0) {
      y = hn::NegMulAdd(log, polynomial(d, z, kI0), polynomial(d, z, kK0));
    } else {
      const auto rest = hn::MulAdd(log, polynomial(d, z, kI1), polynomial(d, z, kK1));
      y = hn::MulAdd(x, rest, hn::Div(hn::Set(d, 1.0), x));
    }
    return kScaled ? hn::Mul(y, hn::Exp(d, x)) : y;
  }

  template <class D>
  static HWY_INLINE V<D> far_from_zero(D d, V<D> x) {
    const auto r = hn::Div(hn::Set(d, 1.0), x);
    const auto place = hn::MulSub(r, hn::Set(d, 2.5), hn::Set(d, 1.0));
    const auto y = hn::Mul(polynomial(d, place, kKLarge[kOrder]), hn::Sqrt(r));
    if (kScaled) return y;
    return hn::Mul(y, hn::Exp(d, hn::Max(hn::Neg(x), hn::Set(d, -1000.0))));
  }

  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto split = hn::Set(d, 1.25);
    const auto is_small = hn::Le(x, split);
    auto y = hn::Zero(d);
    if (!hn::AllFalse(d, is_small)) y = near_zero(d, hn::IfThenElse(is_small, x, split));
    if (!hn::AllTrue(d, is_small)) {
      // NaN is not small, and stays.
      y = hn::IfThenElse(is_small, y, far_from_zero(d, hn::IfThenElse(is_small, split, x)));
    }
    const auto zero = hn::Zero(d);
    const auto positive = hn::Not(hn::Le(x, zero));
    if (HWY_LIKELY(hn::AllTrue(d, positive))) return y;
    return hn::IfThenElse(positive, y, hn::IfThenElse(hn::Eq(x, zero), hn::Inf(d), wide::nan(d)));
  }
};

// ---- Airy

// Ai(x) for x from -4 to -1 in (x + 5/2) / 3/2, and from there to 2 in (x - 1/2) / 3/2.
constexpr double kAiryLow[] = {
    -0.11232506769296609,     1.01827910139719147,      0.315914252886467377,
    -1.01781950813715412,     0.138306191227416676,     0.339572266838002511,
    -0.140437105520349549,    -0.0343645382259329248,   0.0345716985537675779,
    -0.0038982597853214389,   -0.00344940133097370209,  0.00126006545159920346,
    0.0000473200753687186556, -0.000120061659222831348, 0.0000219041996222111042,
    3.97666817366853237e-6,   -2.20191078104598313e-6,  1.89299714149786193e-7,
    8.45081199910994857e-8,   -2.46725648598164458e-8,  3.16607909660468327e-10,
    9.46335994149549039e-10,  -1.40768773194016855e-10};
constexpr double kAiryHigh[] = {
    0.231693606480833488,     -0.337365798997025851,    0.130327653645469216,
    0.0670715663335272705,    -0.0826659134386659365,   0.0257655671589182162,
    0.00444557945880821194,   -0.00595264749513949462,  0.00164214403476131958,
    0.000115376419368343414,  -0.000202697471811557866, 0.000051563952474293368,
    1.22240433668219995e-6,   -4.01342848254639806e-6,  9.63803670981886964e-7,
    -1.85466606688559336e-9,  -5.19785223616123162e-8,  1.19547078148736686e-8,
    -1.68702612351386767e-10, -4.78220850155891487e-10, 8.76358189732991954e-11};
// With z = 2/3 |x|^(3/2): x^(1/4) e^z Ai(x) for x > 2 in 2 u - 1 with u = z(2) / z, and for x < -4
// |x|^(1/4) Ai(x) = cos(z - pi / 4) P + sin(z - pi / 4) Q / z, both in 2 v - 1 with v = (z(-4) /
// z)^2. Errors 5e-17.
constexpr double kAiryPositive[] = {
    0.277490802461654577,      -0.00412238059584957666,  0.000398656774891842959,
    -0.0000642759227689886891, 0.0000136712560661973813, -3.48510946086574988e-6,
    1.01210728389757007e-6,    -3.24696161242935112e-7,  1.12769453801958289e-7,
    -4.17994685953167161e-8,   1.6303381691676537e-8,    -6.65699340390276147e-9,
    3.00239033063976739e-9,    -1.3868474454024881e-9,   3.34833892867963668e-10,
    -7.94657142953244874e-11,  3.94991136929674501e-10,  -2.57595721589343257e-10,
    -1.35357962553006313e-10,  9.79028181462175651e-11,  6.01443069133566357e-11,
    -3.74356769778875299e-11};
constexpr double kAiryP[] = {
    0.563830601553091702,     -0.000350358426248833744, 8.04461436294510436e-6,
    -5.10847135205830015e-7,  5.66566892602458018e-8,   -8.98479480824762917e-9,
    1.8290785463375904e-9,    -4.47861308039173626e-10, 1.25568903269590928e-10,
    -3.92922164225701888e-11, 1.52661443253582665e-11,  -6.20746365656413353e-12,
    5.24985249445687807e-13,  1.24706379430951802e-13,  1.13848936982473922e-12,
    -6.20165795037491234e-13};
constexpr double kAiryQ[] = {
    0.0388210808092415476,    -0.000342537372454574964, 0.000014675206953768415,
    -1.31157195626893808e-6,  1.82218545257800692e-7,   -3.40213202292870166e-8,
    7.85213254093776725e-9,   -2.12779617240198386e-9,  6.53747321498487272e-10,
    -2.16006214309541289e-10, 7.70624559435663343e-11,  -4.09981771552718058e-11,
    2.01671685529606039e-11,  2.47286683985397439e-12,  -3.04793006847342096e-12,
    -4.99439893372823142e-12, 2.96106771214954364e-12};

struct AiryOp {
  explicit AiryOp(const void*) {}

  // z = high + low, more exact than one number: its rounding error would be the result's, times z.
  // And the fourth root of |x|.
  template <class D>
  struct Phase {
    V<D> high, low, fourth_root;
  };
  // The upper half of x's bits; the product of two such is exact.
  template <class D>
  static HWY_INLINE V<D> upper_half(D d, V<D> x) {
    const hn::RebindToUnsigned<D> du;
    return hn::And(x, hn::BitCast(d, hn::Set(du, 0xFFFFFFFFF8000000)));
  }
  template <class D>
  static HWY_INLINE Phase<D> phase(D d, V<D> size) {
    const auto root = hn::Sqrt(size);
    const auto root_high = upper_half(d, root);
    const auto root_low =
        hn::Div(hn::NegMulAdd(root_high, root_high, size), hn::Add(root, root_high));
    const auto size_high = upper_half(d, size);
    // |x|^(3/2)
    const auto power = hn::Mul(size_high, root_high);
    const auto power_low = hn::MulAdd(hn::Sub(size, size_high), root_high, hn::Mul(size, root_low));
    const auto third = hn::Set(d, 1.0 / 3.0);
    const auto twice = hn::Add(power, power);
    const auto part = hn::Mul(twice, third);
    const auto rest = hn::Sub(hn::Sub(twice, hn::Add(part, part)), part);
    const auto more = hn::Mul(hn::Add(rest, hn::Add(power_low, power_low)), third);
    const auto high = hn::Add(part, more);
    return {high, hn::Sub(more, hn::Sub(high, part)), hn::Sqrt(root)};
  }

  template <class D>
  static HWY_INLINE V<D> above(D d, V<D> x) {
    const auto one = hn::Set(d, 1.0);
    // Beyond the bound, which keeps the phase finite, Ai is less than any double.
    const auto z = phase(d, hn::Min(x, hn::Set(d, 1e4)));
    const auto u = hn::Div(hn::Set(d, 2.0 * 1.88561808316412673), z.high);  // 2/3 2^(3/2)
    const auto y = polynomial(d, hn::Sub(u, one), kAiryPositive);
    const auto e = hn::Exp(d, hn::Max(hn::Neg(z.high), hn::Set(d, -1000.0)));
    return hn::Div(hn::Mul(y, hn::NegMulAdd(e, z.low, e)), z.fourth_root);
  }

  template <class D>
  static HWY_INLINE V<D> below(D d, V<D> size) {
    const auto one = hn::Set(d, 1.0);
    // Beyond the bound neither the phase nor the amplitude means anything.
    const auto bound = hn::Set(d, 1e100);
    const auto z = phase(d, hn::Min(size, bound));
    const auto r = hn::Div(one, z.high);
    const auto w = hn::Mul(r, hn::Set(d, 16.0 / 3.0));
    const auto place = hn::MulSub(hn::Add(w, w), w, one);
    const auto p = polynomial(d, place, kAiryP);
    const auto q = hn::Mul(polynomial(d, place, kAiryQ), r);
    const auto sine_high = wide::full_sin(d, z.high);
    const auto cosine_high = wide::full_cos(d, z.high);
    // Where z is so large that `low` is not small, the rounding of |x| to a double was larger.
    const auto low = hn::IfThenElseZero(hn::Lt(hn::Abs(z.low), hn::Set(d, 1e-6)), z.low);
    const auto sine = hn::MulAdd(low, cosine_high, sine_high);
    const auto cosine = hn::NegMulAdd(low, sine_high, cosine_high);
    const auto c = hn::Add(cosine, sine);
    const auto s = hn::Sub(sine, cosine);
    const auto y = hn::Mul(hn::MulAdd(c, p, hn::Mul(s, q)), hn::Set(d, 0.5 * std::numbers::sqrt2));
    return hn::IfThenElseZero(hn::Lt(size, bound), hn::Div(y, z.fourth_root));
  }

  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto high = hn::Set(d, 2.0);
    const auto low = hn::Set(d, -4.0);
    const auto is_above = hn::Gt(x, high);
    const auto is_below = hn::Lt(x, low);
    const auto outside = hn::Or(is_above, is_below);
    auto y = hn::Zero(d);
    if (!hn::AllTrue(d, outside)) {
      const auto place = hn::Mul(x, hn::Set(d, 2.0 / 3.0));
      const auto upper = polynomial(d, hn::Sub(place, hn::Set(d, 1.0 / 3.0)), kAiryHigh);
      const auto lower = polynomial(d, hn::Add(place, hn::Set(d, 5.0 / 3.0)), kAiryLow);
      y = hn::IfThenElse(hn::Lt(x, hn::Set(d, -1.0)), lower, upper);
    }
    if (!hn::AllFalse(d, is_above)) {
      y = hn::IfThenElse(is_above, above(d, hn::IfThenElse(is_above, x, high)), y);
    }
    if (!hn::AllFalse(d, is_below)) {
      const auto size = hn::Abs(hn::IfThenElse(is_below, x, low));
      y = hn::IfThenElse(is_below, below(d, size), y);
    }
    return y;
  }
};

const SpecialKernels* bessel_table() {
  static constexpr SpecialKernels table = [] {
    SpecialKernels t{};
    using U = UnaryFunction::Type;
    const auto unary = [&](U type, Kernel f, Kernel g = nullptr) {
      t.unary[static_cast<int>(type)][0] = f;
      t.unary[static_cast<int>(type)][1] = g;
    };
    unary(U::bessel_i0, wide::unary<BesselIOp<0, false>>);
    unary(U::bessel_i0e, wide::unary<BesselIOp<0, true>>);
    unary(U::bessel_i1, wide::unary<BesselIOp<1, false>>);
    unary(U::bessel_i1e, wide::unary<BesselIOp<1, true>>);
    unary(U::bessel_j0, wide::unary<BesselOp<0, false>>);
    unary(U::bessel_j1, wide::unary<BesselOp<1, false>>);
    unary(U::bessel_y0, wide::unary<BesselOp<0, true>>);
    unary(U::bessel_y1, wide::unary<BesselOp<1, true>>);
#define KILN_K(order, scaled) \
  wide::unary<BesselKOp<order, scaled>>, loops::unary<BesselKOp<order, scaled>, double, false>
    unary(U::bessel_k0, KILN_K(0, false));
    unary(U::bessel_k1, KILN_K(1, false));
    unary(U::bessel_k0e, KILN_K(0, true));
    unary(U::bessel_k1e, KILN_K(1, true));
#undef KILN_K
    unary(U::airy_ai, wide::unary<AiryOp>, loops::unary<AiryOp, double, false>);
    return t;
  }();
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(SpecialKernels, bessel_kernels, bessel_table)
}  // namespace kiln::cpu
#endif
