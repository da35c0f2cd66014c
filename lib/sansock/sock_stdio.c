/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The C library's streams read and write by calls that cannot be intercepted. Streams of carried
 * sockets use the library's functions instead. (UDP-1)
 *
 * A stream of a socket is made by fopencookie(), with functions of the library. It has the
 * socket's number, for fileno() and freopen(), and a buffer of the size that a socket gets, so the
 * same bytes are written together. It also has the wide-character part of a stream that the C
 * library has made for a descriptor: without it freopen() would crash. Wide characters are written
 * to the descriptor directly (see san_sock_ring_wait_pair()).
 *
 * Standard streams are made when the process starts, and put in place by a single store, because
 * dup2(), which puts sockets there, may be called in a signal handler. They stay in place then, for
 * any descriptor.
 */

#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include "sock_priv.h"

#define BLOCK  4096 /* st_blksize of a socket: size of the C library's buffer */
#define NB_STD 3

struct stream {
	int fd;     /* -1: closed */
	FILE *real; /* its wide-character part is used; NULL: a standard stream */
	char buf[BLOCK];
};

static struct {
	struct stream stream;
	FILE *ours, *real;
} standard[NB_STD];

static FILE **const place[NB_STD] = {&stdin, &stdout, &stderr};

/* The C library's function that checks what the compiler cannot. */
int __vfprintf_chk(FILE *file, int flag, const char *format, va_list ap);

/* ---- functions of a stream ---- */

static ssize_t
read_some(void *cookie, char *data, size_t len)
{
	return read(((struct stream *)cookie)->fd, data, len);
}

/* Write all of it, as the C library's function does; a smaller result is an error. */
static ssize_t
sock_stdio_write_all(void *cookie, const char *data, size_t len)
{
	struct stream *s = cookie;
	size_t done = 0;
	ssize_t n;

	while (done < len && (n = write(s->fd, data + done, len - done)) > 0)
		done += (size_t)n;
	return (ssize_t)done;
}

static int
sock_stdio_seek(void *cookie, off64_t *offset, int whence)
{
	return san_sock_real_fail(ESPIPE);
}

/* Release only the memory of *real*, and not its descriptor. */
static void
sock_stdio_dispose(FILE *real)
{
	KEEP_ERRNO;

	real->_fileno = -1;
	REAL(fclose, real);
}

static int
sock_stdio_finish(void *cookie)
{
	struct stream *s = cookie;
	int fd = s->fd;

	if (s->real != NULL) {
		sock_stdio_dispose(s->real);
		free(s);
	}
	return fd < 0 ? 0 : close(fd);
}

/* *real*: a stream of the C library for the descriptor; NULL: the new one is for bytes only. */
static FILE *
sock_stdio_make(struct stream *s, const char *mode, const FILE *real)
{
	static const cookie_io_functions_t functions = {read_some, sock_stdio_write_all,
							sock_stdio_seek, sock_stdio_finish};
	FILE *file = fopencookie(s, mode, functions);

	if (file == NULL)
		return NULL;
	if (real != NULL) {
		file->_fileno = s->fd;
		file->_wide_data = real->_wide_data;
		file->_mode = 0;
	}
	setvbuf(file, s->buf, _IOFBF, sizeof(s->buf));
	return file;
}

/* ---- standard streams ---- */

void
san_sock_stdio_begin(void)
{
	int fd;

	for (fd = 0; fd < NB_STD; fd++) {
		standard[fd].stream.fd = fd;
		standard[fd].real = *place[fd];
		standard[fd].ours = sock_stdio_make(
			&standard[fd].stream, fd == STDIN_FILENO ? "r" : "w", standard[fd].real);
		if (fd == STDERR_FILENO && standard[fd].ours != NULL)
			setvbuf(standard[fd].ours, NULL, _IONBF, 0);
		san_sock_stdio_at(fd);
	}
}

void
san_sock_stdio_at(int fd)
{
	HELD struct fd_sock *f = NULL;
	FILE *ours, *real;

	if (fd < 0 || fd >= NB_STD || (f = san_sock_switch_carried_now(fd)) == NULL)
		return;
	ours = standard[fd].ours;
	real = standard[fd].real;
	/* data in *real* would be lost or delayed */
	if (ours == NULL || standard[fd].stream.fd != fd || *place[fd] != real ||
	    real->_fileno != fd || real->_IO_read_ptr != real->_IO_read_end ||
	    real->_IO_write_ptr != real->_IO_write_base || real->_mode > 0)
		return;
	if (__flbf(real) != 0)
		setvbuf(ours, NULL, _IOLBF, 0);
	else if (__fbufsize(real) == 1)
		setvbuf(ours, NULL, _IONBF, 0);
	*place[fd] = ours;
}

/* The stream stays valid, as the C library's own, for callers that still use it. */
static int
close_standard(FILE *file, struct stream *s)
{
	int fd = file->_fileno, rc;

	if (fd < 0)
		return EOF;
	rc = fflush(file);
	__fpurge(file);
	s->fd = file->_fileno = -1;
	return close(fd) == 0 ? rc : EOF;
}

/* ---- streams of descriptors ---- */

/* Whether the socket stays with the kernel for certain. */
static bool
sock_stdio_fd_stays(int fd, const struct fd_sock *f)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	KEEP_ERRNO;

	return !atomic_load(&f->carried) && !f->is_udp &&
		REAL(getpeername, fd, (struct sockaddr *)&ss, &len) == 0;
}

/* Make a stream in place of *real*, which the C library has made for *fd*. */
static FILE *
sock_stdio_replace(FILE *real, int fd, char mode)
{
	const char how[] = {mode, __freadable(real) != 0 && __fwritable(real) != 0 ? '+' : 0, 0};
	struct stream *s = malloc(sizeof(*s));
	FILE *file = NULL;

	if (s != NULL) {
		s->fd = fd;
		s->real = real;
		file = sock_stdio_make(s, how, real);
	}
	if (file != NULL) {
		real->_fileno = -1;
	} else {
		free(s);
		sock_stdio_dispose(real);
	}
	return file;
}

EXPORT FILE *
fdopen(int fd, const char *mode)
{
	HELD struct fd_sock *f = san_sock_fd_get(fd);
	FILE *file = REAL(fdopen, fd, mode); /* the C library checks *mode* */

	if (f == NULL || file == NULL || sock_stdio_fd_stays(fd, f))
		return file;
	return sock_stdio_replace(file, fd, mode[0]);
}

EXPORT int
fclose(FILE *file)
{
	int was = errno, fd = file != NULL ? fileno(file) : -1, rc = 0, i;
	HELD struct fd_sock *f = NULL;

	for (i = 0; i < NB_STD; i++)
		if (file != NULL && file == standard[i].ours)
			return close_standard(file, &standard[i].stream);
	/* flush first: after it is forgotten, writes would not reach the socket */
	f = san_sock_fd_get(fd);
	if (f != NULL)
		rc = fflush(file);
	else
		errno = was;
	san_sock_fd_forget(fd);
	if (REAL(fclose, file) != 0)
		rc = EOF;
	if (f != NULL && !f->is_udp && atomic_load(&f->carried))
		san_sock_tcp_linger(f);
	return rc;
}

EXPORT FILE *
freopen(const char *path, const char *mode, FILE *file)
{
	int was = errno, fd = file != NULL ? fileno(file) : -1;

	/* the C library opens and closes by calls that are not seen, with the number of *file* */
	if (fd >= 0) {
		fflush(file);
		san_sock_fd_forget(fd);
	}
	errno = was;
	return REAL(freopen, path, mode, file);
}

EXPORT_AS(freopen, freopen64);

/* ---- functions that write to a descriptor ---- */

/* As in the C library, by a temporary stream. */
static int
sock_stdio_print(int fd, int flag, const char *format, va_list ap)
{
	POOLED struct sock_room room = san_sock_room_take(sizeof(struct stream));
	struct stream *s = room.mem;
	FILE *file;
	int n = -1;

	if (s == NULL)
		return -1;
	*s = (struct stream){.fd = fd};
	file = sock_stdio_make(s, "w", NULL);
	if (file != NULL) {
		n = __vfprintf_chk(file, flag, format, ap);
		if (fflush(file) != 0)
			n = -1;
		s->fd = -1;
		REAL(fclose, file);
	}
	return n;
}

static bool
sock_stdio_is_known(int fd)
{
	HELD struct fd_sock *f = san_sock_fd_get(fd);

	return f != NULL;
}

EXPORT int
__vdprintf_chk(int fd, int flag, const char *format, va_list ap)
{
	return sock_stdio_is_known(fd) ? sock_stdio_print(fd, flag, format, ap) :
					 REAL(__vdprintf_chk, fd, flag, format, ap);
}

EXPORT int
vdprintf(int fd, const char *format, va_list ap)
{
	return __vdprintf_chk(fd, 0, format, ap);
}

EXPORT int
dprintf(int fd, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = __vdprintf_chk(fd, 0, format, ap);
	va_end(ap);
	return n;
}

EXPORT int
__dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = __vdprintf_chk(fd, flag, format, ap);
	va_end(ap);
	return n;
}

/* A stream without orientation must not get one: then the text goes to the descriptor. */
EXPORT void
perror(const char *what)
{
	int err = errno, fd = fileno(stderr);
	char text[256];

	if (fwide(stderr, 0) == 0 && sock_stdio_is_known(fd)) {
		dprintf(fd, "%s%s%s\n", what != NULL ? what : "",
			what != NULL && what[0] != '\0' ? ": " : "",
			strerror_r(err, text, sizeof(text)));
		return;
	}
	errno = err;
	REAL(perror, what);
}
