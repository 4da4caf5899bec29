/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses stand in the middle of sentences, quoted, cut short, several in a row, and FFmpeg takes
 * more than RFC 3986 allows (a '@' in the password, one slash or none). So nothing is parsed
 * strictly here: where it is not clear what a part is, it is hidden. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

#define HIDDEN "***"

/* As snprintf: what does not fit is counted only. */
struct copy {
    char  *buf;
    size_t size, length;
};

static void put(struct copy *c, const char *bytes, size_t n)
{
    if (c->length < c->size)
        memcpy(c->buf + c->length, bytes, SAC_MIN(n, c->size - c->length));
    c->length += n;
}

/* What a query may say that is no secret: everything else is hidden, as services name their keys as
 * they like. */
static const char *const harmless[] = {
    "bitrate",   "buffer_size", "camera",  "channel",    "codec",      "fifo_size", "format",
    "fps",       "height",      "latency", "listen",     "mode",       "pkt_size",  "profile",
    "proto",     "protocol",    "quality", "resolution", "stream",     "subtype",   "timeout",
    "transport", "trackid",     "ttl",     "unicast",    "videocodec", "width",
};

static bool is_harmless(const char *key, size_t length)
{
    for (size_t i = 0; i < SAC_COUNT(harmless); i++)
        if (strlen(harmless[i]) == length && strncasecmp(harmless[i], key, length) == 0)
            return true;
    return false;
}

/* Protocols of FFmpeg that it also takes without slashes ("rtsp:user:pass@host"). */
static bool is_network_scheme(const char *name, size_t length)
{
    static const char *const schemes[] = {
        "ftp", "gopher", "http",  "https", "icecast", "mmsh", "mmst", "rtmp", "rtmps", "rtmpt",
        "rtp", "rtsp",   "rtsps", "sftp",  "srt",     "srtp", "tcp",  "tls",  "udp"};
    for (size_t i = 0; i < SAC_COUNT(schemes); i++)
        if (strlen(schemes[i]) == length && strncasecmp(schemes[i], name, length) == 0)
            return true;
    return false;
}

/* The length of "scheme://" up to here when the ':' at `colon` ends a scheme, else 0. */
static size_t begins_address(const char *text, const char *colon)
{
    const char *name = colon;
    while (name > text && (isalnum((unsigned char)name[-1])))
        name--;
    const size_t length = (size_t)(colon - name);
    if (length > 0 && strncmp(colon, "://", 3) == 0)
        return length == 4 && strncasecmp(name, "file", 4) == 0 ? 0 : 3;
    if (!is_network_scheme(name, length) || isspace((unsigned char)colon[1]))
        return 0;
    return colon[1] == '/' ? 2 : 1;
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (at[n] && !isspace((unsigned char)at[n]))
        n++;
    return n;
}

/* Without the quote, the bracket or the stop that a sentence sets behind an address. */
static const char *without_punctuation(const char *begin, const char *end)
{
    while (end > begin && strchr("'\":,.;)>}", end[-1]))
        end--;
    return end;
}

static const char *last_at_sign(const char *begin, const char *end)
{
    while (end > begin)
        if (*--end == '@')
            return end;
    return NULL;
}

/* "host:80" and "[::1]:80" have a port, "user:word" has none: it is half of what stands before a
 * '@'. */
static bool ends_in_no_port(const char *begin, const char *end)
{
    const char *bracket = *begin == '[' ? memchr(begin, ']', (size_t)(end - begin)) : NULL;
    const char *colon =
        memchr(bracket ? bracket : begin, ':', (size_t)(end - (bracket ? bracket : begin)));
    if (!colon || (*begin == '[' && !bracket))
        return false;
    while (++colon < end)
        if (!isdigit((unsigned char)*colon))
            return true;
    return false;
}

/* User and password of an address that ends at *end; returns where the host begins. A password with
 * a slash or a blank in it ends at a later '@', beyond what looked like the address. */
static const char *hide_user(struct copy *c, const char *at, const char **end)
{
    const char *host_end = at + strcspn(at, "/?#");
    host_end = SAC_MIN(host_end, *end);
    const char *sign = last_at_sign(at, host_end);
    if (!sign && ends_in_no_port(at, host_end)) {
        sign = last_at_sign(host_end, *end);
        if (!sign && (sign = strchr(*end, '@')))
            *end = without_punctuation(sign, sign + word_length(sign));
        if (!sign) {
            put(c, HIDDEN, strlen(HIDDEN));
            return host_end;
        }
    }
    if (!sign)
        return at;
    put(c, HIDDEN "@", strlen(HIDDEN "@"));
    return sign + 1;
}

/* One "key=value" of a query, from behind its '?' or '&'. */
static void put_parameter(struct copy *c, const char *at, const char *end)
{
    const char  *equal = memchr(at, '=', (size_t)(end - at));
    const size_t key = (size_t)((equal ? equal + 1 : at) - at);
    if (at == end || (equal && is_harmless(at, key - 1))) {
        put(c, at, (size_t)(end - at));
        return;
    }
    put(c, at, key);
    put(c, HIDDEN, strlen(HIDDEN));
}

static void put_query(struct copy *c, const char *at, const char *end)
{
    while (at < end) {
        const char *next = at + 1;
        while (next < end && !strchr("?&#;", *next))
            next++;
        put(c, at, 1);
        put_parameter(c, at + 1, next);
        at = next;
    }
}

/* From behind "scheme://" to where to read on: the end of the address, or its path when that holds
 * another one. */
static const char *put_address(struct copy *c, const char *at)
{
    const char *end = without_punctuation(at, at + word_length(at));
    at = hide_user(c, at, &end);
    const char *query = at + strcspn(at, "?#;"), *next = strstr(at, "://");
    query = SAC_MIN(query, end);
    if (next && next < query)
        return at;
    put(c, at, (size_t)(query - at));
    put_query(c, query, end);
    return end;
}

size_t sac_hide_secrets(const char *text, char *buf, size_t size)
{
    size = buf ? size : 0;
    struct copy c = {buf, size, 0};
    const char *at = text ? text : "";
    for (const char *colon; (colon = strchr(at, ':'));) {
        size_t slashes = begins_address(at, colon);
        put(&c, at, (size_t)(colon - at) + SAC_MAX(slashes, 1));
        at = colon + SAC_MAX(slashes, 1);
        if (slashes)
            at = put_address(&c, at);
    }
    put(&c, at, strlen(at));
    if (size)
        buf[SAC_MIN(c.length, size - 1)] = '\0';
    return c.length;
}

char *sac_strdup_hidden(const char *text)
{
    const size_t size = sac_hide_secrets(text, NULL, 0) + 1;
    char        *copy = sac_alloc(size);
    if (copy)
        sac_hide_secrets(text, copy, size);
    return copy;
}
