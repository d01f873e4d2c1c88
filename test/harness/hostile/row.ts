/** A row of the hostile suite: an attack of `test/api/hostile`, prepared on a daemon of its own. */
import { join, resolve } from "node:path";
import { TestDaemon, type TestDaemonOptions } from "../daemon.ts";
import { holdTurns } from "../event-loop/turns.ts";
import { TestHosts } from "../hosts/hosts.ts";
import type { Attack } from "./attack.ts";
import { type Measured, measureBeside } from "./beside.ts";
import { MemoryDisk } from "./memory-disk.ts";

/** Files of that folder, in the order of the table of attacks. */
export const ROWS = [
  "pipelining",
  "mcp",
  "filter",
  "filtered-waits",
  "waits",
  "everyone",
  "full-inboxes",
  "barrier-waits",
  "barrier-generations",
  "recipients",
  "broken-barriers",
  "tiny-chunks",
  "writes",
  "guest-frames",
  "live-messages",
  "resizes",
  "dockerfile",
  "console",
  "audit",
  "room-files",
  "backup",
  "credits",
  "ssh-logins",
  "many-organizations",
  "many-rooms",
  "directory",
];
const FOLDER = resolve(import.meta.dirname, "../../api/hostile");
const EVERY_MS = 5;

export class HostileRow implements AsyncDisposable {
  readonly daemon: TestDaemon;
  readonly attack: Attack;
  readonly #file: string;
  readonly #prepared: unknown;
  readonly #finish: AsyncDisposableStack;

  private constructor(
    daemon: TestDaemon,
    file: string,
    attack: Attack,
    prepared: unknown,
    finish: AsyncDisposableStack,
  ) {
    this.daemon = daemon;
    this.#file = file;
    this.attack = attack;
    this.#prepared = prepared;
    this.#finish = finish;
  }

  /** The daemon's stop fails by a turn of more than `maxTurnMs` that is not listed for the attack. */
  static async start(
    name: string,
    maxTurnMs?: number,
    prepare: (daemon: TestDaemon) => void = () => {},
  ): Promise<HostileRow> {
    const file = join(FOLDER, `${name}.ts`);
    const { default: attack } = (await import(file)) as { default: Attack };
    holdTurns(file, maxTurnMs);
    await using started = new AsyncDisposableStack();
    const disk = started.use(new MemoryDisk());
    const options = {
      env: attack.env ?? {},
      prepare: (daemon: TestDaemon) => {
        disk.hold(daemon);
        prepare(daemon);
      },
    };
    const daemon = attack.hosts
      ? await firstOf(attack.hosts, options, started)
      : started.use(await TestDaemon.start(options));
    started.defer(async () => await attack.finish?.());
    const prepared = (await attack.prepare?.(daemon)) ?? null;
    return new HostileRow(daemon, file, attack, prepared, started.move());
  }

  /** Measures other calls for this time without the attack, then with it; `during` accompanies the attack. */
  async measure(ms: number, during?: () => Promise<AsyncDisposable>): Promise<Measured> {
    const calls = Math.round(ms / (this.attack.everyMs ?? EVERY_MS));
    return await measureBeside(this.daemon, this.#file, this.attack, this.#prepared, calls, during);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#finish.disposeAsync();
  }
}

/** The first of several hosts. The others have their data on the disk. */
async function firstOf(count: number, options: TestDaemonOptions, started: AsyncDisposableStack): Promise<TestDaemon> {
  const service = started.use(await TestHosts.start(1, options));
  while (service.hosts.length < count) await service.add({ env: options.env ?? {} });
  await service.knowEachOther();
  return service.first;
}
