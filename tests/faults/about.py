"""Each family in a sentence, for docs/internals/reliability.md; one without a sentence has its title."""

ABOUT = {
    "1": "A random state machine starts, ends, cancels, resumes, tells and crashes, with a clock that jumps.",
    "2": "The owner of a ledger is killed at chosen system calls: writes, syncs, opens, closes.",
    "3": "The owner is killed at random moments while several conversations work.",
    "4": "Writes, syncs and opens fail with ENOSPC, EIO and EMFILE, at a chosen call.",
    "slow": "Each sync of the disk takes long.",
    "power": "The file system is shut down under the owner, as a power cut does, and is mounted again.",
    "5": "Seeded event loops run the same work in other orders.",
    "6": "Commands fork twice, chain, ignore signals, clear their environment, close everything, enter pid "
    "namespaces or are daemonised by LD_PRELOAD; they are cancelled, timed out, or left behind, in a first "
    "life, after a reopen and after a boot. Survivors count as lost.",
    "7": "The owner of running commands is killed; the next one adopts them.",
    "7b": "The owner is killed at each system call of a command's start.",
    "9": "Owners and MCP servers are killed while tools are called.",
    "agents": "The owner is killed at system calls while agents start, ask, end and are resumed.",
    "link-daemons": "The daemon is killed while connected processes start, run and tell.",
    "link-stops": "The daemon is stopped for a while, longer than its leases.",
    "link-jumps": "The daemon's wall clock jumps by seconds to years.",
    "link-executors": "The processes that run functions are killed, or stopped past their lease.",
    "link-cuts": "Connections are cut in the middle of frames while turns are open.",
    "writes": "The daemon is killed at each system call of each write over HTTP.",
    "quiet": "The daemon is killed around the file that says that a conversation has nothing to be told.",
    "mcp-clients": "MCP clients send what they should not, and leave when they should not.",
    "mcp-servers": "MCP servers answer twice, never, late, too much, or with nonsense.",
    "wrap": "A host, its wrap, the daemon and the wrapped server are killed at swept moments of a call: "
    "before the server has it, while it runs, around its answer, in the background, and around its telling.",
    "url-wrap": "The same for a host that reaches the wrapped server by a URL, and gets answers as one body "
    "or on a stream: host, daemon and server are killed.",
    "hostile-wrap": "Wrapped servers answer in another order, with half a line, nonsense or 65 MB, flood, "
    "lie about their tools or crash; hosts use an id twice. Every call has its own answer or error.",
    "notify": "The owner is killed at random moments while its work tells before its end.",
    "watch": "The owner is killed just after commits of its watches of a log and a file that never pause.",
    "remind": "The owner is killed at system calls and at random moments while reminders are set, come and "
    "are cancelled; between two lives the wall clock jumps by up to a year.",
    "sources": "The owner is killed at chosen system calls of a life with a watch, events, reminders and "
    "delayed starts, and of the life after it.",
    "adapters": "A conversation through each framework's adapter is killed twenty times: when it is woken, "
    "while the model is asked, in a tool call, while the framework saves, between the model's answer and the "
    "ack. A record outside has what each request showed the model.",
    "scarce": "The daemon has no descriptors left.",
    "full": "The disk of the daemon's home is really full.",
    "workers-memory": "2,000 functions and commands at three workers, each a process; a fifth of all "
    "messages is lost, a fifth doubled, all are up to 3 s late. 20 kills of workers, 5 of the broker, 3 of "
    "the owner; frozen workers, cables unplugged for less and for more than lease and grace; a full disk, "
    "clocks turned by an hour.",
    "workers-nats": "The same over NATS, which loses nothing by itself; twice all its files are deleted.",
    "workers-postgres": "The same over PostgreSQL; twice all its files are deleted.",
    "workers-cluster": "500 tasks over three NATS servers, whose leader is killed three times.",
    "versions": "An older version's daemon is killed, or stopped, under load; this version's opens its home: "
    "commands are adopted, and clients, command lines and hooks of both versions go on at both daemons.",
}
