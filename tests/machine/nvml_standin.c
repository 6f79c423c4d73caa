/* A stand-in for NVIDIA's libnvidia-ml.so.1: plays the cards that a text file describes, so that the real pynvml is
 * exercised on machines without a card. The file is named by NVML_STANDIN and read again at every call, so that a test
 * can change a card in mid-run. Its lines are `<card> <key> <value>`, with these keys:
 *
 *   clock, memory_clock (MHz), power (mW), reasons (bits), temperature, memory_used (MB), utilisation (%)
 *   energy_factor   the energy counter gains this many times the power that is told (1)
 *   energy_offset   mJ added to the counter: lowering it in mid-run lets the counter fall
 *   lost            1: every call for the card fails as for a card that fell off the bus
 *   mig             1: the card is cut into two slices
 *   block           1: calls for the card never return while this stands
 *   lacks           name of a call that the card doesn't support (may be repeated)
 *   name            the card's name, blanks as underscores; device (PCI device id, as a decimal number);
 *   memory          bytes; cores; power_limit, power_default (mW); pcie, lanes, max_lanes
 *   virtual         NVML's virtualization mode (0 none, 1 passed through, 2 a virtual card)
 *   offset          graphics clock offset (MHz); persistence 0 or 1; major, minor: compute capability
 *   computing       number of processes that compute on the card; drawing: that draw (their ids start at 100000)
 *
 * `0 card 1` alone makes an H100 with plain values. Result codes and structures: NVIDIA's NVML reference.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, LOST = 15 };
enum { CARDS = 4, SLICES = 2 };

struct card { int number, slice; double energy_mj; int64_t read_ns; };
static struct card cards[CARDS], slices[CARDS][SLICES];
static const char *const uuids[CARDS] = {"GPU-aaaaaaaa-0000", "GPU-bbbbbbbb-0000", "GPU-cccccccc-0000",
                                         "GPU-dddddddd-0000"};

/* The last value of a key for a card; with `wanted`, whether any line has that value. */
static double look(int card, const char *key, double otherwise, const char *wanted) {
    FILE *file = fopen(getenv("NVML_STANDIN"), "r");
    char name[64], value[64];
    int number;
    double found = otherwise;
    if (!file) return otherwise;
    while (fscanf(file, "%d %63s %63s", &number, name, value) == 3)
        if (number == card && !strcmp(name, key)) {
            if (!wanted) found = atof(value);
            else if (!strcmp(value, wanted)) found = 1;
        }
    fclose(file);
    return found;
}

static double told(const struct card *card, const char *key, double otherwise) {
    return look(card->number, key, otherwise, NULL);
}

static int ask(const struct card *card, const char *call) {
    while (told(card, "block", 0)) usleep(10000);
    if (told(card, "lost", 0)) return LOST;
    return look(card->number, "lacks", 0, call) ? NOT_SUPPORTED : OK;
}

#define ASK(card) do { int code = ask(card, __func__); if (code) return code; } while (0)

int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    for (*count = 0; *count < CARDS && look(*count, "card", 0, NULL); ++*count) {}
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct card **card) {
    *card = &cards[index];
    cards[index].number = (int)index;
    cards[index].slice = -1;
    return ask(*card, __func__);
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.95.05"); return OK; }

int nvmlDeviceGetUUID(struct card *card, char *text, unsigned size) {
    ASK(card);
    if (card->slice < 0) snprintf(text, size, "%s", uuids[card->number]);
    else snprintf(text, size, "MIG-%c%d-0000", 'a' + card->number, card->slice);
    return OK;
}

/* The last word that is said for a key, blanks written as underscores. */
static void words(const struct card *card, const char *key, const char *otherwise, char *text, unsigned size) {
    FILE *file = fopen(getenv("NVML_STANDIN"), "r");
    char name[64], value[64];
    int number;
    snprintf(text, size, "%s", otherwise);
    if (!file) return;
    while (fscanf(file, "%d %63s %63s", &number, name, value) == 3)
        if (number == card->number && !strcmp(name, key)) snprintf(text, size, "%s", value);
    fclose(file);
    for (; *text; text++) if (*text == '_') *text = ' ';
}

int nvmlDeviceGetName(struct card *card, char *text, unsigned size) {
    char whole[64];
    ASK(card);
    words(card, "name", "NVIDIA_H100_80GB_HBM3", whole, sizeof whole);
    snprintf(text, size, "%s%s", whole, card->slice < 0 ? "" : " MIG 3g.40gb");
    return OK;
}

int nvmlDeviceGetMigMode(struct card *card, unsigned *now, unsigned *later) {
    ASK(card);
    *now = *later = (unsigned)told(card, "mig", 0);
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(struct card *card, unsigned *count) { ASK(card); *count = 7; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(struct card *card, unsigned index, struct card **slice) {
    ASK(card);
    if (index >= SLICES) return NOT_FOUND;
    *slice = &slices[card->number][index];
    (*slice)->number = card->number;
    (*slice)->slice = (int)index;
    return OK;
}

int nvmlDeviceGetMemoryInfo(struct card *card, uint64_t memory[3]) {
    ASK(card);
    memory[0] = card->slice < 0 ? (uint64_t)told(card, "memory", 85520809984.0) : 42000000000u;
    memory[2] = (uint64_t)(1e6 * told(card, "memory_used", 70000));
    memory[1] = memory[0] - memory[2];
    return OK;
}

int nvmlDeviceGetPciInfo_v3(struct card *card, void *info) {
    unsigned *numbers = (unsigned *)((char *)info + 16);
    ASK(card);
    numbers[3] = (unsigned)told(card, "device", 0x2330) << 16 | 0x10DE;
    return OK;
}

int nvmlDeviceGetFieldValues(struct card *card, int count, void *values) {
    char *value = values;
    ASK(card);
    for (int i = 0; i < count; i++, value += 40) {
        *(int *)(value + 28) = *(unsigned *)value == 186 ? OK : NOT_SUPPORTED;
        *(unsigned *)(value + 32) = (unsigned)told(card, "power", 500000);
    }
    return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(struct card *card, unsigned long long *mj) {
    struct timespec now;
    int64_t now_ns;
    ASK(card);
    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (card->read_ns)
        card->energy_mj += told(card, "power", 500000) * told(card, "energy_factor", 1) * (now_ns - card->read_ns) / 1e9;
    card->read_ns = now_ns;
    *mj = (unsigned long long)(card->energy_mj + told(card, "energy_offset", 9e9));
    return OK;
}

int nvmlDeviceGetClockInfo(struct card *card, int which, unsigned *mhz) {
    ASK(card);
    *mhz = (unsigned)(which == 2 ? told(card, "memory_clock", 2619) : told(card, "clock", 1965));
    return OK;
}

int nvmlDeviceGetUtilizationRates(struct card *card, unsigned rates[2]) {
    ASK(card);
    rates[0] = (unsigned)told(card, "utilisation", 97);
    rates[1] = 60;
    return OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct card *card, unsigned long long *bits) {
    ASK(card);
    *bits = (unsigned long long)told(card, "reasons", 0);
    return OK;
}

#define NUMBER(call, key, otherwise) \
    int call(struct card *card, unsigned *value) { ASK(card); *value = (unsigned)told(card, key, otherwise); return OK; }
NUMBER(nvmlDeviceGetPowerUsage, "power_average", 480000)
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit", 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default", 700000)
NUMBER(nvmlDeviceGetNumGpuCores, "cores", 16896)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie", 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "lanes", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "max_lanes", 16)
NUMBER(nvmlDeviceGetPersistenceMode, "persistence", 1)
NUMBER(nvmlDeviceGetVirtualizationMode, "virtual", 0)

int nvmlDeviceGetGpcClkVfOffset(struct card *card, int *mhz) {
    ASK(card);
    *mhz = (int)told(card, "offset", 0);
    return OK;
}

int nvmlDeviceGetMemClkVfOffset(struct card *card, int *mhz) { ASK(card); *mhz = 0; return OK; }

int nvmlDeviceGetCudaComputeCapability(struct card *card, int *major, int *minor) {
    ASK(card);
    *major = (int)told(card, "major", 9);
    *minor = (int)told(card, "minor", 0);
    return OK;
}

/* As NVML: asked without room it says how many there are; a process is 24 bytes, its id first. */
static int processes(struct card *card, const char *key, unsigned first, unsigned *count, char *list) {
    unsigned there = (unsigned)told(card, key, 0);
    if (there > *count) { *count = there; return INSUFFICIENT_SIZE; }
    for (unsigned i = 0; i < there; i++) {
        memset(list + 24 * i, 0, 24);
        *(unsigned *)(list + 24 * i) = first + i;
    }
    *count = there;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct card *card, unsigned *count, char *list) {
    ASK(card);
    return processes(card, "computing", 100000, count, list);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct card *card, unsigned *count, char *list) {
    ASK(card);
    return processes(card, "drawing", 200000, count, list);
}

int nvmlDeviceGetTemperature(struct card *card, int sensor, unsigned *degrees) {
    (void)sensor;
    ASK(card);
    *degrees = (unsigned)told(card, "temperature", 61);
    return OK;
}

int nvmlDeviceGetApplicationsClock(struct card *card, int which, unsigned *mhz) {
    (void)which;
    ASK(card);
    *mhz = (unsigned)told(card, "applications_clock", 1980);
    return OK;
}

int nvmlDeviceGetDefaultApplicationsClock(struct card *card, int which, unsigned *mhz) {
    (void)which;
    ASK(card);
    *mhz = 1980;
    return OK;
}

int nvmlDeviceGetEccMode(struct card *card, unsigned *now, unsigned *later) {
    ASK(card);
    *now = *later = 1;
    return OK;
}
