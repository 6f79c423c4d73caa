/* An OpenAI-compatible endpoint that streams at a set pace and writes down when each answer's pieces really left
 * (CLOCK_MONOTONIC, the clock of the clients on this machine): the truth that benchmarks/truth.py holds clients against.
 * One thread, an event loop and a heap of due times; about 3 microseconds a piece.
 *
 *     cc -O2 -o paced_server paced_server.c && ./paced_server        prints the port it listens on; ends with stdin
 *
 * The model's name is the script, `-` between its fields: f200 first piece after 200 ms, n500 pieces, i2000 microseconds
 * between pieces, k4 words a piece. An answer's number is in the `id` of its events and in the log. GET /log gives a JSON
 * line for each answer and forgets it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { FDS = 4096, IN = 1 << 20, HEAD = 200, WORDS = 16 };
static const char *const words[WORDS] = {" time", " year", " people", " way",  " day",   " thing", " world", " school",
                                         " state", " family", " group", " country", " problem", " hand", " part", " place"};

struct stream {
    int fd, chat, active, watching_out;
    int64_t got, due, gap, first, last, late;
    int pieces, sent, size, number;
    char *in, *out;
    size_t in_size, out_size, out_room;
};
static struct stream *streams[FDS], *heap[FDS];
static int heap_size, answers, epoll;
static char *log_text;
static size_t log_size, log_room;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void swap(int a, int b) { struct stream *s = heap[a]; heap[a] = heap[b]; heap[b] = s; }

static void sift_down(int i) {
    for (;;) {
        int least = i;
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < heap_size; child++)
            if (heap[child]->due < heap[least]->due) least = child;
        if (least == i) return;
        swap(i, least);
        i = least;
    }
}

static void push(struct stream *s) {
    int i = heap_size++;
    heap[i] = s;
    for (; i && heap[i]->due < heap[(i - 1) / 2]->due; i = (i - 1) / 2) swap(i, (i - 1) / 2);
}

static void take_out(struct stream *s) {
    for (int i = 0; i < heap_size; i++)
        if (heap[i] == s) {
            heap[i] = heap[--heap_size];
            for (int j = heap_size / 2; j >= 0; j--) sift_down(j);
            return;
        }
}

static void *more(void *old, size_t *room, size_t needed) {
    if (needed <= *room) return old;
    *room = 2 * needed;
    void *grown = realloc(old, *room);
    if (!grown) exit(1);
    return grown;
}

static void watch(struct stream *s, int out) {
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.fd = s->fd};
    if (s->watching_out != out) epoll_ctl(epoll, EPOLL_CTL_MOD, s->fd, &event);
    s->watching_out = out;
}

/* Hand bytes to the kernel; what it doesn't take (a client that doesn't read) waits in our own buffer. */
static void put(struct stream *s, const char *data, size_t size) {
    if (!s->out_size) {
        ssize_t done = send(s->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done == (ssize_t)size) return;
        if (done > 0) { data += done; size -= (size_t)done; }
    }
    s->out = more(s->out, &s->out_room, s->out_size + size);
    memcpy(s->out + s->out_size, data, size);
    s->out_size += size;
    watch(s, 1);
}

static void flush(struct stream *s) {
    ssize_t done = send(s->fd, s->out, s->out_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done <= 0) return;
    s->out_size -= (size_t)done;
    memmove(s->out, s->out + done, s->out_size);
    if (!s->out_size) watch(s, 0);
}

static size_t chunk(char *to, const char *body) {
    return (size_t)sprintf(to, "%zx\r\n%s\r\n", strlen(body), body);
}

static size_t event(struct stream *s, char *to, const char *field, const char *finish) {
    char body[2048];
    const char *object = s->chat ? "chat.completion.chunk" : "text_completion";
    snprintf(body, sizeof body,
             "data: {\"id\":\"c%d\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"paced\",\"choices\":[{\"index\":0,%s,"
             "\"finish_reason\":%s}]}\n\n", s->number, object, field, finish);
    return chunk(to, body);
}

static size_t piece(struct stream *s, char *to) {
    char text[512] = "", field[600];
    for (int i = 0; i < s->size && i < 32; i++) strcat(text, words[(s->number * 31 + s->sent * 7 + i * 3 + s->sent / 5) % WORDS]);
    snprintf(field, sizeof field, s->chat ? "\"delta\":{\"content\":\"%s\"}" : "\"text\":\"%s\"", text);
    return event(s, to, field, "null");
}

static void end(struct stream *s) {
    char out[4096], usage[300];
    int tokens = s->pieces * s->size;
    size_t size = event(s, out, s->chat ? "\"delta\":{}" : "\"text\":\"\"", "\"stop\"");
    snprintf(usage, sizeof usage,
             "data: {\"id\":\"c%d\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"paced\",\"choices\":[],"
             "\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", s->number, tokens, tokens + 16);
    size += chunk(out + size, usage);
    size += chunk(out + size, "data: [DONE]\n\n");
    size += (size_t)sprintf(out + size, "0\r\n\r\n");
    put(s, out, size);
    s->active = 0;
    log_text = more(log_text, &log_room, log_size + 300);
    log_size += (size_t)sprintf(log_text + log_size,
                                "{\"number\":%d,\"got\":%lld,\"first\":%lld,\"last\":%lld,\"end\":%lld,\"pieces\":%d,\"late\":%lld}\n",
                                s->number, (long long)s->got, (long long)s->first, (long long)s->last, (long long)now(), s->pieces,
                                (long long)s->late);
}

/* Send the piece that is due; the clock is read just before the bytes leave. */
static void step(struct stream *s) {
    char out[4096];
    size_t size = piece(s, out);
    int64_t at = now();
    put(s, out, size);
    if (!s->sent++) s->first = at;
    s->last = at;
    if (at - s->due > s->late) s->late = at - s->due;
    s->due += s->gap;
    if (s->sent < s->pieces) sift_down(0);
    else { heap[0] = heap[--heap_size]; sift_down(0); end(s); }
}

static int number(const char *name, char field, int otherwise) {
    for (const char *at = name; *at && *at != '"'; at++)
        if (*at == field && (at == name || at[-1] == '-')) return atoi(at + 1);
    return otherwise;
}

static void plain(struct stream *s, const char *kind, const char *body, size_t size) {
    char head[HEAD];
    put(s, head, (size_t)sprintf(head, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", kind, size));
    put(s, body, size);
}

static void answer(struct stream *s, char *body) {
    char out[4096], *model = strstr(body, "\"model\""), *path = strchr(s->in, ' ');
    s->got = now();
    if (!strncmp(s->in, "GET /log", 8)) {
        plain(s, "application/x-ndjson", log_text ? log_text : "", log_size);
        log_size = 0;
        return;
    }
    if (strncmp(s->in, "POST", 4) || !model || !path) {
        const char *list = "{\"object\":\"list\",\"data\":[{\"id\":\"paced\",\"object\":\"model\",\"owned_by\":\"paced\"}]}";
        plain(s, "application/json", list, strlen(list));
        return;
    }
    for (model += 7; *model == ' ' || *model == ':'; model++) {}
    model += *model == '"';
    s->chat = !strncmp(path, " /v1/chat", 9);
    s->number = answers++;
    s->pieces = number(model, 'n', 100);
    s->size = number(model, 'k', 1);
    s->gap = 1000LL * number(model, 'i', 10000);
    s->due = s->got + 1000000LL * number(model, 'f', 100);
    s->sent = 0;
    s->late = 0;
    s->active = 1;
    size_t size = (size_t)sprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    if (s->chat) size += event(s, out + size, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}", "null");
    put(s, out, size);
    push(s);
}

static void drop(struct stream *s) {
    if (s->active) take_out(s);
    streams[s->fd] = NULL;
    close(s->fd);
    free(s->in);
    free(s->out);
    free(s);
}

static void receive(struct stream *s) {
    ssize_t got = recv(s->fd, s->in + s->in_size, IN - 1 - s->in_size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) { drop(s); return; }
    s->in_size += (size_t)got;
    s->in[s->in_size] = 0;
    char *blank = strstr(s->in, "\r\n\r\n"), *length = strcasestr(s->in, "\r\ncontent-length:");
    if (!blank) return;
    size_t whole = (size_t)(blank + 4 - s->in) + (length && length < blank ? strtoul(length + 17, NULL, 10) : 0);
    if (s->in_size < whole) return;
    answer(s, blank + 4);
    s->in_size = 0; /* clients of this server don't pipeline */
}

static void welcome(int listener) {
    int fd = accept(listener, NULL, NULL), on = 1;
    if (fd < 0) return;
    if (fd >= FDS) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct stream *s = calloc(1, sizeof *s);
    s->fd = fd;
    s->in = malloc(IN);
    streams[fd] = s;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void alarm_at(int timer, int64_t when) {
    struct itimerspec at = {.it_value = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct epoll_event events[64];
    int listener = socket(AF_INET, SOCK_STREAM, 0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    int special[] = {listener, timer, 0};
    prctl(PR_SET_TIMERSLACK, 1);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1024)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    epoll = epoll_create1(0);
    for (int i = 0; i < 3; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = special[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, special[i], &event);
    }
    for (;;) {
        while (heap_size && heap[0]->due <= now()) step(heap[0]);
        if (heap_size) alarm_at(timer, heap[0]->due);
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            uint64_t expired;
            if (fd == listener) welcome(fd);
            else if (fd == timer) { if (read(timer, &expired, sizeof expired) < 0) continue; }
            else if (fd == 0) { char c; if (read(0, &c, 1) <= 0) return 0; }
            else if (streams[fd]) {
                if (events[i].events & EPOLLOUT) flush(streams[fd]);
                if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(streams[fd]);
            }
        }
    }
}
