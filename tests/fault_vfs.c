/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fault_vfs.h"

#include <sqlite3.h>
#include <string.h>

struct fault_file {
    sqlite3_file file; /* first: what SQLite sees */
    sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;
static uint64_t countdown;
static int fail_code;
static bool fail_lasting;
static bool fail_reads;
static uint64_t hits;

void fault_vfs_arm(uint64_t nth, int code, bool lasting, bool reads)
{
    countdown = nth;
    fail_code = code;
    fail_lasting = lasting;
    fail_reads = reads;
    hits = 0;
}

uint64_t fault_vfs_hits(void)
{
    return hits;
}

static bool must_fail(void)
{
    if (hits > 0 && fail_lasting) {
        hits++;
        return true;
    }
    if (countdown == 0 || --countdown != 0)
        return false;
    hits++;
    return true;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct fault_file *)f)->real;
}

static int f_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int f_read(sqlite3_file *f, void *buf, int len, sqlite3_int64 at)
{
    if (fail_reads && must_fail())
        return SQLITE_IOERR_READ;
    return real_of(f)->pMethods->xRead(real_of(f), buf, len, at);
}

static int f_write(sqlite3_file *f, const void *buf, int len, sqlite3_int64 at)
{
    if (must_fail()) {
        real_of(f)->pMethods->xWrite(real_of(f), buf, len / 2, at);
        return fail_code == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    return real_of(f)->pMethods->xWrite(real_of(f), buf, len, at);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return must_fail() ? SQLITE_IOERR_TRUNCATE : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int f_sync(sqlite3_file *f, int flags)
{
    if (must_fail())
        return fail_code == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_FSYNC;
    return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int f_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int f_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int f_check_lock(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    if (extend && must_fail())
        return SQLITE_IOERR_SHMSIZE;
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int f_shm_unmap(sqlite3_file *f, int drop)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), drop);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_check_lock,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_device,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct fault_file *ff = (struct fault_file *)f;
    (void)vfs;
    memset(ff, 0, sizeof(*ff));
    if (must_fail())
        return SQLITE_CANTOPEN;
    ff->real = (sqlite3_file *)(ff + 1);
    int rc = real_vfs->xOpen(real_vfs, name, ff->real, flags, ret_flags);
    if (rc == SQLITE_OK)
        ff->file.pMethods = &methods;
    return rc;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    (void)vfs;
    return must_fail() ? SQLITE_IOERR_DELETE : real_vfs->xDelete(real_vfs, name, sync_dir);
}

void fault_vfs_register(void)
{
    static sqlite3_vfs vfs;
    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs; /* what is not wrapped takes no file, or the default's own data */
    vfs.pNext = NULL;
    vfs.zName = FAULT_VFS_NAME;
    vfs.szOsFile = (int)sizeof(struct fault_file) + real_vfs->szOsFile;
    vfs.xOpen = v_open;
    vfs.xDelete = v_delete;
    sqlite3_vfs_register(&vfs, 0);
}
