/** Several hosts of one service for tests: daemons that share a PostgreSQL server. */

import { TestDaemon, type TestDaemonOptions } from "../daemon.ts";
import { freePort } from "../free-port.ts";
import { until } from "../guests.ts";
import { Postgres, type PostgresOptions } from "./postgres.ts";

/** The database server that hosts share. */
interface Server extends AsyncDisposable {
  /** The value of `cluster.url`. */
  url(): string;
}

export class TestHosts<Shared extends Server = Postgres> implements AsyncDisposable {
  readonly postgres: Shared;
  readonly hosts: TestDaemon[] = [];

  private constructor(postgres: Shared) {
    this.postgres = postgres;
  }

  /** The first host has the organization; all hosts use its keys. */
  static async start(count: number, options: TestDaemonOptions = {}, server: PostgresOptions = {}): Promise<TestHosts> {
    return await TestHosts.on(await Postgres.start({ settings: { fsync: "off" }, ...server }), count, options);
  }

  /** On a server that runs, and ends with them. */
  static async on<Shared extends Server>(
    server: Shared,
    count: number,
    options: TestDaemonOptions = {},
  ): Promise<TestHosts<Shared>> {
    const made = new TestHosts(server);
    try {
      for (let index = 0; index < count; index++) await made.add(options);
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  get first(): TestDaemon {
    const [first] = this.hosts;
    if (!first) throw new Error("there is no host");
    return first;
  }

  async add(options: TestDaemonOptions = {}): Promise<TestDaemon> {
    const [first] = this.hosts;
    const env = {
      ROOMD_HOST_ID: `host-${this.hosts.length + 1}`,
      ROOMD_CLUSTER_URL: this.postgres.url(),
      ROOMD_CLUSTER_LISTEN: `127.0.0.1:${await freePort()}`,
      ...options.env,
    };
    const prepare = async (daemon: TestDaemon) => {
      await options.prepare?.(daemon);
      if (!first) await done(daemon, ["cluster", "init"]);
    };
    if (!first) this.hosts.push(await TestDaemon.start({ ...options, env, prepare }));
    else {
      const token = (await done(first, ["cluster", "token"])).trim();
      this.hosts.push(await TestDaemon.join(first, { ...options, env }, ["cluster", "join", token]));
    }
    return this.hosts.at(-1) as TestDaemon;
  }

  /** Resolves once each host lists all running ones as active, except the removed ones. */
  async knowEachOther(count = this.hosts.length): Promise<void> {
    await until("each host knows the others", async () => {
      const lists = await Promise.all(this.hosts.map((host) => host.ok("GET", "/v1/hosts")));
      return lists.every(
        ({ items }) => items.filter(({ state }: { state: string }) => state === "active").length === count,
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _ = this.postgres;
    const stopped = await Promise.allSettled(this.hosts.map((host) => host.stop()));
    for (const each of stopped) if (each.status === "rejected") throw each.reason;
  }
}

async function done(daemon: TestDaemon, command: string[]): Promise<string> {
  const { status, stdout, stderr } = await daemon.cli(command);
  if (status !== 0) throw new Error(`roomd ${command.join(" ")}: ${stderr}`);
  return stdout;
}
