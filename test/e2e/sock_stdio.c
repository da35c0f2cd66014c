/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that uses a socket by streams of the C library, for test_sock_tcp.py. The output is the
 * same whether or not the socket is carried. (UDP-1)
 *
 *   sock_stdio NAME IP PORT   one of the stories below, over a connection to IP and PORT
 *   sock_stdio inherited      its standard streams are the socket, as under inetd
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wchar.h>

#define LINE 256
#define LONG 100000
#define MUCH 1000000

static struct sockaddr_in to = {.sin_family = AF_INET};

static int
make(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static void
dial(int fd)
{
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return;
	perror("connect");
	exit(1);
}

static int
dialled(void)
{
	int fd = make();

	dial(fd);
	return fd;
}

/* Print what is received, up to the end. */
static void
tell(FILE *in)
{
	char line[LINE];

	while (fgets(line, sizeof(line), in) != NULL)
		printf("got %s", line);
	printf("at the end: %d, error: %d, again: %d\n", feof(in) != 0, ferror(in) != 0, getc(in));
}

/* ---- stories ---- */

static void
two(int in_fd, int out_fd)
{
	FILE *in = fdopen(in_fd, "r"), *out = fdopen(out_fd, "w");
	char line[LINE];

	printf("numbers %d %d\n", fileno(in) == in_fd, fileno(out) == out_fd);
	for (int i = 0; i < 3; i++) {
		fprintf(out, "line %d\n", i);
		fflush(out);
		printf("%s", fgets(line, sizeof(line), in) != NULL ? line : "nothing\n");
	}
	fprintf(out, "bye\n");
	fflush(out);
	shutdown(out_fd, SHUT_WR);
	tell(in);
	printf("closed: %d", fclose(out));
	printf(" %d\n", fclose(in) == 0 || in_fd == out_fd);
}

static void
apart(void)
{
	int fd = dialled();

	two(fd, dup(fd));
}

static void
together(void)
{
	int fd = dialled();

	two(fd, fd);
}

static void
both_ways(void)
{
	FILE *file = fdopen(dialled(), "r+");
	char line[LINE];

	setlinebuf(file);
	for (int i = 0; i < 3; i++) {
		fprintf(file, "line %d\n", i);
		printf("%s", fgets(line, sizeof(line), file) != NULL ? line : "nothing\n");
	}
	errno = 0;
	printf("seek %d", fseek(file, 0, SEEK_CUR));
	printf(" %s\n", strerror(errno));
	fprintf(file, "bye\n");
	fflush(file);
	shutdown(fileno(file), SHUT_WR);
	tell(file);
	fclose(file);
}

static void
before(void)
{
	int fd = make();
	FILE *file = fdopen(fd, "r+");
	char line[LINE];

	dial(fd);
	fprintf(file, "before\n");
	printf("%s", fgets(line, sizeof(line), file) != NULL ? line : "nothing\n");
	fclose(file);
}

static void
once(void)
{
	int fd = dialled(), other;
	FILE *file = fdopen(fd, "w");

	fprintf(file, "the last\n");
	printf("closed %d", fclose(file));
	errno = 0;
	printf(" %d", close(fd));
	printf(" %s", strerror(errno));
	other = open("/dev/null", O_RDWR);
	printf(" reused %d", other == fd);
	file = fdopen(other, "w");
	printf(" %d", fprintf(file, "nothing\n"));
	printf(" %d\n", fclose(file));
}

static void
modes(void)
{
	static const char *const all[] = {"r", "w", "a", "r+", "rb+", "we", "a+e", "+", "x", ""};
	int fd = dialled();
	FILE *file;

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		errno = 0;
		file = fdopen(dup(fd), all[i]);
		printf("%s: %s", all[i], file != NULL ? "open" : strerror(errno));
		if (file != NULL)
			printf(", puts %d", fputs("text\n", file) >= 0);
		if (file != NULL)
			printf(" %d", fclose(file));
		printf("\n");
	}
	errno = 0;
	file = fdopen(fd + 100, "r");
	printf("bad: %s\n", file != NULL ? "open" : strerror(errno));
}

static void
by_number(void)
{
	int fd = dialled();
	char *text = malloc(LONG + 1);

	memset(text, 'x', LONG);
	text[LONG] = '\0';
	printf("%d\n", dprintf(fd, "%s%s\n", text, text));
	dup2(fd, STDERR_FILENO);
	errno = ENOENT;
	perror("first");
	printf("wide %d\n", fwide(stderr, 0));
	fprintf(stderr, "then\n");
	errno = ENOENT;
	perror("");
	errno = ENOENT;
	perror(NULL);
	free(text);
}

static void
late(void)
{
	FILE *out = fdopen(dialled(), "w");
	char *data = malloc(MUCH);
	size_t i;

	for (i = 0; i < MUCH; i++)
		data[i] = (char)(i * 7 + (i >> 8));
	printf("%zu", fwrite(data, 1, MUCH / 2, out));
	for (; i > MUCH / 2; i -= 1000)
		fwrite(data + MUCH - (i - MUCH / 2), 1, 1000, out);
	printf(" %d\n", fclose(out));
	free(data);
}

static void
another(void)
{
	char name[] = "/dev/null", line[LINE];
	FILE *file = fdopen(dialled(), "r+");
	int fd = fileno(file);

	fprintf(file, "first\n");
	printf("%s", fgets(line, sizeof(line), file) != NULL ? line : "nothing\n");
	fprintf(file, "pending\n");
	file = freopen(name, "r", file);
	printf("%d %d", file != NULL, file != NULL && fileno(file) == fd);
	printf(" %d\n", file != NULL && getc(file) == EOF);
	fclose(file);
}

static void
wide(void)
{
	FILE *out = fdopen(dialled(), "w");

	printf("%d", fwide(out, 0));
	printf(" %d\n", fwprintf(out, L"wide %d\n", 1));
	fclose(out);
}

/* For standard streams: that the program starts with, or gets by dup2(). */
static void
echo(void)
{
	char line[LINE];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		printf("out: %s", line);
		fflush(stdout);
		fprintf(stderr, "err: %s", line);
		errno = 0;
		perror("all is well");
		dprintf(STDOUT_FILENO, "number: %s", line);
	}
	printf("end %d %d %d %d\n", feof(stdin) != 0, fileno(stdin), fileno(stdout),
	       fileno(stderr));
}

static void
replaced(void)
{
	int fd = dialled(), was = dup(STDOUT_FILENO);

	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		dup2(fd, i);
	close(fd);
	printf("begin\n");
	fflush(stdout);
	errno = 0;
	echo();
	fflush(stdout);
	dup2(was, STDOUT_FILENO);
	printf("as it was\n");
	fclose(stdin);
	fclose(stderr);
	fprintf(stderr, "nobody reads that\n");
	printf("%d %d\n", getc(stdin), fileno(stderr));
}

/* ---- choice ---- */

static const struct {
	const char *name;
	void (*run)(void);
} stories[] = {
	{"apart", apart},
	{"together", together},
	{"both_ways", both_ways},
	{"before", before},
	{"once", once},
	{"modes", modes},
	{"by_number", by_number},
	{"late", late},
	{"another", another},
	{"wide", wide},
	{"replaced", replaced},
};

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "inherited") == 0) {
		echo();
		return 0;
	}
	if (argc != 4 || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1)
		return 2;
	to.sin_port = htons((uint16_t)atoi(argv[3]));
	for (unsigned int i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		if (strcmp(stories[i].name, argv[1]) == 0) {
			stories[i].run();
			return 0;
		}
	}
	return 2;
}
