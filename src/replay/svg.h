/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small writer of charts as SVG inside HTML: axes, lines, grouped bars, a legend. It draws into a
 * strbuf and takes its colours from CSS classes (s0 to s7 for the series, grid, axis text), so that
 * one drawing serves light and dark pages. Lengths are user units of the drawing; the page scales
 * it.
 */
#ifndef REMUDA_REPLAY_SVG_H
#define REMUDA_REPLAY_SVG_H

#include "base/strbuf.h"

#include <stddef.h>

#define SVG_COLOURS 8

struct svg_chart {
    struct strbuf *out; /* borrowed */
    double width, height;
    double left, right, top, bottom; /* margins round the plot */
    double x_low, x_high, y_low, y_high;
};

/* Text with the characters that mean something in HTML escaped; bytes that are not UTF-8 become
 * question marks. */
void svg_escape(struct strbuf *out, const char *text);

/* Begins a drawing; `label` says what it shows for those who can't see it. */
void svg_begin(struct svg_chart *c, struct strbuf *out, const char *label);
void svg_end(struct svg_chart *c);
/* A grid line across at `y` with its label on the left; a label under the axis at `x` with a short
 * mark. */
void svg_y_tick(struct svg_chart *c, double y, const char *label);
void svg_x_tick(struct svg_chart *c, double x, const char *label);
/* What the x axis counts, right under the labels. */
void svg_x_title(struct svg_chart *c, const char *text);
/* A line through `len` points in the colour of `series`; with `area` the part below is tinted. */
void svg_line(struct svg_chart *c, const double *x, const double *y, size_t len, unsigned series, bool area);
/* A bar from the axis to `y` between x0 and x1; `title` appears when the mouse rests on it. */
void svg_bar(struct svg_chart *c, double x0, double x1, double y, unsigned series, const char *title);

#endif
