/* The functions of another C library, which are off by up to OFF_BY units of the last digit more
   than the nearest number is: the sign follows from the arguments. What is exact stays exact. */

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double off_by;

__attribute__((constructor)) static void read_off_by(void) { off_by = atof(getenv("OFF_BY")); }

static double sign(double x, double y) {
    uint64_t bits, more;
    memcpy(&bits, &x, 8);
    memcpy(&more, &y, 8);
    bits = (bits ^ (more * 0xD6E8FEB86659FD93u)) * 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9u;
    return (bits >> 32) & 1 ? 1 : -1;
}

static double off(long double exact, double sign) {
    double near = (double)exact;
    if (!isfinite(near) || near == 0 || near == exact) return near;
    int before = errno;
    long double digit = fabs(near) - nextafter(fabs(near), 0);
    errno = before;
    return (double)(exact + sign * off_by * digit);
}

static float offf(long double exact, double sign) {
    float near = (float)exact;
    if (!isfinite(near) || near == 0 || near == exact) return near;
    int before = errno;
    long double digit = fabsf(near) - nextafterf(fabsf(near), 0);
    errno = before;
    return (float)(exact + sign * off_by * digit);
}

#define OF_ONE(name) \
    double name(double x) { return off(name##l(x), sign(x, 0)); } \
    float name##f(float x) { return offf(name##l(x), sign(x, 0)); }
#define OF_TWO(name) \
    double name(double x, double y) { return off(name##l(x, y), sign(x, y)); } \
    float name##f(float x, float y) { return offf(name##l(x, y), sign(x, y)); }

OF_ONE(exp) OF_ONE(exp2) OF_ONE(expm1) OF_ONE(log) OF_ONE(log2) OF_ONE(log10) OF_ONE(log1p)
OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos) OF_ONE(atan) OF_ONE(cbrt)
OF_ONE(sinh) OF_ONE(cosh) OF_ONE(tanh) OF_ONE(erf) OF_ONE(erfc) OF_ONE(tgamma) OF_ONE(lgamma)
OF_TWO(pow) OF_TWO(hypot) OF_TWO(atan2)
