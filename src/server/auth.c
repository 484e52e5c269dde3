/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is calling. On the Unix socket the kernel says it (SO_PEERCRED); over TCP a bearer token
 * does. A token has 256 random bits, so that a plain BLAKE2b of it can be kept: STATE/tokens has a
 * line "NAME UID ROLE HASH" for each, ROLE being admin or user. The first token is made with the
 * first --listen and written to STATE/token (mode 0600).
 */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/log.h"

#include <errno.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOKEN_PREFIX     "rmd_"
#define TOKEN_BYTES      32
#define TOKENS_BYTES_MAX ((size_t)1 << 20)

void auth_user_name(uint32_t uid, char out[NAME_SIZE])
{
    /* One entry is enough: most callers are the same person again. */
    static uint32_t last_uid = UINT32_MAX;
    static char last_name[NAME_SIZE];
    if (uid != last_uid) {
        char buffer[4096];
        struct passwd entry;
        struct passwd *found = NULL;
        if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL &&
            strlen(found->pw_name) < NAME_SIZE)
            snprintf(last_name, sizeof(last_name), "%s", found->pw_name);
        else
            snprintf(last_name, sizeof(last_name), "%u", uid);
        last_uid = uid;
    }
    memcpy(out, last_name, NAME_SIZE);
}

static void hash_of(const char *token, unsigned char out[32])
{
    crypto_generichash(out, 32, (const unsigned char *)token, strlen(token), NULL, 0);
}

static int parse_line(struct server *s, const char *path, int number, char *line, struct err *e)
{
    char hex[80];
    char role[16];
    struct token t = {0};
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    size_t len = 0;
    if (sscanf(line, "%63s %u %15s %79s", t.name, &t.uid, role, hex) != 4 ||
        (strcmp(role, "admin") != 0 && strcmp(role, "user") != 0) ||
        sodium_hex2bin(t.hash, sizeof(t.hash), hex, strlen(hex), NULL, &len, NULL) != 0 || len != sizeof(t.hash))
        return err_set(e, -EINVAL, "%s:%d: NAME UID admin|user HASH is wanted", path, number);
    t.admin = role[0] == 'a';
    if (mem_grow(&s->tokens, &s->tokens_cap, s->tokens_len + 1, sizeof(t)) != 0)
        return err_set(e, -ENOMEM, "%s: out of memory", path);
    s->tokens[s->tokens_len++] = t;
    return 0;
}

static int make_first(struct server *s, const char *path, struct err *e)
{
    unsigned char random[TOKEN_BYTES];
    char text[sizeof(TOKEN_PREFIX) + sodium_base64_ENCODED_LEN(TOKEN_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING) +
              1];
    char hex[65];
    char line[160];
    char token_path[4096];
    struct token t = {.uid = (uint32_t)geteuid(), .admin = true, .name = "first"};
    randombytes_buf(random, sizeof(random));
    memcpy(text, TOKEN_PREFIX, sizeof(TOKEN_PREFIX));
    sodium_bin2base64(text + strlen(TOKEN_PREFIX), sizeof(text) - strlen(TOKEN_PREFIX), random, sizeof(random),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    hash_of(text, t.hash);
    sodium_bin2hex(hex, sizeof(hex), t.hash, sizeof(t.hash));
    snprintf(line, sizeof(line), "%s %u admin %s\n", t.name, t.uid, hex);
    snprintf(token_path, sizeof(token_path), "%s/token", s->o->state_dir);
    size_t len = strlen(text);
    text[len] = '\n'; /* there is room: the prefix was counted with its terminator */
    text[len + 1] = 0;
    int rc = file_write_atomic(token_path, text, len + 1, 0600, FILE_SYNC_ALL, e);
    if (rc == 0)
        rc = file_write_atomic(path, line, strlen(line), 0600, FILE_SYNC_ALL, e);
    sodium_memzero(text, sizeof(text));
    sodium_memzero(random, sizeof(random));
    if (rc == 0 && mem_grow(&s->tokens, &s->tokens_cap, 1, sizeof(t)) != 0)
        rc = err_set(e, -ENOMEM, "%s: out of memory", path);
    if (rc != 0)
        return rc;
    s->tokens[s->tokens_len++] = t;
    log_info("made the first token", "file=%s", token_path);
    return 0;
}

int auth_open(struct server *s, struct err *e)
{
    char path[4096];
    CLEANUP_FREE char *text = NULL;
    if (sodium_init() < 0)
        return err_set(e, -EIO, "libsodium can't be used");
    snprintf(path, sizeof(path), "%s/tokens", s->o->state_dir);
    int rc = file_read(path, TOKENS_BYTES_MAX, &text, NULL, e);
    if (rc == -ENOENT)
        return make_first(s, path, e);
    char *rest = text;
    for (int number = 1; rc == 0 && rest != NULL; number++) {
        char *line = strsep(&rest, "\n");
        rc = parse_line(s, path, number, line, e);
    }
    return rc;
}

void auth_close(struct server *s)
{
    mem_free(s->tokens);
    s->tokens = NULL;
    s->tokens_len = 0;
}

static bool by_token(struct server *s, struct http_request *r)
{
    const char *header = request_header(r, "Authorization");
    unsigned char hash[32];
    const struct token *found = NULL;
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0 || strlen(header) > 200) {
        request_problem(r, 401, "unauthorized", NULL, "a token is wanted: Authorization: Bearer TOKEN");
        return false;
    }
    hash_of(header + 7, hash);
    for (size_t i = 0; i < s->tokens_len; i++)
        if (sodium_memcmp(hash, s->tokens[i].hash, sizeof(hash)) == 0)
            found = &s->tokens[i];
    if (found == NULL) {
        request_problem(r, 401, "unauthorized", NULL, "the token is not known");
        return false;
    }
    r->who.uid = found->uid;
    r->who.admin = found->admin;
    return true;
}

static bool by_peer(struct http_request *r)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (info == NULL || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        request_problem(r, 401, "unauthorized", NULL, "the kernel does not say who is calling");
        return false;
    }
    r->who.uid = peer.uid;
    r->who.admin = peer.uid == 0 || peer.uid == geteuid();
    return true;
}

bool auth_check(struct server *s, struct http_request *r)
{
    if (!(r->over_tcp ? by_token(s, r) : by_peer(r)))
        return false;
    auth_user_name(r->who.uid, r->who.user);
    return true;
}
