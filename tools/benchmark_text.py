"""The words of docs/reference/benchmarks.md; write_benchmarks.py puts the figures in."""

TEXT = """\
# Benchmarks

This page is generated from the last recorded run. Absolute times belong to the machine that they were
measured on; ratios hold elsewhere, too.

| benchmark | measured | commit | load before | machine |
|---|---|---|---|---|
{runs}

The load is that of the machine before the run: a busy one makes every time longer.

## Repeat it

```sh
make bench NAMES="{names}" RECORD=1   # installs, measures and records
python tools/write_benchmarks.py      # this page and its pictures
make bench CHECK=1                    # measures again, and fails if a ratio below became 15 % worse
make bench NAMES=peers ROWS="huey DBOS"
```

Each peer is installed in an environment of its own, `.peers/NAME`, from the versions in
`benchmarks/peers/environments/`. The programs that drive them are in `benchmarks/peers/programs/`. If one of
them does not do its peer justice, change it there.

## The same no-op work on others

All peers run one after the other on the same machine in the same run. A task does nothing. It is submitted,
run and recorded, and then the conversation that started it is told (Meantime), or its result is read (all
others: none of them tells a conversation).

![CPU time of one task, here and on others](../pictures/benchmark_peers.svg)

| | submit, p50 / p99 | of a commit | ending → told | tasks/s | CPU per task | in ours | memory, waiting |
|---|---|---|---|---|---|---|---|
{costs}

- **Submit** is one at a time, until the call returns; then beside a bare commit of SQLite with
  `synchronous=FULL`, measured just before and after, as the disk is not equally quick at all times. It is
  durable where the promise below says so. Redis answers before its file is synced.
- **Ending → told** is the time from the end of the work until its client has the result. huey, procrastinate,
  DBOS and taskiq look for results; they look every 5 ms here.
- **Tasks/s** and **CPU** are of tasks that are submitted a hundred at once. CPU time is of all processes: the
  client, the workers and the server. A rate changes more with the load of the machine than CPU time.
- **Memory** is the growth of all processes for each task that waits or sleeps; `–` is less than can be seen.

| | settings | what it promises |
|---|---|---|
{settings}

Redis appends to its file and syncs it each second; PostgreSQL syncs each commit: both are their defaults.

## Everything killed in mid-work

Four tasks of three seconds run, and then every process is killed with `kill -9`: client, workers and server.
All are started again, and other tasks are submitted. Within thirty seconds the work is finished or not, by a
record outside, and the client is asked what it knows. A worker counts as gone after five seconds where a peer
has such a setting; with their defaults, peers take minutes to find abandoned work.

| | finished | run twice | finished twice | told | lost |
|---|---|---|---|---|---|
{crashes}

A task is **told** if its ending is known after the restart: Meantime tells its conversation without being
asked; the clients of the others ask for each task by its id. A task is **lost** if it did not finish and
nothing is known of it. A function of Meantime that was running is told as lost, and is run again only if you
allow it. [The crash matrix](crash-matrix.md) plays the same with agents, and
[decision 60](../internals/decisions/0060-queues-measured-beside-workers.md) with lost workers and brokers.

## Commands

`/bin/true`, one at a time, beside a bare process. The command queues are called through their own programs.

| | p50 | of a bare process |
|---|---|---|
{commands}

{memory}{disk}## Not measured

{missing}

## One at a time

Beside a bare `INSERT` and `COMMIT` of SQLite with `synchronous=FULL`, on the same disk in the same run. The
WAL of the bare commit still grows, as every WAL does at first; one that is written over syncs faster.

![One write at a time beside a bare commit](../pictures/benchmark_latency.svg)

{starts}## Latency over load

Submits come at a fixed rate, and each is timed from the moment at which it was due, so waiting counts. At
half of the most that the same run could do, p99 is {half} times p50.

![Latency of durable submits over load](../pictures/benchmark_load.svg)

## Growth

Operations beside 1,000, 10,000 and 100,000 finished tasks.

![Operations beside a growing history](../pictures/benchmark_growth.svg)

## Where the time of a task goes

A no-op task costs {cpu_us:.0f} µs of CPU from its start until it is acknowledged. Its SQL alone, replayed
bare in the same groups, costs {sql_us:.0f} µs. The least that a durable no-op could cost in Python, which is
a row, its ending and an asyncio task, is {simple_us:.0f} µs.

By thread: {threads}. [The flame graph](../pictures/benchmark_flame.svg) is of stacks that were sampled in a
real run; open it in a browser, and point at a frame for its name and its figure.
[Decision 76](../internals/decisions/0076-the-cost-of-a-task-step-by-step.md) says what each step brought,
and what is left.

## Ratios that are watched

| | ratio | better |
|---|---|---|
{ratios}
"""

MEMORY = """\
## Memory

| | |
|---|---|
{rows}

A running function is an async one that waits, counted in the owner's own allocations. An active conversation
has one such function and waits for its ending. The servers have answered one request each.

"""

DISK = """\
## Disk

| | bytes in the ledger |
|---|---|
{sizes}

Submits with a sync, one after the other, while the ledger does something else. The last column is the longest
of them beside the p99 of those with nothing else.

| beside | p50 | p99 | longest | of p99 alone |
|---|---|---|---|---|
{pauses}

"""

STARTS = """\
A durable start through each way in. The work is due in an hour, so that nothing runs meanwhile.

| | p50 | beside |
|---|---|---|
{rows}

"""
