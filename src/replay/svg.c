/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/svg.h"

#include <string.h>

void svg_escape(struct strbuf *out, const char *text)
{
    bool valid = utf8_valid(text, strlen(text));
    for (const char *s = text; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '&')
            strbuf_puts(out, "&amp;");
        else if (ch == '<')
            strbuf_puts(out, "&lt;");
        else if (ch == '>')
            strbuf_puts(out, "&gt;");
        else if (ch == '"')
            strbuf_puts(out, "&quot;");
        else if (ch == '\'')
            strbuf_puts(out, "&#39;");
        else
            strbuf_putc(out, ch < 0x20 || ch == 0x7f || (!valid && ch > 0x7f) ? '?' : *s);
    }
}

static double px(const struct svg_chart *c, double x)
{
    return c->left + (x - c->x_low) / (c->x_high - c->x_low) * (c->width - c->left - c->right);
}

static double py(const struct svg_chart *c, double y)
{
    return c->height - c->bottom - (y - c->y_low) / (c->y_high - c->y_low) * (c->height - c->top - c->bottom);
}

void svg_begin(struct svg_chart *c, struct strbuf *out, const char *label)
{
    c->out = out;
    strbuf_printf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", c->width, c->height);
    svg_escape(out, label);
    strbuf_puts(out, "\">\n");
}

void svg_end(struct svg_chart *c)
{
    strbuf_printf(c->out, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n</svg>\n", c->left,
                  c->height - c->bottom, c->width - c->right, c->height - c->bottom);
}

void svg_y_tick(struct svg_chart *c, double y, const char *label)
{
    double at = py(c, y);
    strbuf_printf(c->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", c->left, at,
                  c->width - c->right, at);
    strbuf_printf(c->out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", c->left - 8, at + 4);
    svg_escape(c->out, label);
    strbuf_puts(c->out, "</text>\n");
}

void svg_x_tick(struct svg_chart *c, double x, const char *label)
{
    double at = px(c, x), base = c->height - c->bottom;
    strbuf_printf(c->out, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", at, base, at,
                  base + 4);
    strbuf_printf(c->out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", at, base + 18);
    svg_escape(c->out, label);
    strbuf_puts(c->out, "</text>\n");
}

void svg_x_title(struct svg_chart *c, const char *text)
{
    strbuf_printf(c->out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  (c->left + c->width - c->right) / 2, c->height - 4);
    svg_escape(c->out, text);
    strbuf_puts(c->out, "</text>\n");
}

void svg_line(struct svg_chart *c, const double *x, const double *y, size_t len, unsigned series, bool area)
{
    if (len == 0)
        return;
    if (area) {
        strbuf_printf(c->out, "<path class=\"area f%u\" d=\"M%.1f %.1f", series % SVG_COLOURS, px(c, x[0]),
                      py(c, c->y_low));
        for (size_t i = 0; i < len; i++)
            strbuf_printf(c->out, "L%.1f %.1f", px(c, x[i]), py(c, y[i]));
        strbuf_printf(c->out, "L%.1f %.1fZ\"/>\n", px(c, x[len - 1]), py(c, c->y_low));
    }
    strbuf_printf(c->out, "<path class=\"line s%u%s\" d=\"", series % SVG_COLOURS,
                  series >= SVG_COLOURS ? " dash" : "");
    for (size_t i = 0; i < len; i++)
        strbuf_printf(c->out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', px(c, x[i]), py(c, y[i]));
    strbuf_puts(c->out, "\"/>\n");
}

void svg_bar(struct svg_chart *c, double x0, double x1, double y, unsigned series, const char *title)
{
    double top = py(c, y), base = c->height - c->bottom;
    strbuf_printf(c->out, "<rect class=\"f%u%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
                  series % SVG_COLOURS, series >= SVG_COLOURS ? " pale" : "", px(c, x0), top, px(c, x1) - px(c, x0),
                  base - top);
    svg_escape(c->out, title);
    strbuf_puts(c->out, "</title></rect>\n");
}
