/**
 * The cgroup of one execution: it contains every process that the execution ever started, including those that left its session or parent.
 * If there are no cgroups, the process group is used instead.
 */
import { closeSync, mkdirSync, openSync, readFileSync, readSync, rmdirSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const ROOT = "/sys/fs/cgroup";
const OURS = "roomd";
/** CPU weights: of background work, and of everything else. */
const WEIGHT = { least: "1", usual: "100" } as const;
/** Pid 0: the kernel takes it as the writing process. */
const SELF = "0";

/** Empty cgroups for reuse: creating and removing one costs more than keeping it. */
const free: Cgroup[] = [];
const MAX_FREE = 16;
/** Released cgroups with processes that outlived their execution. */
const left = new Set<Cgroup>();
let made = 0;
/** Timeout for freezing: a process that sleeps uninterruptibly in the kernel is frozen only when it wakes. */
const FREEZE_MS = 5_000;
const FREEZE_POLL_MS = 10;
let homeProcs: number | null = null;

/** Enables the CPU and memory controllers, so that each cgroup gets its share of the processors. */
function share(): void {
  mkdirSync(join(ROOT, OURS), { recursive: true });
  for (const parent of [ROOT, join(ROOT, OURS)]) {
    try {
      writeFileSync(join(parent, "cgroup.subtree_control"), "+cpu");
    } catch {
      // Without the CPU controller, all processes compete equally, whatever their execution.
    }
    try {
      writeFileSync(join(parent, "cgroup.subtree_control"), "+memory");
    } catch {
      // Without the memory controller, the execution of an OOM-killed process is unknown.
    }
  }
}

/** Limits the number of processes and threads of all executions together. Throws if the kernel has no pids controller. */
export function limitTasks(most: number): void {
  mkdirSync(join(ROOT, OURS), { recursive: true });
  writeFileSync(join(ROOT, "cgroup.subtree_control"), "+pids");
  writeFileSync(join(ROOT, OURS, "pids.max"), String(most));
}

/** The agent's own cgroup. */
function home(): number {
  homeProcs ??= openSync(join(ROOT, "cgroup.procs"), "w");
  return homeProcs;
}

/** Longer than any event file of a cgroup. */
const eventBuffer = Buffer.alloc(256);

export class Cgroup {
  readonly #directory: string;
  /** Both descriptors stay open: a cgroup is reused. */
  readonly #place: number;
  readonly #events: number;
  /** Null without the controller. */
  readonly #memoryEvents: number | null;
  /** Number of executions that have used this cgroup. */
  turn = 0;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#place = openSync(directory, "r");
    this.#events = openSync(join(directory, "cgroup.events"), "r");
    this.#memoryEvents = openIfThere(join(directory, "memory.events"));
  }

  /** An empty cgroup; null if there are no cgroups. */
  static take(): Cgroup | null {
    const known = free.pop();
    if (known) return known;
    try {
      if (made === 0) share();
      const directory = join(ROOT, OURS, String(++made));
      mkdirSync(directory, { recursive: true });
      return new Cgroup(directory);
    } catch {
      return null;
    }
  }

  /** Descriptor of its directory, for a spawn directly into the cgroup. */
  get place(): number {
    return this.#place;
  }

  /**
   * Spawns a process of Bun's in it. The agent moves into the cgroup for the spawn: a process that is moved after its start may already
   * have forked children, which would be in no execution's cgroup.
   */
  begin<T>(spawn: () => T): T {
    const back = home();
    try {
      writeFileSync(join(this.#directory, "cgroup.procs"), SELF);
    } catch {
      // Root may have removed the cgroup: the caller falls back to the process group.
    }
    try {
      return spawn();
    } finally {
      writeSync(back, SELF);
    }
  }

  signal(signal: NodeJS.Signals): void {
    for (const pid of this.#pids()) {
      try {
        process.kill(pid, signal);
      } catch {
        // The process has already exited.
      }
    }
  }

  /** Kills the whole cgroup atomically, including processes that are forked during the kill. */
  kill(): void {
    try {
      writeFileSync(join(this.#directory, "cgroup.kill"), "1");
    } catch {
      this.signal("SIGKILL");
    }
  }

  get isEmpty(): boolean {
    try {
      return this.#says("populated 0");
    } catch {
      return true;
    }
  }

  /** Total number of the cgroup's processes that the kernel has OOM-killed. */
  get oomKills(): number {
    if (this.#memoryEvents === null) return 0;
    try {
      const text = eventBuffer.toString(
        "latin1",
        0,
        readSync(this.#memoryEvents, eventBuffer, 0, eventBuffer.byteLength, 0),
      );
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    } catch {
      return 0;
    }
  }

  /** Resolves once the whole cgroup is frozen, or after FREEZE_MS. */
  async freeze(): Promise<void> {
    try {
      this.#set("cgroup.freeze", "1");
      for (let left = FREEZE_MS; left > 0 && !this.#says("frozen 1"); left -= FREEZE_POLL_MS)
        await sleep(FREEZE_POLL_MS);
    } catch {
      // Then all of it keeps running.
    }
  }

  /** From now on it gets the lowest CPU weight. */
  comeLast(): void {
    this.#set("cpu.weight", WEIGHT.least);
  }

  /** Thaws it; after `lastForMs` it gets the usual CPU weight. */
  thaw(lastForMs: number): void {
    this.#set("cgroup.freeze", "0");
    setTimeout(() => this.#set("cpu.weight", WEIGHT.usual), lastForMs);
  }

  #set(file: string, value: string): void {
    try {
      writeFileSync(join(this.#directory, file), value);
    } catch {
      // Root may have removed the cgroup, or the kernel may lack the feature.
    }
  }

  /** Reads an event. Throws if the cgroup no longer exists. */
  #says(event: string): boolean {
    return eventBuffer
      .toString("latin1", 0, readSync(this.#events, eventBuffer, 0, eventBuffer.byteLength, 0))
      .includes(event);
  }

  /**
   * Returns it to the pool, in the next turn of the event loop or once its leftover processes have exited: callers that wait for the
   * command's exit come first.
   */
  release(): void {
    setImmediate(Cgroup.#takeBack);
    left.add(this);
  }

  static #takeBack(): void {
    for (const cgroup of left) {
      if (!cgroup.isEmpty) continue;
      left.delete(cgroup);
      cgroup.turn++;
      if (free.length < MAX_FREE) free.push(cgroup);
      else cgroup.#remove();
    }
  }

  #pids(): number[] {
    try {
      return readFileSync(join(this.#directory, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
    } catch {
      return [];
    }
  }

  /** Removes the cgroup, unless a command has created child cgroups in it. */
  #remove(): void {
    for (const fd of [this.#place, this.#events, this.#memoryEvents]) if (fd !== null) closeSync(fd);
    try {
      rmdirSync(this.#directory);
    } catch {
      // It costs nothing.
    }
  }
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, "r");
  } catch {
    return null;
  }
}
